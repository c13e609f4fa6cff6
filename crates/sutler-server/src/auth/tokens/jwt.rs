//! Parses a signed token. Nothing in it is trusted before its signature was verified.

use super::algorithm::Algorithm;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A token that was parsed, with a supported algorithm.
pub(super) struct UnverifiedToken<'a> {
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
    pub claims: Map<String, Value>,
    /// The signed bytes: header and claims as received.
    pub message: &'a [u8],
    pub signature: &'a str,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; none is.
    crit: Option<Value>,
}

/// Parses a token. `None`: it is malformed, or uses something that is not supported, such as no signature.
pub(super) fn parse_token(token: &[u8]) -> Option<UnverifiedToken<'_>> {
    let text = std::str::from_utf8(token).ok()?;
    let (message, signature) = text.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    if claims.contains('.') || signature.is_empty() {
        return None;
    }
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: TokenHeader = serde_json::from_slice(&decoded(header)?).ok()?;
    if header.crit.is_some() {
        return None;
    }
    Some(UnverifiedToken {
        algorithm: Algorithm::named(&header.alg)?,
        key_id: header.kid,
        claims: serde_json::from_slice(&decoded(claims)?).ok()?,
        message: message.as_bytes(),
        signature,
    })
}

#[cfg(test)]
mod tests {
    use super::parse_token;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn token(header: &str, claims: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.c2ln", encode(header), encode(claims))
    }

    #[test]
    fn a_parsed_token_keeps_the_signed_bytes() {
        let text = token(r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#, r#"{"sub":"s"}"#);
        let taken = parse_token(text.as_bytes()).expect("a token");
        assert_eq!(taken.key_id.as_deref(), Some("k"));
        assert_eq!(taken.claims["sub"], "s");
        assert_eq!(taken.signature, "c2ln");
        assert!(text.as_bytes().starts_with(taken.message));
    }

    #[test]
    fn malformed_and_unsigned_tokens_are_not_parsed() {
        let claims = r#"{"sub":"s"}"#;
        let good = token(r#"{"alg":"RS256"}"#, claims);
        assert!(parse_token(good.as_bytes()).is_some());
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
            assert!(parse_token(text.as_bytes()).is_none(), "{text}");
        }
    }
}
