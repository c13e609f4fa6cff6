//! OAuth2 client credentials (RFC 6749, 4.4): the form that is sent to a token endpoint, and its answer. Pure.
//!
//! `token_source.rs` sends the form and keeps the token.

use super::exchange::encode;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Longest access token, in bytes: it must fit into a header.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// How long a token is used if the answer does not say it.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// How long a token is used at most.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before its end a token is replaced: for requests under way, and clocks that differ. A short life loses a
/// tenth of itself.
const REPLACED_BEFORE_END: Duration = Duration::from_secs(30);
/// Error codes of RFC 6749, 5.2. Others are not repeated: a server might echo a secret.
const ERROR_CODES: [&str; 6] = [
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
];

/// A client of an authorization server, which gets its access tokens for itself.
#[derive(Clone)]
pub struct ClientCredentials {
    pub(super) token_url: String,
    client_id: String,
    client_secret: SecretString,
    scopes: Vec<String>,
    placement: SecretPlacement,
}

/// Where a client's id and secret are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretPlacement {
    /// In the header of basic authentication, which every server must support (RFC 6749, 2.3.1).
    #[default]
    Header,
    /// In the body, for servers that expect them there.
    Body,
}

/// Why there is no access token. Contains advice and no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no access token: {0}")]
pub(super) struct AccessTokenError(pub(super) String);

impl ClientCredentials {
    /// A client that sends its id and secret by basic authentication, and asks for no particular scope.
    pub fn new(token_url: &str, client_id: &str, client_secret: SecretString) -> Self {
        Self {
            token_url: token_url.to_owned(),
            client_id: client_id.to_owned(),
            client_secret,
            scopes: Vec::new(),
            placement: SecretPlacement::default(),
        }
    }

    /// With one more scope.
    #[must_use]
    pub fn scope(mut self, scope: &str) -> Self {
        self.scopes.push(scope.to_owned());
        self
    }

    /// With the id and the secret in another place.
    #[must_use]
    pub fn placement(mut self, placement: SecretPlacement) -> Self {
        self.placement = placement;
        self
    }

    /// User and password of basic authentication, if they are sent there. Both are encoded first (RFC 6749, 2.3.1), so
    /// that an id may contain a colon.
    pub(super) fn basic(&self) -> Option<(String, SecretString)> {
        match self.placement {
            SecretPlacement::Header => {
                let secret = encoded(self.client_secret.expose_secret());
                Some((encoded(&self.client_id), secret.into()))
            }
            SecretPlacement::Body => None,
        }
    }

    /// The form of a token request.
    pub(super) fn form(&self) -> SecretString {
        let mut form = "grant_type=client_credentials".to_owned();
        if !self.scopes.is_empty() {
            form.push_str("&scope=");
            encode(&self.scopes.join(" "), &mut form);
        }
        match self.placement {
            SecretPlacement::Header => (),
            SecretPlacement::Body => {
                form.push_str("&client_id=");
                encode(&self.client_id, &mut form);
                form.push_str("&client_secret=");
                encode(self.client_secret.expose_secret(), &mut form);
            }
        }
        form.into()
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("placement", &self.placement)
            .finish_non_exhaustive()
    }
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    encode(text, &mut encoded);
    encoded
}

/// A token of an answer, and how long it can be used.
#[derive(Debug)]
pub(super) struct ReceivedToken {
    pub(super) token: SecretString,
    pub(super) usable_for: Duration,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: SecretString,
    token_type: Option<String>,
    expires_in: Option<Value>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

/// Reads the answer of a token endpoint.
pub(super) fn read_answer(status: u16, body: &[u8]) -> Result<ReceivedToken, AccessTokenError> {
    let refuse = |sentence: &str| Err(AccessTokenError(sentence.to_owned()));
    if status != 200 {
        return Err(refusal(status, body));
    }
    let Ok(answer) = serde_json::from_slice::<TokenAnswer>(body) else {
        return refuse(
            "the token endpoint answered 200 without one; is its URL right? It must end with the path of the endpoint",
        );
    };
    let kind = answer.token_type.as_deref().unwrap_or("bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return refuse("the token endpoint gives tokens of another type than bearer; configure it");
    }
    let token = answer.access_token.expose_secret();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return refuse(
            "the token of the endpoint is empty or longer than 16 KiB; ask for less scopes",
        );
    }
    if !token.bytes().all(|it| it.is_ascii_graphic()) {
        return refuse("the token of the endpoint has characters that no header may have");
    }
    Ok(ReceivedToken {
        usable_for: usable_for(answer.expires_in.as_ref().and_then(seconds)),
        token: answer.access_token,
    })
}

fn refusal(status: u16, body: &[u8]) -> AccessTokenError {
    let code = serde_json::from_slice::<ErrorAnswer>(body).ok();
    let known = |code: ErrorAnswer| ERROR_CODES.into_iter().find(|it| *it == code.error);
    let reason = match code.and_then(known) {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    };
    let advice = match status {
        400 | 401 | 403 => "check the client's id, secret, their placement, and the scopes",
        300..=399 | 404 | 405 => "check its URL",
        _ => "it may work again later",
    };
    AccessTokenError(format!("the token endpoint answered {reason}; {advice}"))
}

/// Seconds as a number, or as digits in a string, as some servers write them.
fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    }
}

fn usable_for(expires_in: Option<u64>) -> Duration {
    let lifetime = expires_in.map_or(LIFETIME_DEFAULT, Duration::from_secs);
    let lifetime = lifetime.min(LIFETIME_MAX);
    lifetime.saturating_sub(REPLACED_BEFORE_END.min(lifetime / 10))
}

#[cfg(test)]
mod tests {
    use super::{ClientCredentials, SecretPlacement, read_answer};
    use secrecy::ExposeSecret;

    fn client() -> ClientCredentials {
        ClientCredentials::new(
            "https://uaa.example/oauth/token",
            "a:b c",
            "s3&cret=%+ä".into(),
        )
    }

    #[test]
    fn by_default_the_secret_is_sent_by_basic_authentication() {
        let (user, password) = client().basic().expect("basic authentication");
        assert_eq!(user, "a%3Ab%20c");
        assert_eq!(password.expose_secret(), "s3%26cret%3D%25%2B%C3%A4");
        assert_eq!(
            client().form().expose_secret(),
            "grant_type=client_credentials"
        );
        let scoped = client().scope("broker.read").scope("x&y");
        let form = scoped.form();
        assert_eq!(
            form.expose_secret(),
            "grant_type=client_credentials&scope=broker.read%20x%26y"
        );
    }

    #[test]
    fn in_the_body_the_secret_is_one_value_of_the_form() {
        let client = client().placement(SecretPlacement::Body);
        assert!(client.basic().is_none());
        assert_eq!(
            client.form().expose_secret(),
            "grant_type=client_credentials&client_id=a%3Ab%20c&client_secret=s3%26cret%3D%25%2B%C3%A4"
        );
    }

    #[test]
    fn a_token_is_used_until_shortly_before_it_expires() {
        for (expires_in, seconds) in [
            (r#","expires_in":3600"#, 3570),
            (r#","expires_in":"3600""#, 3570),
            (r#","expires_in":60"#, 54),
            (r#","expires_in":0"#, 0),
            (r#","expires_in":18446744073709551615"#, 24 * 3600 - 30),
            (r#","expires_in":-1"#, 270),
            (r#","expires_in":"soon""#, 270),
            (r#","expires_in":null"#, 270),
            ("", 270),
        ] {
            let body = format!(r#"{{"access_token":"t","token_type":"Bearer"{expires_in}}}"#);
            let token = read_answer(200, body.as_bytes()).expect("a token");
            assert_eq!(token.usable_for.as_secs(), seconds, "{expires_in}");
            assert_eq!(token.token.expose_secret(), "t");
        }
    }

    #[test]
    fn an_unusable_answer_is_explained_without_its_values() {
        let long = format!(r#"{{"access_token":"{}"}}"#, "x".repeat(17_000));
        for (status, body, words) in [
            (200, "", "is its URL right"),
            (200, "<html>hush</html>", "is its URL right"),
            (200, r#"{"access_token":7}"#, "is its URL right"),
            (200, r#"{"access_token":""}"#, "empty"),
            (200, r#"{"access_token":"hush\nhush"}"#, "characters"),
            (200, r#"{"access_token":"hush","token_type":"x"}"#, "bearer"),
            (200, &long, "longer"),
            (201, r#"{"access_token":"hush"}"#, "201"),
            (
                400,
                r#"{"error":"invalid_scope","x":"hush"}"#,
                "400 invalid_scope",
            ),
            (401, r#"{"error":"hush"}"#, "401; check the client's id"),
            (404, "hush", "check its URL"),
            (302, "", "check its URL"),
            (503, "hush", "later"),
        ] {
            let sentence = read_answer(status, body.as_bytes())
                .expect_err(body)
                .to_string();
            assert!(sentence.contains(words), "{sentence}");
            assert!(!sentence.contains("hush"), "{sentence}");
        }
    }
}
