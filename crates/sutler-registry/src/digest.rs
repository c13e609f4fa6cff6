//! The name of one version of something: the SHA-256 of its bytes, as registries write it.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};

/// Before the number.
const PREFIX: &str = "sha256:";
/// Letters of the number.
const LETTERS: usize = 64;

/// `sha256:` and 64 small hexadecimal letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no digest: use sha256: and 64 hexadecimal letters in lower case")]
pub struct DigestFault;

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(PREFIX.len() + LETTERS);
        text.push_str(PREFIX);
        for byte in Sha256::digest(bytes) {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Reads a digest.
    ///
    /// # Errors
    /// It is none, or of another sort than SHA-256.
    pub fn parse(text: &str) -> Result<Self, DigestFault> {
        let number = text.strip_prefix(PREFIX).ok_or(DigestFault)?;
        let is_letter = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match number.len() == LETTERS && number.bytes().all(is_letter) {
            true => Ok(Self(text.to_owned())),
            false => Err(DigestFault),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestFault;

    fn try_from(text: String) -> Result<Self, DigestFault> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_bytes_and_reads_what_it_writes() {
        let digest = Digest::of(b"");
        assert_eq!(
            digest.as_str(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(Digest::parse(digest.as_str()), Ok(digest));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let short = "sha256:e3b0c442";
        let large = Digest::of(b"").as_str().to_uppercase();
        let other = format!("sha512:{}", "0".repeat(64));
        for text in ["", "latest", short, &large, &other] {
            assert_eq!(Digest::parse(text), Err(DigestFault), "{text}");
        }
    }
}
