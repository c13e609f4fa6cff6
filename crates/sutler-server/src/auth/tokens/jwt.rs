//! A signed token, taken apart. Nothing in it is believed before its signature was checked.

use super::algorithm::Algorithm;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A token whose parts can be read, and whose algorithm is one of ours.
pub(super) struct Unverified<'a> {
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
    pub claims: Map<String, Value>,
    /// What was signed: header and claims as they came.
    pub message: &'a [u8],
    pub signature: &'a str,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; none is.
    crit: Option<Value>,
}

/// Takes a token apart. `None`: it is none, or asks for something that is never done here, such as no
/// signature at all.
pub(super) fn take_apart(token: &[u8]) -> Option<Unverified<'_>> {
    let text = std::str::from_utf8(token).ok()?;
    let (message, signature) = text.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    if claims.contains('.') || signature.is_empty() {
        return None;
    }
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Header = serde_json::from_slice(&decoded(header)?).ok()?;
    if header.crit.is_some() {
        return None;
    }
    Some(Unverified {
        algorithm: Algorithm::named(&header.alg)?,
        key_id: header.kid,
        claims: serde_json::from_slice(&decoded(claims)?).ok()?,
        message: message.as_bytes(),
        signature,
    })
}

#[cfg(test)]
mod tests {
    use super::take_apart;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn token(header: &str, claims: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.c2ln", encode(header), encode(claims))
    }

    #[test]
    fn a_token_comes_apart_and_keeps_what_was_signed() {
        let text = token(r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#, r#"{"sub":"s"}"#);
        let taken = take_apart(text.as_bytes()).expect("a token");
        assert_eq!(taken.key_id.as_deref(), Some("k"));
        assert_eq!(taken.claims["sub"], "s");
        assert_eq!(taken.signature, "c2ln");
        assert!(text.as_bytes().starts_with(taken.message));
    }

    #[test]
    fn what_is_no_signed_token_is_none() {
        let claims = r#"{"sub":"s"}"#;
        let good = token(r#"{"alg":"RS256"}"#, claims);
        assert!(take_apart(good.as_bytes()).is_some());
        let unsigned = good.trim_end_matches("c2ln");
        let bad = [
            String::new(),
            "a.b.c".to_owned(),
            unsigned.to_owned(),
            unsigned.trim_end_matches('.').to_owned(),
            format!("{good}.more.parts"),
            token(r#"{"alg":"none"}"#, claims),
            token(r#"{"alg":"None"}"#, claims),
            token(r#"{"alg":"HS256"}"#, claims),
            token(r#"{"alg":"rs256"}"#, claims),
            token(r#"{"alg":["RS256"]}"#, claims),
            token(r#"{"alg":"none","alg":"RS256"}"#, claims),
            token(r#"{"alg":"RS256","crit":["b64"],"b64":false}"#, claims),
            token(r#"{"kid":"k"}"#, claims),
            token(r#"{"alg":"RS256"}"#, "[]"),
            token(r#"{"alg":"RS256"}"#, "not json"),
        ];
        for text in bad {
            assert!(take_apart(text.as_bytes()).is_none(), "{text}");
        }
    }
}
