//! Access tokens of one connection: fetched when needed, kept until shortly before they expire.
//!
//! Concurrent requests wait for the same fetch and share its result, whether a token or an error. `connection.rs` sends
//! a request again with another token if the broker refuses this one; the form and the answer of the token endpoint are
//! in `client_credentials.rs`.

use super::client_credentials::{AccessTokenError, ClientCredentials, read_answer};
use super::exchange::{Answer, TransportError};
use super::http_answer::{AnswerLimits, read_whole};
use super::transport_error::classify_error;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Longest answer of a token endpoint, in bytes: a token of 16 KiB in JSON.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a token request may take.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);
/// A token that was fetched just before a request cannot be the reason why it is refused: another one would be refused
/// too, and would be fetched for every request.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(5);

/// An access token.
pub(super) struct AccessToken {
    token: SecretString,
    /// When it was asked for: its life begins at the server, before its answer arrives.
    requested_at: Instant,
    usable_until: Instant,
}

impl AccessToken {
    pub(super) fn secret(&self) -> &SecretString {
        &self.token
    }

    /// Whether a request that is refused with this token may succeed with another one.
    pub(super) fn is_replaceable(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.requested_at) >= REPLACEABLE_AFTER
    }
}

type FetchResult = Result<Arc<AccessToken>, AccessTokenError>;

/// The last fetch.
struct LastFetch {
    ended_at: Instant,
    result: FetchResult,
}

impl LastFetch {
    /// The result for a request that began at `began`, if it needs no other fetch.
    fn result_for(
        &self,
        began: Instant,
        now: Instant,
        refused: Option<&Arc<AccessToken>>,
    ) -> Option<FetchResult> {
        let is_refused =
            |token: &Arc<AccessToken>| refused.is_some_and(|it| Arc::ptr_eq(it, token));
        // It ended while the request waited: the same fetch again would end the same way.
        let is_shared = self.ended_at >= began;
        match &self.result {
            Ok(token) if is_refused(token) => None,
            Ok(token) => (is_shared || now < token.usable_until).then(|| Ok(Arc::clone(token))),
            Err(error) => is_shared.then(|| Err(error.clone())),
        }
    }
}

/// Where a connection gets its access tokens from.
pub(super) struct TokenSource {
    client: ClientCredentials,
    http: reqwest::Client,
    fetched_within: Duration,
    last: Mutex<Option<LastFetch>>,
}

impl TokenSource {
    /// Tokens for a client. `http` has the TLS settings and the egress rules of the connection.
    pub(super) fn new(
        client: ClientCredentials,
        http: reqwest::Client,
        answer_within: Duration,
    ) -> Self {
        Self {
            client,
            http,
            fetched_within: FETCHED_WITHIN.min(answer_within),
            last: Mutex::default(),
        }
    }

    /// A token that can be used now.
    pub(super) async fn token(&self) -> FetchResult {
        self.token_except(None).await
    }

    /// A token other than one that was refused.
    pub(super) async fn token_instead_of(&self, refused: &Arc<AccessToken>) -> FetchResult {
        self.token_except(Some(refused)).await
    }

    async fn token_except(&self, refused: Option<&Arc<AccessToken>>) -> FetchResult {
        // Another request's fetch, and one of its own if that is cancelled.
        let within = 2 * self.fetched_within;
        match timeout(within, self.kept_or_fetched(refused)).await {
            Ok(result) => result,
            Err(_) => Err(slow(within)),
        }
    }

    async fn kept_or_fetched(&self, refused: Option<&Arc<AccessToken>>) -> FetchResult {
        let began = Instant::now();
        // Held during the fetch, so that there is only one at a time.
        let mut last = self.last.lock().await;
        let kept = last.as_ref();
        if let Some(result) = kept.and_then(|it| it.result_for(began, Instant::now(), refused)) {
            return result;
        }
        let fetched = timeout(self.fetched_within, self.fetch()).await;
        let result = match fetched {
            Ok(result) => result.map(Arc::new),
            Err(_) => Err(slow(self.fetched_within)),
        };
        *last = Some(LastFetch {
            ended_at: Instant::now(),
            result: result.clone(),
        });
        result
    }

    async fn fetch(&self) -> Result<AccessToken, AccessTokenError> {
        let requested_at = Instant::now();
        let mut outgoing = self
            .http
            .post(&self.client.token_url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(self.client.form().expose_secret().to_owned());
        if let Some((user, password)) = self.client.basic() {
            outgoing = outgoing.basic_auth(user, Some(password.expose_secret()));
        }
        let answer = self.exchange(outgoing).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        let received = read_answer(answer.status, &answer.body)?;
        Ok(AccessToken {
            token: received.token,
            requested_at,
            usable_until: requested_at + received.usable_for,
        })
    }

    async fn exchange(&self, outgoing: reqwest::RequestBuilder) -> Result<Answer, TransportError> {
        let limits = AnswerLimits {
            bytes_max: ANSWER_BYTES_MAX,
            within: self.fetched_within,
        };
        let started = std::time::Instant::now();
        let response = outgoing.send().await;
        let response = response.map_err(|error| classify_error(&error, limits.within))?;
        read_whole(response, started, limits).await
    }
}

fn unreachable(error: &TransportError) -> AccessTokenError {
    AccessTokenError(format!(
        "the token endpoint gave no answer ({error}); check its URL"
    ))
}

fn slow(within: Duration) -> AccessTokenError {
    AccessTokenError(format!(
        "the token endpoint gave no answer within {within:?}; it may work again later"
    ))
}

impl From<AccessTokenError> for TransportError {
    /// Without a token, nothing is sent to the broker.
    fn from(error: AccessTokenError) -> Self {
        Self::NotSent(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessToken, AccessTokenError, LastFetch, REPLACEABLE_AFTER};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    const SECOND: Duration = Duration::from_secs(1);

    /// A fetch that lasted one second and gave a token for ten.
    fn fetch(began: Instant) -> (LastFetch, Arc<AccessToken>) {
        let token = Arc::new(AccessToken {
            token: "t".into(),
            requested_at: began,
            usable_until: began + 10 * SECOND,
        });
        let last = LastFetch {
            ended_at: began + SECOND,
            result: Ok(Arc::clone(&token)),
        };
        (last, token)
    }

    #[tokio::test]
    async fn a_token_is_used_until_its_end() {
        let start = Instant::now();
        let (last, _) = fetch(start);
        let at = |now: Instant| last.result_for(now, now, None).is_some();
        assert!(at(start + 2 * SECOND) && at(start + 9 * SECOND));
        assert!(!at(start + 10 * SECOND));
    }

    #[tokio::test]
    async fn a_request_that_waited_for_a_fetch_shares_its_result() {
        let start = Instant::now();
        let (mut last, _) = fetch(start);
        let late = start + 60 * SECOND;
        assert!(last.result_for(start, late, None).is_some());
        last.result = Err(AccessTokenError("none".to_owned()));
        assert!(matches!(last.result_for(start, late, None), Some(Err(_))));
        assert!(last.result_for(start + 2 * SECOND, late, None).is_none());
    }

    #[tokio::test]
    async fn a_refused_token_is_not_used_again_but_its_successor_is() {
        let start = Instant::now();
        let (last, token) = fetch(start);
        let (_, other) = fetch(start);
        let now = start + 2 * SECOND;
        assert!(last.result_for(now, now, Some(&token)).is_none());
        assert!(last.result_for(start, now, Some(&token)).is_none());
        assert!(last.result_for(now, now, Some(&other)).is_some());
    }

    #[tokio::test]
    async fn only_an_older_token_may_be_the_reason_of_a_refusal() {
        let start = Instant::now();
        let (_, token) = fetch(start);
        assert!(!token.is_replaceable(start));
        assert!(!token.is_replaceable(start + REPLACEABLE_AFTER - SECOND));
        assert!(token.is_replaceable(start + REPLACEABLE_AFTER));
    }
}
