//! Signature algorithms of tokens: only asymmetric ones, so that verifying a token does not allow making one.

use jsonwebtoken::Algorithm as Library;

/// The algorithms, by their names on the wire.
const NAMED: [(&str, Library); 9] = [
    ("RS256", Library::RS256),
    ("RS384", Library::RS384),
    ("RS512", Library::RS512),
    ("PS256", Library::PS256),
    ("PS384", Library::PS384),
    ("PS512", Library::PS512),
    ("ES256", Library::ES256),
    ("ES384", Library::ES384),
    ("EdDSA", Library::EdDSA),
];

/// An asymmetric algorithm. There is no value for `none`, nor for `HS256` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Algorithm(Library);

/// Kind of key that an algorithm needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    /// All algorithms.
    pub(crate) fn all() -> Vec<Self> {
        NAMED.iter().map(|(_, it)| Self(*it)).collect()
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = NAMED.iter().find(|(known, _)| *known == name)?;
        Some(Self(found.1))
    }

    pub(super) fn library(self) -> Library {
        self.0
    }

    pub(super) fn key_kind(self) -> KeyKind {
        match self.0 {
            Library::ES256 => KeyKind::P256,
            Library::ES384 => KeyKind::P384,
            Library::EdDSA => KeyKind::Ed25519,
            _ => KeyKind::Rsa,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, KeyKind};

    #[test]
    fn only_algorithms_with_a_public_key_have_a_value() {
        for name in [
            "none", "None", "", "HS256", "HS384", "HS512", "rs256", "ES512",
        ] {
            assert_eq!(Algorithm::named(name), None, "{name}");
        }
        let kind = |name| Algorithm::named(name).map(Algorithm::key_kind);
        assert_eq!(kind("PS512"), Some(KeyKind::Rsa));
        assert_eq!(kind("ES384"), Some(KeyKind::P384));
        assert_eq!(kind("EdDSA"), Some(KeyKind::Ed25519));
        assert_eq!(Algorithm::all().len(), 9);
    }
}
