//! Who may talk to the broker: one user by basic authentication, compared in constant time.
//!
//! Other mechanisms are a matter of agreement with the platform (B-012) and stand in front of the
//! router as layers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Longest `Authorization` header looked at, in bytes.
const HEADER_BYTES_MAX: usize = 4096;

/// What a request must prove.
pub(crate) enum Auth {
    /// Nothing: said explicitly by whoever built the broker.
    Open,
    /// The digest of `user:password`; digests have one length, so that nothing leaks by time.
    Basic([u8; 32]),
}

impl Auth {
    pub(crate) fn basic(user: &str, password: &SecretString) -> Self {
        Self::Basic(digest(
            format!("{user}:{}", password.expose_secret()).as_bytes(),
        ))
    }

    /// B-010: whether the header proves it.
    pub(crate) fn admits(&self, authorization: Option<&[u8]>) -> bool {
        match self {
            Self::Open => true,
            Self::Basic(expected) => {
                let given = authorization.and_then(credentials).unwrap_or_default();
                bool::from(digest(&given).ct_eq(expected))
            }
        }
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn credentials(header: &[u8]) -> Option<Vec<u8>> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (scheme, rest) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    STANDARD.decode(rest.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use super::Auth;

    fn admits(header: &str) -> bool {
        Auth::basic("admin", &"s3cret:with:colons".into()).admits(Some(header.as_bytes()))
    }

    /// Holds: B-010.
    #[test]
    fn only_the_right_user_and_password_are_admitted() {
        // admin:s3cret:with:colons
        assert!(admits("Basic YWRtaW46czNjcmV0OndpdGg6Y29sb25z"));
        assert!(admits("basic YWRtaW46czNjcmV0OndpdGg6Y29sb25z"));
        assert!(!admits("Basic YWRtaW46czNjcmV0"));
        assert!(!admits("Bearer YWRtaW46czNjcmV0OndpdGg6Y29sb25z"));
        assert!(!admits("Basic ***"));
        assert!(!admits("Basic"));
        assert!(!Auth::basic("", &"".into()).admits(None));
    }

    #[test]
    fn an_overlong_header_is_not_even_decoded() {
        assert!(!admits(&format!("Basic {}", "A".repeat(10_000))));
    }
}
