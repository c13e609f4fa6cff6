//! Public keys of an issuer, parsed from a JSON Web Key Set.
//!
//! A key that cannot be used is skipped: issuers also publish keys for encryption and for newer algorithms.

use super::algorithm::{Algorithm, KeyKind};
use crate::auth::AuthConfigError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// Maximum size of a document, in bytes.
pub(super) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Maximum keys in a document.
const KEYS_MAX: usize = 100;
/// Maximum keys that one token is verified with.
const TRIED_MAX: usize = 8;
/// Allowed size of an RSA modulus, in bytes: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// Public keys of an issuer.
#[derive(Clone, Default)]
pub struct KeySet(Vec<PublicKey>);

#[derive(Clone)]
struct PublicKey {
    id: Option<String>,
    kind: KeyKind,
    /// Set if the key is for one algorithm only.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<Value>,
}

/// A key as published; other fields are ignored.
#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    for_what: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Parses a JSON Web Key Set.
    ///
    /// # Errors
    /// The document is malformed or too large.
    pub fn parse(document: &[u8]) -> Result<Self, AuthConfigError> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(AuthConfigError::KeySet);
        }
        let document: KeySetDocument =
            serde_json::from_slice(document).map_err(|_| AuthConfigError::KeySet)?;
        if document.keys.len() > KEYS_MAX {
            return Err(AuthConfigError::KeySet);
        }
        let written = document.keys.into_iter();
        let written = written.filter_map(|it| serde_json::from_value::<JsonWebKey>(it).ok());
        Ok(Self(written.filter_map(PublicKey::read).collect()))
    }

    /// Number of usable keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no usable key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys to verify a token with. A token without a key id is verified with all keys of its algorithm, one with a key id
    /// with all keys of this id. A key without an id fits any token.
    pub(super) fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<&DecodingKey> {
        let fits = |key: &&PublicKey| {
            key.kind == algorithm.key_kind()
                && key.algorithm.is_none_or(|it| it == algorithm)
                && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        };
        let fitting = self.0.iter().filter(fits).take(TRIED_MAX);
        fitting.map(|it| &it.key).collect()
    }

    /// Whether there is a key with exactly this id.
    pub(super) fn names(&self, id: Option<&str>) -> bool {
        id.is_some() && self.0.iter().any(|key| key.id.as_deref() == id)
    }
}

impl PublicKey {
    fn read(written: JsonWebKey) -> Option<Self> {
        let signs = written.for_what.is_none_or(|it| it == "sig")
            && written
                .key_ops
                .is_none_or(|it| it.iter().any(|it| it == "verify"));
        if !signs {
            return None;
        }
        let algorithm = match &written.alg {
            Some(name) => Some(Algorithm::named(name)?),
            None => None,
        };
        let part = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let (kind, key) = match (written.kty.as_str(), written.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (part(written.n)?, part(written.e)?);
                let n = without_zeros(&n);
                MODULUS_BYTES.contains(&n.len()).then_some(())?;
                (KeyKind::Rsa, DecodingKey::from_rsa_raw_components(n, &e))
            }
            ("EC", Some("P-256")) => (
                KeyKind::P256,
                point(&part(written.x)?, &part(written.y)?, 32)?,
            ),
            ("EC", Some("P-384")) => (
                KeyKind::P384,
                point(&part(written.x)?, &part(written.y)?, 48)?,
            ),
            ("OKP", Some("Ed25519")) => {
                let x = part(written.x).filter(|it| it.len() == 32)?;
                (KeyKind::Ed25519, DecodingKey::from_ed_der(&x))
            }
            _ => return None,
        };
        let fits = algorithm.is_none_or(|it| it.key_kind() == kind);
        fits.then_some(Self {
            id: written.kid,
            kind,
            algorithm,
            key,
        })
    }
}

/// An uncompressed point on a curve.
fn point(x: &[u8], y: &[u8], length: usize) -> Option<DecodingKey> {
    if x.len() != length || y.len() != length {
        return None;
    }
    let point = [&[4], x, y].concat();
    Some(DecodingKey::from_ec_der(&point))
}

/// Strips leading zeros, which some issuers add.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|it| **it == 0).count();
    &number[zeros..]
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.0.iter().map(|key| (&key.id, key.kind));
        f.debug_list().entries(ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYS_MAX, KeySet};
    use crate::auth::tokens::algorithm::Algorithm;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    fn number(bytes: usize) -> String {
        URL_SAFE_NO_PAD.encode(vec![0xaa; bytes])
    }

    fn rsa(kid: Value, more: Value) -> Value {
        let mut key = json!({ "kty": "RSA", "e": "AQAB", "n": number(256), "kid": kid });
        let all = key.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        all.retain(|_, value| !value.is_null());
        key
    }

    fn fitting(keys: &[Value], id: Option<&str>, algorithm: &str) -> usize {
        let text = json!({ "keys": keys }).to_string();
        let set = KeySet::parse(text.as_bytes()).expect("a set");
        let algorithm = Algorithm::named(algorithm).expect("an algorithm");
        set.fitting(id, algorithm).len()
    }

    #[test]
    fn a_key_is_found_by_id_and_algorithm() {
        let x = number(32);
        let keys = [
            rsa(json!("a"), json!({})),
            rsa(json!("b"), json!({ "alg": "PS256", "use": "sig" })),
            json!({ "kty": "EC", "crv": "P-256", "kid": "c", "x": x, "y": x }),
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": "d", "x": x, "key_ops": ["verify"] }),
        ];
        assert_eq!(fitting(&keys, Some("a"), "RS256"), 1);
        assert_eq!(
            fitting(&keys, Some("b"), "RS256"),
            0,
            "it is for PS256 only"
        );
        assert_eq!(fitting(&keys, Some("b"), "PS256"), 1);
        assert_eq!(fitting(&keys, Some("c"), "ES256"), 1);
        assert_eq!(fitting(&keys, Some("c"), "ES384"), 0, "another curve");
        assert_eq!(fitting(&keys, Some("c"), "RS256"), 0);
        assert_eq!(fitting(&keys, Some("d"), "EdDSA"), 1);
        assert_eq!(fitting(&keys, Some("e"), "RS256"), 0);
        assert_eq!(fitting(&keys, None, "PS256"), 2);
    }

    #[test]
    fn keys_without_an_id_and_with_the_same_one_are_all_tried_up_to_a_bound() {
        let same = [rsa(json!("a"), json!({})), rsa(json!("a"), json!({}))];
        assert_eq!(fitting(&same, Some("a"), "RS256"), 2);
        let without = [rsa(Value::Null, json!({}))];
        assert_eq!(fitting(&without, Some("a"), "RS256"), 1);
        let many = vec![rsa(json!("a"), json!({})); KEYS_MAX];
        assert_eq!(fitting(&many, Some("a"), "RS256"), 8);
    }

    #[test]
    fn unusable_keys_are_left_out() {
        let keys = [
            json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "a" }),
            json!({ "kty": "EC", "crv": "P-256", "kid": "a", "x": "AA", "y": "AA" }),
            json!({ "kty": "EC", "crv": "secp256k1", "kid": "a", "x": "AA", "y": "AA" }),
            rsa(json!("a"), json!({ "use": "enc" })),
            rsa(json!("a"), json!({ "key_ops": ["sign"] })),
            rsa(json!("a"), json!({ "alg": "HS256" })),
            rsa(json!("a"), json!({ "alg": "ES256" })),
            rsa(json!("a"), json!({ "n": number(128) })),
            rsa(json!("a"), json!({ "n": null })),
            json!("no object"),
            json!({}),
        ];
        for algorithm in ["RS256", "ES256", "PS256"] {
            assert_eq!(fitting(&keys, None, algorithm), 0, "{algorithm}");
        }
    }

    #[test]
    fn malformed_and_oversized_key_sets_are_refused() {
        let many = json!({ "keys": vec![json!({}); KEYS_MAX + 1] }).to_string();
        let long = format!("{{\"keys\":[]{}}}", " ".repeat(300_000));
        for text in ["", "[]", "{}", r#"{"keys":{}}"#, &many, &long] {
            assert!(KeySet::parse(text.as_bytes()).is_err());
        }
        assert!(KeySet::parse(br#"{"keys":[]}"#).is_ok_and(|set| set.is_empty()));
    }
}
