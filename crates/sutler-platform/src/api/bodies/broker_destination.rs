//! Where the secret of a broker is sent. A change of that must name the secret again.
//!
//! Otherwise somebody who may change a registration, and not read its secret, could have it sent to a server of their own.
//! The key of `clientIdentity` is not concerned: it never leaves the platform.

use super::broker_body::{BrokerAuthBody, BrokerBody};
use crate::api::problem::Problem;
use axum::http::Uri;
use serde_json::{Map, Value};

/// Refuses a merge patch after which a secret that it does not name would be sent elsewhere, or over a connection that is
/// checked in another way.
pub(super) fn refuse_moved_secret(
    before: &BrokerBody,
    after: &BrokerBody,
    patch: &Map<String, Value>,
) -> Result<(), Problem> {
    let Some(secret) = pointer_of_secret(&after.auth) else {
        return Ok(());
    };
    let is_named = match patch.get("auth") {
        Some(auth) => auth.pointer(secret).is_some_and(Value::is_string),
        None => false,
    };
    if is_named || !is_moved(before, after) {
        return Ok(());
    }
    let reason = "must be sent again with a change of where it is sent: of the origin of the address, of the address of \
                  tokens, or of how the certificate is checked";
    Err(Problem::broken_field(&format!("/auth{secret}"), reason))
}

/// Where the secret is, below `auth`.
fn pointer_of_secret(auth: &BrokerAuthBody) -> Option<&'static str> {
    match auth {
        BrokerAuthBody::None => None,
        BrokerAuthBody::Basic { .. } => Some("/basic/password"),
        BrokerAuthBody::Bearer { .. } => Some("/bearer/token"),
        BrokerAuthBody::ClientCredentials { .. } => Some("/oauth2/clientSecret"),
    }
}

fn is_moved(before: &BrokerBody, after: &BrokerBody) -> bool {
    let tls = |body: &BrokerBody| (body.tls.ca.clone(), body.tls.insecure_skip_verify);
    let tokens_moved = match (token_url(&before.auth), token_url(&after.auth)) {
        (Some(before), Some(after)) => !is_same_origin(before, after),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    tls(before) != tls(after) || tokens_moved || !is_same_origin(&before.url, &after.url)
}

fn token_url(auth: &BrokerAuthBody) -> Option<&str> {
    match auth {
        BrokerAuthBody::ClientCredentials { token_url, .. } => Some(token_url),
        BrokerAuthBody::None | BrokerAuthBody::Basic { .. } | BrokerAuthBody::Bearer { .. } => None,
    }
}

/// Whether both have the same scheme, host and port. What cannot be read is another origin.
fn is_same_origin(one: &str, other: &str) -> bool {
    match (origin(one), origin(other)) {
        (Some(one), Some(other)) => one == other,
        (Some(_) | None, _) => one == other,
    }
}

fn origin(url: &str) -> Option<(String, String)> {
    let url: Uri = url.parse().ok()?;
    let scheme = url.scheme_str()?.to_ascii_lowercase();
    let authority = url.authority()?.as_str().to_ascii_lowercase();
    Some((scheme, authority))
}

#[cfg(test)]
mod tests {
    use super::is_same_origin;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert!(is_same_origin(
            "https://a.example/x",
            "https://A.example/y?z"
        ));
        for other in [
            "http://a.example/x",
            "https://b.example/x",
            "https://a.example:8443/x",
            "https://a.example@b.example/x",
            "https://a.example\\@b.example/x",
            "https://a.example.b.example/x",
            "a.example/x",
        ] {
            assert!(!is_same_origin("https://a.example/x", other), "{other}");
        }
    }
}
