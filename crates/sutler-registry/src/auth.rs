//! Authentication at a registry: anonymous, with a password, or with tokens from a token service.
//!
//! The scheme is learned from the first challenge and remembered. Tokens are cached per scope until shortly before
//! they expire. `auth/challenge.rs` parses challenges. Credentials are sent to the registry, and to the token
//! service that it names if that is reached over TLS; to no other host.

pub(crate) mod challenge;

use crate::credentials::Credentials;
use crate::http_client::{Authorization, HttpClient, HttpRequest, HttpResponse};
use crate::http_error::{HttpError, check_status};
use challenge::Challenge;
use reqwest::Url;
use reqwest::header::WWW_AUTHENTICATE;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum length of a response of the token service, in bytes.
const TOKEN_BYTES_MAX: usize = 256 * 1024;
/// Lifetime of a token without `expires_in`, as defined by the protocol.
const TOKEN_SECONDS: u64 = 60;
/// Maximum lifetime that is accepted.
const TOKEN_SECONDS_MAX: u64 = 24 * 3600;
/// Maximum number of cached tokens.
const TOKENS_MAX: usize = 1_000;

/// Authenticated access to one registry.
pub(crate) struct RegistryAuth {
    http: Arc<HttpClient>,
    base: Url,
    credentials: Credentials,
    /// Last challenge of the registry.
    last_challenge: Mutex<Option<Challenge>>,
    tokens: Mutex<HashMap<String, AccessToken>>,
}

#[derive(Clone)]
pub(crate) struct AccessToken {
    secret: SecretString,
    until: Instant,
}

impl RegistryAuth {
    /// Access to the registry at a URL.
    pub(crate) fn new(http: Arc<HttpClient>, base: Url, credentials: Credentials) -> Self {
        Self {
            http,
            base,
            credentials,
            last_challenge: Mutex::default(),
            tokens: Mutex::default(),
        }
    }

    /// Sends a request that needs the rights of a scope, such as `repository:a/b:pull`.
    ///
    /// # Errors
    /// There is no usable response. The caller checks the status, except for a final 401, which is an error.
    pub(crate) async fn send(
        &self,
        mut request: HttpRequest,
        scope: &str,
    ) -> Result<HttpResponse, HttpError> {
        request.authorization = self.known_authorization(scope).await?;
        let response = self.http.send(&request).await?;
        if response.status != 401 {
            return Ok(response);
        }
        let Some(challenge) = challenge_in(&response) else {
            return Err(denied());
        };
        let tried_password = matches!(request.authorization, Some(Authorization::Basic(..)));
        *lock(&self.last_challenge) = Some(challenge.clone());
        request.authorization = match (&challenge, &self.credentials) {
            // These credentials were just rejected.
            (Challenge::Basic, _) if tried_password => return Err(denied()),
            (_, Credentials::Token(_)) => return Err(denied()),
            (Challenge::Basic, Credentials::Basic { user, password }) => {
                Some(Authorization::Basic(user.clone(), password.clone()))
            }
            (Challenge::Basic, Credentials::None) => {
                return Err(HttpError::Denied(
                    "requires a user and a password: add them to its configuration".to_owned(),
                ));
            }
            (
                Challenge::Bearer {
                    scope: challenged_scope,
                    ..
                },
                _,
            ) => {
                let scope = challenged_scope.as_deref().unwrap_or(scope);
                lock(&self.tokens).remove(scope);
                self.token(&challenge, scope).await?
            }
        };
        let response = self.http.send(&request).await?;
        match response.status {
            401 => Err(denied()),
            _ => Ok(response),
        }
    }

    /// Authorization to send before the registry challenges the request.
    async fn known_authorization(&self, scope: &str) -> Result<Option<Authorization>, HttpError> {
        if let Credentials::Token(token) = &self.credentials {
            return Ok(Some(Authorization::Bearer(token.clone())));
        }
        let challenge = lock(&self.last_challenge).clone();
        match (challenge, &self.credentials) {
            (Some(Challenge::Basic), Credentials::Basic { user, password }) => {
                Ok(Some(Authorization::Basic(user.clone(), password.clone())))
            }
            (Some(challenge @ Challenge::Bearer { .. }), _) => self.token(&challenge, scope).await,
            (Some(Challenge::Basic) | None, _) => Ok(None),
        }
    }

    /// Returns a token for a scope, from the cache or from the token service.
    async fn token(
        &self,
        challenge: &Challenge,
        scope: &str,
    ) -> Result<Option<Authorization>, HttpError> {
        let Challenge::Bearer { realm, service, .. } = challenge else {
            return Ok(None);
        };
        let cached = lock(&self.tokens).get(scope).cloned();
        if let Some(token) = cached.filter(|it| it.until > Instant::now()) {
            return Ok(Some(Authorization::Bearer(token.secret)));
        }
        let token = self.new_token(realm, service.as_deref(), scope).await?;
        let mut tokens = lock(&self.tokens);
        if tokens.len() >= TOKENS_MAX {
            let now = Instant::now();
            tokens.retain(|_, it| it.until > now);
        }
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(scope.to_owned(), token.clone());
        Ok(Some(Authorization::Bearer(token.secret)))
    }

    async fn new_token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<AccessToken, HttpError> {
        let mut url = self.trusted_realm(realm)?;
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", scope);
        }
        let mut request = HttpRequest::get(url, TOKEN_BYTES_MAX);
        if let Credentials::Basic { user, password } = &self.credentials {
            request.authorization = Some(Authorization::Basic(user.clone(), password.clone()));
        }
        let response = self.http.send(&request).await?;
        check_status(response.status, &response.headers, &response.body).map_err(|error| {
            match error {
                HttpError::Absent(_) | HttpError::Garbled(_) => HttpError::Silent(format!(
                    "requires tokens, and the token service answered {}: check the token service",
                    response.status
                )),
                HttpError::Denied(_) => HttpError::Denied(format!(
                    "requires tokens, and the token service refuses one ({}): check user and password",
                    response.status
                )),
                HttpError::Silent(why) => {
                    HttpError::Silent(format!("requires tokens; the token service {why}"))
                }
                other @ HttpError::TooMuch(_) => other,
            }
        })?;
        read_token(&response.body)
    }

    /// URL of the token service, if the password may be sent there.
    fn trusted_realm(&self, realm: &str) -> Result<Url, HttpError> {
        let refuse = |why: &str| {
            Err(HttpError::Denied(format!(
                "requires tokens from a service {why}: nothing is sent there; fix the `realm` of the registry"
            )))
        };
        let Ok(url) = self.base.join(realm) else {
            return refuse("that is not a URL");
        };
        let near = url.scheme() == self.base.scheme() && url.host() == self.base.host();
        match url.scheme() {
            "https" => Ok(url),
            "http" if near => Ok(url),
            _ => refuse("without TLS"),
        }
    }
}

fn denied() -> HttpError {
    HttpError::Denied("answered 401: check the credentials and what they may read".to_owned())
}

fn challenge_in(response: &HttpResponse) -> Option<Challenge> {
    let headers = response.headers.get_all(WWW_AUTHENTICATE);
    challenge::best(headers.iter().filter_map(|it| it.to_str().ok()))
}

pub(crate) fn read_token(body: &[u8]) -> Result<AccessToken, HttpError> {
    #[derive(Deserialize)]
    struct TokenBody {
        token: Option<SecretString>,
        access_token: Option<SecretString>,
        expires_in: Option<u64>,
    }
    let garbled = || {
        HttpError::Silent(
            "requires tokens, but the response contains none: check the token service".to_owned(),
        )
    };
    let body: TokenBody = serde_json::from_slice(body).map_err(|_| garbled())?;
    let secret = body.token.or(body.access_token).ok_or_else(garbled)?;
    let seconds = body.expires_in.unwrap_or(TOKEN_SECONDS);
    let seconds = seconds.clamp(TOKEN_SECONDS, TOKEN_SECONDS_MAX);
    // Expires early, because a request takes time to arrive.
    let until = Instant::now() + Duration::from_secs(seconds).mul_f64(0.8);
    Ok(AccessToken { secret, until })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_client::HttpSettings;

    fn auth(base: &str) -> RegistryAuth {
        let http = HttpClient::new(&HttpSettings::default()).expect("a way out");
        let base = Url::parse(base).expect("a URL");
        RegistryAuth::new(Arc::new(http), base, Credentials::None)
    }

    #[test]
    fn passwords_go_where_tls_is_or_to_the_same_host() {
        let secure = auth("https://registry.example/");
        assert!(secure.trusted_realm("https://auth.example/token").is_ok());
        assert!(secure.trusted_realm("/token").is_ok());
        let local = auth("http://127.0.0.1:5000/");
        assert!(local.trusted_realm("http://127.0.0.1:5001/token").is_ok());
        for (auth, realm) in [
            (&secure, "http://registry.example/token"),
            (&secure, "http://auth.example/token"),
            (&local, "http://auth.example/token"),
            (&local, "ftp://127.0.0.1/token"),
            (&secure, "https://"),
        ] {
            let refusal = auth.trusted_realm(realm).expect_err(realm);
            assert!(matches!(refusal, HttpError::Denied(_)), "{realm}");
        }
    }

    #[test]
    fn a_token_is_read_under_both_of_its_names() {
        for body in [
            r#"{"token":"x","expires_in":300}"#,
            r#"{"access_token":"x"}"#,
        ] {
            let token = read_token(body.as_bytes()).expect("a token");
            assert!(token.until > Instant::now(), "{body}");
        }
        for body in ["", "{}", r#"{"token":7}"#, "<html>"] {
            assert!(read_token(body.as_bytes()).is_err(), "{body}");
        }
    }
}
