//! Metrics of requests and connections, one function for each event.
//!
//! Recorded through the `metrics` facade: the program installs a recorder before it serves, and calls
//! [`describe`]. Handles are looked up once and kept, so that a request costs a few additions, and almost
//! nothing without a recorder. Labels are closed sets: [`Route`] is a static of the caller, the others are
//! in `metrics/labels.rs`. Names and meanings are in `metrics/definitions.rs`.

mod definitions;
mod labels;
mod route;

pub use definitions::{METRICS, Metric, MetricKind};
pub use labels::{AuthFailure, LimitKind, Success};
pub use route::Route;

pub(crate) use route::{HEALTH, METRICS_PAGE, NOWHERE};

use crate::request_context::RequestContext;
use ::metrics::{Counter, Gauge, counter, gauge};
use labels::{DISCONNECTED, status_index};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

/// Describes every metric to the recorder.
pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
}

/// A request in progress: counted when it ends, also if the caller disconnects.
pub(crate) struct RequestTimer {
    began: Instant,
    context: Arc<RequestContext>,
    status: usize,
}

/// Counts a request that begins.
pub(crate) fn request_began(context: Arc<RequestContext>) -> RequestTimer {
    IN_FLIGHT.increment(1.0);
    RequestTimer {
        began: Instant::now(),
        context,
        status: DISCONNECTED,
    }
}

static IN_FLIGHT: LazyLock<Gauge> = LazyLock::new(|| gauge!(definitions::IN_FLIGHT));

impl RequestTimer {
    /// Sets the status of the response. Returns the time it took.
    pub(crate) fn answered(mut self, status: u16) -> Duration {
        self.status = status_index(status);
        self.began.elapsed()
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        IN_FLIGHT.decrement(1.0);
        let route = self.context.route();
        route.record(self.status, self.began.elapsed());
    }
}

/// An open connection, uncounted when dropped.
pub(crate) struct OpenConnection(());

/// Counts an accepted connection.
pub(crate) fn connection_opened() -> OpenConnection {
    CONNECTIONS.increment(1.0);
    OpenConnection(())
}

static CONNECTIONS: LazyLock<Gauge> = LazyLock::new(|| gauge!(definitions::CONNECTIONS));

impl Drop for OpenConnection {
    fn drop(&mut self) {
        CONNECTIONS.decrement(1.0);
    }
}

/// Counts a request or a connection that a limit refused.
pub fn limited(reason: LimitKind) {
    static COUNTS: [OnceLock<Counter>; LimitKind::COUNT] =
        [const { OnceLock::new() }; LimitKind::COUNT];
    COUNTS[reason as usize]
        .get_or_init(|| counter!(definitions::LIMITED, "reason" => reason.word()))
        .increment(1);
}

/// Counts a request that was not authenticated.
pub(crate) fn auth_failed(reason: AuthFailure) {
    static COUNTS: [OnceLock<Counter>; AuthFailure::COUNT] =
        [const { OnceLock::new() }; AuthFailure::COUNT];
    COUNTS[reason as usize]
        .get_or_init(|| counter!(definitions::AUTH_FAILURES, "reason" => reason.word()))
        .increment(1);
}

/// Counts a fetch of a token issuer's keys.
pub(crate) fn jwks_refreshed(result: Success) {
    static COUNTS: [OnceLock<Counter>; 2] = [const { OnceLock::new() }; 2];
    COUNTS[result as usize]
        .get_or_init(|| counter!(definitions::JWKS, "result" => result.word()))
        .increment(1);
}

/// Sets whether `/readyz` answers 200.
pub fn ready_is(ready: bool) {
    static READY: LazyLock<Gauge> = LazyLock::new(|| gauge!(definitions::READY));
    READY.set(if ready { 1.0 } else { 0.0 });
}

#[cfg(test)]
mod tests {
    use super::labels::{DISCONNECTED, STATUSES, status_index};

    #[test]
    fn an_unlisted_status_makes_no_new_series() {
        assert_eq!(STATUSES[status_index(201)].1, "201");
        assert_eq!(STATUSES[status_index(418)].1, "other");
        assert_eq!(STATUSES[status_index(599)].1, "other");
        assert_eq!(STATUSES[DISCONNECTED].1, "disconnected");
    }
}
