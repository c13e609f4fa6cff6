//! Digests: the SHA-256 of content, which names a version, in the notation of registries.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Prefix of the only supported algorithm.
const PREFIX: &str = "sha256:";
/// Hexadecimal digits of a digest.
const LETTERS: usize = 64;

/// A digest, written as `sha256:` and 64 lower-case hexadecimal digits. Stored in binary, because there are tens
/// of thousands in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a digest: use sha256: and 64 hexadecimal digits in lower case")]
pub struct DigestError;

impl Digest {
    /// Computes the digest of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses a digest.
    ///
    /// # Errors
    /// The text is not a digest, or of another algorithm than SHA-256.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let letters = text.strip_prefix(PREFIX).ok_or(DigestError)?.as_bytes();
        if letters.len() != LETTERS {
            return Err(DigestError);
        }
        let mut number = [0; LETTERS / 2];
        for (byte, pair) in number.iter_mut().zip(letters.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(value_of);
            *byte = high.ok_or(DigestError)? << 4 | low.ok_or(DigestError)?;
        }
        Ok(Self(number))
    }

    /// Whether the text is this digest.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        Self::parse(text).is_ok_and(|it| it == *self)
    }
}

/// Value of a lower-case hexadecimal digit.
fn value_of(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_bytes_parses_its_own_text() {
        let digest = Digest::of(b"");
        assert_eq!(
            digest.to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest.clone()));
        assert!(digest.is(&digest.to_string()) && !digest.is("sha256:"));
    }

    #[test]
    fn an_invalid_digest_is_refused() {
        let short = "sha256:e3b0c442";
        let large = Digest::of(b"").to_string().to_uppercase();
        let other = format!("sha512:{}", "0".repeat(64));
        for text in ["", "latest", short, &large, &other] {
            assert_eq!(Digest::parse(text), Err(DigestError), "{text}");
        }
    }
}
