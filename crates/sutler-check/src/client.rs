//! Sends requests to the broker, records resources that they may create, and checks every answer.
//!
//! Applies `response_rules.rs` to each answer, and stops when the broker no longer answers or the caller
//! cancels.

use crate::case::Case;
use crate::created::CreatedResources;
use crate::evidence::{self, Evidence};
use crate::exchange::Exchange;
use crate::options::Options;
use crate::progress::ProgressListener;
use crate::response_rules;
use crate::verdicts::{Subject, Verdict, Verdicts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use sutler_client::wire::{Connection, Proof, Request};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Consecutive requests without an answer before the check ends.
const SILENCES_MAX: usize = 3;
/// The same in total: each may cost a whole minute.
const SILENCES_TOTAL_MAX: usize = 20;
/// Consecutive waits for an overloaded broker, and their length: the default, and
/// the maximum.
const WAITS_MAX: usize = 3;
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest sentence about a failure, in characters.
const SAID_MAX: usize = 400;

/// Why a plan run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The broker does not answer any more.
    Silent,
    /// The caller cancelled.
    Cancelled,
}

/// State shared by all plan runs.
pub(crate) struct CheckClient {
    pub connection: Connection,
    pub options: Options,
    pub verdicts: Verdicts,
    pub created: CreatedResources,
    pub stop: CancellationToken,
    pub progress: ProgressListener,
    evidence: Evidence,
    silences: AtomicUsize,
    silences_total: AtomicUsize,
    requests: AtomicUsize,
    /// Consecutive answers of an overloaded broker.
    waits: AtomicUsize,
    /// Whether a plan run has begun.
    walking: AtomicBool,
}

impl CheckClient {
    pub(crate) fn new(connection: Connection, options: Options, stop: CancellationToken) -> Self {
        Self {
            connection,
            options,
            verdicts: Verdicts::default(),
            created: CreatedResources::default(),
            stop,
            progress: ProgressListener::default(),
            evidence: Evidence::default(),
            silences: AtomicUsize::new(0),
            silences_total: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            walking: AtomicBool::new(false),
        }
    }

    /// True for the first caller only.
    pub(crate) fn is_first_walk(&self) -> bool {
        !self.walking.swap(true, Ordering::Relaxed)
    }

    /// Emits events to this listener.
    pub(crate) fn with_progress(mut self, progress: ProgressListener) -> Self {
        self.verdicts = Verdicts::with_progress(progress.clone());
        self.progress = progress;
        self
    }

    /// Number of requests sent so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether too many requests, in a row or in total, had no answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.silences.load(Ordering::Relaxed) >= SILENCES_MAX
            || self.silences_total.load(Ordering::Relaxed) >= SILENCES_TOTAL_MAX
    }

    /// Sends one request with the headers of a platform.
    pub(crate) async fn ask(&self, request: Request) -> Result<Arc<Exchange>, StopReason> {
        self.ask_bare(with_headers(request)).await
    }

    /// Sends one request unchanged.
    pub(crate) async fn ask_bare(&self, request: Request) -> Result<Arc<Exchange>, StopReason> {
        if self.is_silent() {
            return Err(StopReason::Silent);
        }
        // Requests are never cut off: the effect of one would be unknown.
        if self.stop.is_cancelled() {
            return Err(StopReason::Cancelled);
        }
        let mut answer = self.exchange(request).await;
        while let Some(wait) = requested_wait(&answer) {
            // Consecutive, over all plan runs: a broker that stays overloaded is not waited for again.
            if self.waits.fetch_add(1, Ordering::Relaxed) >= WAITS_MAX {
                return Ok(answer);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.cancelled() => return Err(StopReason::Cancelled),
            }
            answer = self.exchange(answer.request.clone()).await;
        }
        self.waits.store(0, Ordering::Relaxed);
        Ok(answer)
    }

    /// Sends a request even after a stop, because clean-up continues.
    pub(crate) async fn exchange(&self, request: Request) -> Arc<Exchange> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let outcome = self.connection.send(&request).await;
        let outcome = outcome.and_then(|it| evidence::bounded(&request, it));
        match &outcome {
            Ok(_) => self.silences.store(0, Ordering::Relaxed),
            Err(_) => {
                self.silences.fetch_add(1, Ordering::Relaxed);
                self.silences_total.fetch_add(1, Ordering::Relaxed);
            }
        }
        let exchange = Arc::new(Exchange::new(request, outcome));
        for (case, judgement) in response_rules::check(&exchange) {
            self.record(case, &Subject::Broker, &exchange, judgement);
        }
        exchange
    }

    /// Records the verdict of an exchange about a case.
    pub(crate) fn record(
        &self,
        case: &'static Case,
        subject: &Subject,
        exchange: &Arc<Exchange>,
        judgement: Result<(), String>,
    ) {
        let verdict = match judgement {
            Ok(()) => Verdict::Pass,
            Err(said) => Verdict::Fail {
                said: clipped(said),
                exchange: self.evidence.keep(exchange),
            },
        };
        self.verdicts.record(case, subject, verdict);
    }
}

/// Wait before the request may be repeated, if the broker is overloaded. A request with wrong
/// credentials on purpose is not repeated.
fn requested_wait(answer: &Exchange) -> Option<Duration> {
    if !answer.is(&[429]) || answer.request.proof != Proof::Right {
        return None;
    }
    Some(answer.wait(WAIT, WAIT_MAX))
}

/// A message of limited length, whatever it quotes from a broker.
fn clipped(said: String) -> String {
    match said.char_indices().nth(SAID_MAX) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

/// A request with the headers that every request of a platform has, unless it has its own.
pub(crate) fn with_headers(mut request: Request) -> Request {
    let has = |request: &Request, name: &str| {
        request
            .headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    if !has(&request, "X-Broker-API-Version") {
        request = request.header("X-Broker-API-Version", "2.17");
    }
    if !has(&request, "X-Broker-API-Request-Identity") {
        let id = Uuid::new_v4().to_string();
        request = request.header("X-Broker-API-Request-Identity", &id);
    }
    if request.body.is_some() && !has(&request, "Content-Type") {
        request = request.header("Content-Type", "application/json");
    }
    request
}

#[cfg(test)]
mod tests {
    use super::{Exchange, clipped, requested_wait};
    use std::time::Duration;
    use sutler_client::wire::{Answer, Method, Proof, Request};

    fn answered(status: u16, retry_after: Option<&str>, proof: Proof) -> Exchange {
        let mut answer = Answer {
            status,
            headers: Default::default(),
            body: Default::default(),
            took: Duration::ZERO,
        };
        if let Some(value) = retry_after {
            answer.headers.insert("retry-after", value.parse().unwrap());
        }
        let request = Request::new(Method::Get, &["v2", "catalog"]).proof(proof);
        Exchange::new(request, Ok(answer))
    }

    #[test]
    fn an_overloaded_broker_is_retried_after_its_retry_after() {
        let wait = |status, said, proof| requested_wait(&answered(status, said, proof));
        let seconds = |it| Some(Duration::from_secs(it));
        assert_eq!(wait(429, Some("3"), Proof::Right), seconds(3));
        assert_eq!(wait(429, Some("tomorrow"), Proof::Right), seconds(1));
        assert_eq!(wait(429, Some("86400"), Proof::Right), seconds(10));
        assert_eq!(wait(429, None, Proof::Right), seconds(1));
        assert_eq!(wait(429, Some("0"), Proof::Right), seconds(1));
        let over = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(429, over, Proof::Right), seconds(1));
        assert_eq!(wait(429, Some("3"), Proof::Wrong), None);
        assert_eq!(wait(503, Some("3"), Proof::Right), None);
    }

    #[test]
    fn a_sentence_about_a_failure_can_always_be_read() {
        assert_eq!(clipped("short".to_owned()), "short");
        assert_eq!(clipped("ä".repeat(100_000)).chars().count(), 401);
    }
}
