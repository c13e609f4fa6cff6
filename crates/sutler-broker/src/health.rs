//! Whether the broker lives and can work: `/healthz` and `/readyz`.
//!
//! A loop looks at the store and the lease once a second and keeps what it found; a probe only reads
//! that, so nobody can load the store by asking. The same loop samples the queues for `measure.rs`.
//! Strangers may ask, so an answer is one sentence and names nothing.

use crate::content::Content;
use crate::http::Reply;
use crate::measure::{self, Route};
use crate::observe;
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use sutler_journal::{Commit, Engine, Key, MeteredStore, Store};
use tokio::time::{Instant, timeout};

/// How often the store and the lease are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the broker says it is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How often the queues are counted: that reads every unfinished operation.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// What the last look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Readiness {
    Ready,
    Draining,
    NoLease,
    StoreSilent,
    StoreReadOnly,
}

impl Readiness {
    const ALL: [Self; 5] = [
        Self::Ready,
        Self::Draining,
        Self::NoLease,
        Self::StoreSilent,
        Self::StoreReadOnly,
    ];

    fn sentence(self) -> &'static str {
        match self {
            Self::Ready => "The broker is ready.\n",
            Self::Draining => "The broker is stopping; ask another one.\n",
            Self::NoLease => "The broker has lost its lease and is taking a new one; ask again.\n",
            Self::StoreSilent => "The broker's store does not answer; its operator can see why.\n",
            Self::StoreReadOnly => {
                "The broker's store takes no writes; its operator can see why.\n"
            }
        }
    }
}

/// What a look saw.
#[derive(Clone, Copy, Debug)]
struct Look {
    stopping: bool,
    lease: bool,
    reads: bool,
    writes: bool,
}

/// What follows from a look.
fn judge(look: Look) -> Readiness {
    match look {
        Look { stopping: true, .. } => Readiness::Draining,
        Look { reads: false, .. } => Readiness::StoreSilent,
        Look { writes: false, .. } => Readiness::StoreReadOnly,
        Look { lease: false, .. } => Readiness::NoLease,
        Look { .. } => Readiness::Ready,
    }
}

/// The last thing known. It was ready when it started: its keys were proved against the store.
pub(crate) struct Health(AtomicU8);

impl Default for Health {
    fn default() -> Self {
        Self(AtomicU8::new(Readiness::Ready as u8))
    }
}

impl Health {
    /// The broker was told to stop: say so from now on.
    pub(crate) fn draining(&self) {
        self.keep(Readiness::Draining);
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let kept = self.0.load(Ordering::Relaxed);
        Readiness::ALL[usize::from(kept).min(Readiness::ALL.len() - 1)]
    }

    fn keep(&self, found: Readiness) {
        let before = self.readiness();
        if before == found || before == Readiness::Draining {
            return;
        }
        self.0.store(found as u8, Ordering::Relaxed);
        measure::ready_is(found == Readiness::Ready);
        match found {
            Readiness::Ready => tracing::info!("ready again"),
            Readiness::Draining => tracing::info!("no longer ready: stopping"),
            Readiness::NoLease | Readiness::StoreSilent | Readiness::StoreReadOnly => {
                tracing::warn!(reason = found.sentence().trim_end(), "not ready");
            }
        }
    }

    /// `/healthz`: the process answers, so it lives.
    pub(crate) fn alive() -> Reply {
        page(StatusCode::OK, "The broker lives.\n")
    }

    /// `/readyz`
    pub(crate) fn ready(&self) -> Reply {
        let readiness = self.readiness();
        if readiness == Readiness::Ready {
            return page(StatusCode::OK, readiness.sentence());
        }
        let mut reply = page(StatusCode::SERVICE_UNAVAILABLE, readiness.sentence());
        let again = HeaderValue::from_static("1");
        reply.headers_mut().insert(RETRY_AFTER, again);
        reply
    }
}

/// What anybody may ask: whether the broker lives, whether it is ready, and what it measures.
#[derive(Clone, Default)]
pub(crate) struct Probes {
    pub health: Arc<Health>,
    /// Makes the page of metrics.
    pub metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// Whether it is shown on the broker's own port.
    pub public_metrics: bool,
}

impl Probes {
    /// Answers, if one of them is asked for.
    pub(crate) fn answer(&self, method: &Method, path: &str) -> Option<Reply> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        match path {
            "/healthz" => {
                observe::routed(Route::Health);
                Some(Health::alive())
            }
            "/readyz" => {
                observe::routed(Route::Health);
                Some(self.health.ready())
            }
            "/metrics" if self.public_metrics => self.metrics(),
            _ => None,
        }
    }

    /// The metrics, wherever they are shown; `None` if nobody keeps them.
    pub(crate) fn metrics(&self) -> Option<Reply> {
        let text = self.metrics.as_ref()?();
        observe::routed(Route::Metrics);
        let mut reply = page(StatusCode::OK, text);
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        reply.headers_mut().insert(CONTENT_TYPE, format);
        Some(reply)
    }
}

fn page(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Content::of(text));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// What the loop looks at.
pub(crate) struct Watched {
    pub health: Arc<Health>,
    pub store: Arc<MeteredStore>,
    pub engine: Engine,
    /// A document that is there, to be read.
    pub canary: Key,
    /// One that may be written while writes fail, to see whether they still do.
    pub probe: Key,
}

/// Looks again and again, until the engine is told to stop.
pub(crate) async fn watch(watched: Watched) {
    measure::ready_is(true);
    let mut counted: Option<Instant> = None;
    loop {
        let look = watched.look().await;
        watched.health.keep(judge(look));
        if look.stopping {
            return;
        }
        if counted.is_none_or(|at| at.elapsed() >= COUNT_EVERY) && look.reads {
            watched.count().await;
            counted = Some(Instant::now());
        }
        // Lets go of the store at once: whoever stopped the broker may want to open it again.
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = watched.engine.stopping() => {}
        }
    }
}

impl Watched {
    async fn look(&self) -> Look {
        let read = timeout(ANSWER_WITHIN, self.store.get(&self.canary)).await;
        let reads = matches!(read, Ok(Ok(_)));
        let writes = !self.store.last_write_failed() || self.write().await;
        Look {
            stopping: self.engine.is_stopping(),
            lease: self.engine.holds_lease(),
            reads,
            writes,
        }
    }

    /// Only while writes fail: one more, of a few bytes.
    async fn write(&self) -> bool {
        let commit = match self.store.get(&self.probe).await {
            Ok(None) => Commit::new().insert(self.probe.clone(), Vec::new(), Bytes::new()),
            Ok(Some(there)) => {
                Commit::new().replace(self.probe.clone(), there.version, Vec::new(), Bytes::new())
            }
            Err(_) => return false,
        };
        let _ = timeout(ANSWER_WITHIN, self.store.commit(&commit)).await;
        !self.store.last_write_failed()
    }

    async fn count(&self) {
        match timeout(ANSWER_WITHIN, self.store.stats()).await {
            Ok(Ok(stats)) => measure::queues_stand(&stats, self.oldest(&stats).await),
            Ok(Err(error)) => tracing::debug!(%error, "the queues could not be counted"),
            Err(_) => tracing::debug!("the queues could not be counted in time"),
        }
    }

    /// The age of the oldest operation that is not done.
    async fn oldest(&self, stats: &sutler_journal::Stats) -> Duration {
        let Some(oldest) = stats.queues.iter().map(|queue| queue.oldest).min() else {
            return Duration::ZERO;
        };
        match self.store.now().await {
            Ok(now) => now.since(oldest),
            Err(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, Look, Readiness, judge};
    use hyper::StatusCode;

    const WELL: Look = Look {
        stopping: false,
        lease: true,
        reads: true,
        writes: true,
    };

    #[test]
    fn ready_means_that_the_store_answers_the_lease_holds_and_nothing_stops() {
        let cases = [
            (WELL, Readiness::Ready),
            (
                Look {
                    stopping: true,
                    reads: false,
                    ..WELL
                },
                Readiness::Draining,
            ),
            (
                Look {
                    lease: false,
                    ..WELL
                },
                Readiness::NoLease,
            ),
            (
                Look {
                    reads: false,
                    lease: false,
                    ..WELL
                },
                Readiness::StoreSilent,
            ),
            (
                Look {
                    writes: false,
                    ..WELL
                },
                Readiness::StoreReadOnly,
            ),
        ];
        for (look, expected) in cases {
            assert_eq!(judge(look), expected, "{look:?}");
        }
    }

    #[test]
    fn a_broker_that_stops_is_not_ready_again() {
        let health = Health::default();
        assert_eq!(health.ready().status(), StatusCode::OK);
        health.draining();
        health.keep(Readiness::Ready);
        assert_eq!(health.ready().status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(Health::alive().status(), StatusCode::OK);
    }
}
