//! Connection to a broker: sends requests with its credentials, and reads whole answers.
//!
//! Redirects are never followed: they would send the credentials to another server. `connection_builder.rs` sets a
//! connection up; `token_source.rs` has the access tokens of OAuth2.

use super::connection_builder::ConnectionBuilder;
use super::egress::EgressPolicy;
use super::exchange::{Answer, Method, Proof, Request, TransportError};
use super::http_answer::{AnswerLimits, read_whole};
use super::server_url::url_of_target;
use super::token_source::TokenSource;
use super::transport_error::classify_error;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Password or token sent for `Proof::Wrong`.
const WRONG_SECRET: &str = "sutler-wrong-on-purpose";
/// The status of a request whose credentials are missing, wrong or expired.
const UNAUTHORIZED: u16 = 401;
/// How long after its beginning a request may be sent a second time.
const REPEATED_WITHIN: Duration = Duration::from_secs(5);

/// How requests are authenticated.
pub(super) enum Authentication {
    /// Not at all, or by the client's certificate alone.
    Anonymous,
    /// By user and password.
    Basic(String, SecretString),
    /// By a fixed token.
    Bearer(SecretString),
    /// By access tokens that are fetched.
    OAuth2(TokenSource),
}

impl Authentication {
    fn name(&self) -> &'static str {
        match self {
            Self::Anonymous => "none",
            Self::Basic(..) => "basic",
            Self::Bearer(_) => "bearer",
            Self::OAuth2(_) => "oauth2",
        }
    }
}

/// Connection to a broker. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    pub(super) http: reqwest::Client,
    /// Without a slash at the end.
    pub(super) base: String,
    pub(super) authentication: Arc<Authentication>,
    pub(super) limits: AnswerLimits,
    pub(super) skips_tls_verification: bool,
    pub(super) egress: EgressPolicy,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("base", &self.base)
            .field("authentication", &self.authentication.name())
            .field("skips_tls_verification", &self.skips_tls_verification)
            .field("egress", &self.egress)
            .finish_non_exhaustive()
    }
}

/// Header that authenticates one request.
enum Authorization<'a> {
    None,
    Basic(&'a str, &'a str),
    Bearer(&'a str),
}

impl Connection {
    /// The broker at a URL: everything before `/v2`.
    pub fn to(url: &str) -> ConnectionBuilder {
        ConnectionBuilder::new(url)
    }

    /// The broker's URL, without credentials.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether requests carry credentials.
    pub fn is_authenticated(&self) -> bool {
        !matches!(*self.authentication, Authentication::Anonymous)
    }

    /// Whether any certificate of the broker is accepted, so that it may be another server.
    pub fn skips_tls_verification(&self) -> bool {
        self.skips_tls_verification
    }

    /// How long one exchange may take.
    pub fn answer_within(&self) -> Duration {
        self.limits.within
    }

    /// Sends one request and reads its answer to the end.
    ///
    /// # Flow
    /// With OAuth2 an access token is got first, for which there is a time limit of its own: the broker always has the
    /// whole time for its answer. If the broker answers 401 and the token is older than a few seconds, the request is
    /// sent once more with another token. That is safe, since a request with invalid credentials is refused before it
    /// has an effect (RFC 9110, 15.5.2), and necessary, since tokens may be revoked or end early: such a 401 says
    /// nothing about the client, and must not count as a refusal of its credentials. A fresh token is not replaced,
    /// because its successor would be refused too.
    ///
    /// The second send begins within a few seconds of this call and has only the rest of the time for an answer;
    /// otherwise the 401 is the answer. A platform must be able to bound how late a request can take effect, e.g. to
    /// begin orphan mitigation after that, and a second send with a time of its own would double the bound.
    ///
    /// # Errors
    /// There was no complete answer: nothing was sent, or it timed out, broke off, or was too long. If there is no access
    /// token, nothing was sent, or what was sent was refused.
    pub async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        if let Some(reason) = request.unsendable() {
            return Err(TransportError::NotSent(reason));
        }
        let authorization = match (&*self.authentication, request.proof) {
            (_, Proof::Missing) | (Authentication::Anonymous, _) => Authorization::None,
            (Authentication::Basic(user, password), Proof::Right) => {
                Authorization::Basic(user, password.expose_secret())
            }
            (Authentication::Basic(user, _), Proof::Wrong) => {
                Authorization::Basic(user, WRONG_SECRET)
            }
            (Authentication::Bearer(token), Proof::Right) => {
                Authorization::Bearer(token.expose_secret())
            }
            (Authentication::OAuth2(tokens), Proof::Right) => {
                return self.send_with_token(request, tokens).await;
            }
            (Authentication::Bearer(_) | Authentication::OAuth2(_), Proof::Wrong) => {
                Authorization::Bearer(WRONG_SECRET)
            }
        };
        self.exchange(request, authorization, self.limits.within)
            .await
    }

    async fn send_with_token(
        &self,
        request: &Request,
        tokens: &TokenSource,
    ) -> Result<Answer, TransportError> {
        let began = Instant::now();
        let rest = || rest_for_repetition(began.elapsed(), self.limits.within);
        let token = tokens.token().await?;
        let is_replaceable = token.is_replaceable(tokio::time::Instant::now());
        let authorization = Authorization::Bearer(token.secret().expose_secret());
        let answer = self
            .exchange(request, authorization, self.limits.within)
            .await?;
        if answer.status != UNAUTHORIZED || !is_replaceable || rest().is_none() {
            return Ok(answer);
        }
        let token = tokens.token_instead_of(&token).await?;
        // The token may have come late.
        let Some(within) = rest() else {
            return Ok(answer);
        };
        let authorization = Authorization::Bearer(token.secret().expose_secret());
        self.exchange(request, authorization, within).await
    }

    async fn exchange(
        &self,
        request: &Request,
        authorization: Authorization<'_>,
        within: Duration,
    ) -> Result<Answer, TransportError> {
        let started = std::time::Instant::now();
        let outgoing = self.outgoing(request, authorization)?;
        let whole = async {
            let response = outgoing.send().await;
            let response = response.map_err(|error| classify_error(&error, self.limits.within))?;
            read_whole(response, started, self.limits).await
        };
        match tokio::time::timeout(within, whole).await {
            Ok(outcome) => outcome,
            Err(_) => Err(TransportError::TimedOut(self.limits.within)),
        }
    }

    fn outgoing(
        &self,
        request: &Request,
        authorization: Authorization<'_>,
    ) -> Result<reqwest::RequestBuilder, TransportError> {
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
            Method::Post => reqwest::Method::POST,
        };
        let url = url_of_target(&self.base, &request.target()).ok_or_else(|| {
            let words = "the path of this request leads to another server; check the broker's URL";
            TransportError::NotSent(words.to_owned())
        })?;
        let mut outgoing = self.http.request(method, url);
        outgoing = match authorization {
            Authorization::None => outgoing,
            Authorization::Basic(user, password) => outgoing.basic_auth(user, Some(password)),
            Authorization::Bearer(token) => outgoing.bearer_auth(token),
        };
        for (name, value) in &request.headers {
            outgoing = outgoing.header(name, value);
        }
        Ok(match &request.body {
            Some(body) => outgoing.body(Bytes::clone(body)),
            None => outgoing,
        })
    }
}

/// Time that a second send has for its answer, if it may begin so long after the call.
fn rest_for_repetition(since_began: Duration, answer_within: Duration) -> Option<Duration> {
    if since_began > REPEATED_WITHIN {
        return None;
    }
    let rest = answer_within.checked_sub(since_began)?;
    (!rest.is_zero()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::{Connection, REPEATED_WITHIN, rest_for_repetition};
    use crate::wire::{Method, Request, TransportError};
    use std::time::Duration;

    #[tokio::test]
    async fn a_request_that_leads_to_another_server_is_not_sent() {
        let mut connection = Connection::to("https://v2").build().expect("a connection");
        connection.base = "https:/".to_owned();
        let outcome = connection.send(&Request::new(Method::Get, &["v2"])).await;
        let Err(TransportError::NotSent(sentence)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(sentence.contains("another server"), "{sentence}");
    }

    #[test]
    fn a_repetition_begins_soon_and_has_the_rest_of_the_time() {
        let minute = Duration::from_secs(60);
        let rest = |since: Duration| rest_for_repetition(since, minute);
        assert_eq!(rest(Duration::ZERO), Some(minute));
        assert_eq!(rest(REPEATED_WITHIN), Some(minute - REPEATED_WITHIN));
        assert_eq!(rest(REPEATED_WITHIN + Duration::from_millis(1)), None);
        let second = Duration::from_secs(1);
        assert_eq!(rest_for_repetition(second, second), None);
        assert_eq!(rest_for_repetition(2 * second, second), None);
    }
}
