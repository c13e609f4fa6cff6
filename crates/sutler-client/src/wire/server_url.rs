//! URLs of brokers and token endpoints: parsed, checked, and without credentials. Pure.
//!
//! A refusal is a sentence with advice and no secrets; `connection_builder.rs` makes it an error.

use super::egress::{EgressPolicy, check_literal};
use reqwest::Url;

/// What a URL belongs to.
#[derive(Clone, Copy)]
enum UrlOwner {
    Broker,
    TokenEndpoint,
}

impl UrlOwner {
    fn invalid_url(self, reason: &str) -> String {
        let (name, example) = match self {
            Self::Broker => ("broker", "https://broker.example:8080"),
            Self::TokenEndpoint => ("token endpoint", "https://uaa.example/oauth/token"),
        };
        format!("the {name}'s URL {reason}, such as {example}")
    }
}

/// The broker's URL up to its version, without a slash at the end.
pub(super) fn broker_url(url: &str, egress: &EgressPolicy) -> Result<String, String> {
    let mut parsed = checked_url(UrlOwner::Broker, url, egress)?;
    if parsed.query().is_some() {
        return Err(UrlOwner::Broker.invalid_url("must end with its path"));
    }
    // Of the path only: a host may be named `v2` too.
    let path = parsed.path().trim_end_matches('/');
    let path = path.strip_suffix("/v2").unwrap_or(path).to_owned();
    parsed.set_path(&path);
    let base = parsed.as_str();
    // An empty path is printed as a slash.
    let end = if path.is_empty() { "/" } else { "" };
    Ok(base.strip_suffix(end).unwrap_or(base).to_owned())
}

/// The URL of a target, unless it is at another server than the base.
pub(super) fn url_of_target(base: &str, target: &str) -> Option<Url> {
    let url = Url::parse(&format!("{base}{target}")).ok()?;
    let origin = Url::parse(base).ok()?.origin();
    (url.origin() == origin).then_some(url)
}

/// The URL of a token endpoint, which may have a query (RFC 6749, 3.2).
pub(super) fn token_url(url: &str, egress: &EgressPolicy) -> Result<Url, String> {
    checked_url(UrlOwner::TokenEndpoint, url, egress)
}

fn checked_url(owner: UrlOwner, url: &str, egress: &EgressPolicy) -> Result<Url, String> {
    let refuse = |reason: &str| Err(owner.invalid_url(reason));
    let Ok(parsed) = Url::parse(url) else {
        return refuse("cannot be read; it must be a whole URL");
    };
    if !matches!(parsed.scheme(), "http" | "https") {
        return refuse("must begin with http:// or https://");
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return refuse("must not hold a user or a password; give them apart");
    }
    if parsed.fragment().is_some() {
        return refuse("must end with its path");
    }
    check_literal(&parsed, egress).map_err(|error| error.to_string())?;
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::{broker_url, token_url, url_of_target};
    use crate::wire::EgressPolicy;

    #[test]
    fn a_url_is_taken_up_to_its_version() {
        let base = |url: &str| broker_url(url, &EgressPolicy::Anywhere);
        for (url, expected) in [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("http://127.0.0.1/cf/v2/", "http://127.0.0.1/cf"),
            ("http://127.0.0.1/v2/v2", "http://127.0.0.1/v2"),
            ("http://127.0.0.1/a%2Fb/v2", "http://127.0.0.1/a%2Fb"),
            ("https://v2", "https://v2"),
            ("https://v2/", "https://v2"),
            ("https://v2/v2", "https://v2"),
            ("https://v2:8443/v2/", "https://v2:8443"),
        ] {
            assert_eq!(base(url).as_deref(), Ok(expected));
        }
        for unusable in [
            "127.0.0.1:8080",
            "ftp://x",
            "http://u:p@x",
            "http://x?y",
            "http://x#y",
        ] {
            assert!(base(unusable).is_err(), "{unusable}");
        }
    }

    #[test]
    fn a_target_is_at_the_server_of_its_base() {
        let url = url_of_target("https://x:8443/cf", "/v2/catalog?a=b").map(String::from);
        assert_eq!(url.as_deref(), Some("https://x:8443/cf/v2/catalog?a=b"));
        for (base, target) in [
            ("https:/", "/v2/catalog"),
            ("https:/", "/evil.example"),
            ("https://x", ".evil.example/v2"),
            ("https://x", "@evil.example/v2"),
            ("https://x:80", "80/v2"),
        ] {
            assert_eq!(url_of_target(base, target), None, "{base} {target}");
        }
    }

    #[test]
    fn the_url_of_a_token_endpoint_may_have_a_query_and_no_fragment() {
        let checked = |url: &str| token_url(url, &EgressPolicy::Anywhere);
        let url = checked("http://127.0.0.1/oauth/token?zone=a").map(String::from);
        assert_eq!(url.as_deref(), Ok("http://127.0.0.1/oauth/token?zone=a"));
        for unusable in [
            "uaa.example/token",
            "ftp://x",
            "http://u:hush@x",
            "http://x#y",
        ] {
            let refusal = checked(unusable).expect_err(unusable);
            assert!(refusal.contains("token endpoint"), "{refusal}");
            assert!(!refusal.contains("hush"), "{refusal}");
        }
    }
}
