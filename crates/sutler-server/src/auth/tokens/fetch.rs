//! Fetches the keys of an issuer: bounded in time and size, without redirects.

use super::key_set::{DOCUMENT_BYTES_MAX, KeySet};
use crate::auth::AuthConfigError;
use reqwest::{Certificate, Client, Url};
use serde::Deserialize;
use std::time::Duration;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Path of the OpenID provider's configuration, below its name.
const DISCOVERY: &str = ".well-known/openid-configuration";

/// Source of an issuer's keys.
pub(super) enum KeySource {
    /// Keys from the settings.
    Fixed(KeySet),
    /// URL from OpenID Connect Discovery.
    Discovery(RemoteIssuer),
    /// URL from the settings.
    Url(RemoteIssuer, Url),
}

/// An issuer that is reached over HTTP.
pub(super) struct RemoteIssuer {
    pub issuer: String,
    pub may_be_plain: bool,
    pub client: Client,
}

/// Error while fetching keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyFetchError {
    #[error("{0} does not answer: {1}")]
    Unreachable(Url, String),
    #[error("{0} answers {1}")]
    Status(Url, u16),
    #[error("{0} sends more than {DOCUMENT_BYTES_MAX} bytes")]
    TooLong(Url),
    #[error("{0} is not the description of an OpenID provider")]
    NoDescription(Url),
    #[error(
        "the provider calls itself {0:?}; set the issuer to exactly that if it is the right one"
    )]
    OtherIssuer(String),
    #[error("the provider's jwks_uri cannot be used: it must be an https URL")]
    KeysElsewhere,
    #[error("{0} is not a key set")]
    NoKeySet(Url),
}

#[derive(Deserialize)]
struct ProviderDescription {
    issuer: String,
    jwks_uri: String,
}

impl KeySource {
    /// Name for logs.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Fixed(_) => "",
            Self::Discovery(remote) | Self::Url(remote, _) => &remote.issuer,
        }
    }

    /// Whether both fetch from the same issuer at the same URL.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Discovery(one), Self::Discovery(two)) => one.issuer == two.issuer,
            (Self::Url(one, here), Self::Url(two, there)) => {
                one.issuer == two.issuer && here == there
            }
            (Self::Fixed(_) | Self::Discovery(_) | Self::Url(..), _) => false,
        }
    }

    pub(super) async fn fetch(&self) -> Result<KeySet, KeyFetchError> {
        let (remote, url) = match self {
            Self::Fixed(keys) => return Ok(keys.clone()),
            Self::Url(remote, url) => (remote, url.clone()),
            Self::Discovery(remote) => (remote, remote.discover().await?),
        };
        let document = remote.get(&url).await?;
        KeySet::parse(&document).map_err(|_| KeyFetchError::NoKeySet(url))
    }
}

impl RemoteIssuer {
    async fn discover(&self) -> Result<Url, KeyFetchError> {
        let name = self.issuer.trim_end_matches('/');
        let url = usable(&format!("{name}/{DISCOVERY}"), self.may_be_plain);
        let url = url.ok_or(KeyFetchError::KeysElsewhere)?;
        let document = self.get(&url).await?;
        let read = serde_json::from_slice::<ProviderDescription>(&document);
        let description = read.map_err(|_| KeyFetchError::NoDescription(url))?;
        if description.issuer != self.issuer {
            let name = description.issuer.chars().take(200).collect();
            return Err(KeyFetchError::OtherIssuer(name));
        }
        usable(&description.jwks_uri, self.may_be_plain).ok_or(KeyFetchError::KeysElsewhere)
    }

    async fn get(&self, url: &Url) -> Result<Vec<u8>, KeyFetchError> {
        let unreachable =
            |error: reqwest::Error| KeyFetchError::Unreachable(url.clone(), cause(&error));
        let request = self.client.get(url.clone());
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(KeyFetchError::Status(
                url.clone(),
                response.status().as_u16(),
            ));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(KeyFetchError::TooLong(url.clone()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// The innermost cause: the outer ones only repeat that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A URL that keys may be fetched from: https, or http on this machine or where allowed; without user information,
/// which would end up in logs.
pub(super) fn usable(text: &str, may_be_plain: bool) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let safe = match url.scheme() {
        "https" => true,
        "http" => may_be_plain || is_loopback(&url),
        _ => false,
    };
    let anonymous = url.username().is_empty() && url.password().is_none();
    (safe && anonymous && url.host_str().is_some()).then_some(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}

/// HTTP client for one issuer. With authorities of its own, only those are trusted.
pub(super) fn client(authorities: Option<&[u8]>, first: &Url) -> Result<Client, AuthConfigError> {
    let mut builder = Client::builder()
        .timeout(TIMEOUT)
        .connect_timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        // Fetches are rare: a pooled connection would be dead by the next one.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("sutler/", env!("CARGO_PKG_VERSION")));
    if is_loopback(first) {
        builder = builder.no_proxy();
    }
    if let Some(pem) = authorities {
        let read = Certificate::from_pem_bundle(pem);
        let read = read.ok().filter(|it| !it.is_empty());
        builder = builder.tls_certs_only(read.ok_or(AuthConfigError::Authorities)?);
    }
    builder.build().map_err(|_| AuthConfigError::Authorities)
}

#[cfg(test)]
mod tests {
    use super::usable;

    #[test]
    fn keys_are_fetched_from_safe_urls_only() {
        let safe = [
            "https://issuer.example/keys",
            "http://127.0.0.1:9000/keys",
            "http://localhost/keys",
            "http://[::1]:9000/keys",
        ];
        for text in safe {
            assert!(usable(text, false).is_some(), "{text}");
        }
        let unsafe_ones = [
            "http://issuer.example/keys",
            "http://127.0.0.1.example/keys",
            "http://localhost.example/keys",
            "https://user:password@issuer.example/keys",
            "file:///etc/passwd",
            "data:application/json,{}",
            "issuer.example/keys",
            "",
        ];
        for text in unsafe_ones {
            assert!(usable(text, false).is_none(), "{text}");
        }
        assert!(usable("http://issuer.example/keys", true).is_some());
        assert!(usable("file:///etc/passwd", true).is_none());
    }
}
