//! What the broker counts and times, one function each; called where it happens.
//!
//! Through the `metrics` facade: who embeds the framework installs a recorder, before the broker
//! starts, and calls [`describe`]. Handles are looked up once and kept in tables, so that a request
//! costs a few additions, and nothing without a recorder. Labels are closed sets
//! (`measure/labels.rs`), names and meanings are in `measure/table.rs`.

mod labels;
mod table;

pub(crate) use labels::outcome_word;
pub use labels::{AuthFailure, Limited, OperationLabel, Reloaded, Route, Success};
pub use sutler_journal::metrics::{Metric, MetricKind};

use labels::{DISCONNECTED, STATUSES, status_index};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};
use sutler_journal::{Outcome, Stats};

/// Every metric there is, the journal's too.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    table::METRICS
        .iter()
        .chain(sutler_journal::metrics::METRICS)
}

/// Describes every metric to the recorder.
pub fn describe() {
    sutler_journal::metrics::describe();
    table::METRICS.iter().for_each(Metric::describe);
}

/// A request that is being answered: counted when it ends, also if its caller goes away.
pub struct RequestTimer {
    began: Instant,
    route: Route,
    status: usize,
}

/// A request has begun.
pub fn request_began() -> RequestTimer {
    IN_FLIGHT.increment(1.0);
    RequestTimer {
        began: Instant::now(),
        route: Route::Nowhere,
        status: DISCONNECTED,
    }
}

static IN_FLIGHT: LazyLock<Gauge> = LazyLock::new(|| gauge!(table::IN_FLIGHT));

impl RequestTimer {
    /// Where it went is known.
    pub fn routed(&mut self, route: Route) {
        self.route = route;
    }

    /// Where it went.
    pub fn route(&self) -> Route {
        self.route
    }

    /// It is answered; says how long that took.
    pub fn answered(mut self, status: u16) -> Duration {
        self.status = status_index(status);
        self.began.elapsed()
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        type Row = [OnceLock<Counter>; STATUSES.len()];
        static COUNTS: [Row; Route::COUNT] =
            [const { [const { OnceLock::new() }; STATUSES.len()] }; Route::COUNT];
        static TIMES: [OnceLock<Histogram>; Route::COUNT] =
            [const { OnceLock::new() }; Route::COUNT];
        IN_FLIGHT.decrement(1.0);
        let route = self.route;
        let status = STATUSES[self.status].1;
        COUNTS[route as usize][self.status]
            .get_or_init(|| counter!(table::REQUESTS, "route" => route.word(), "status" => status))
            .increment(1);
        TIMES[route as usize]
            .get_or_init(|| histogram!(table::REQUEST_TIMES, "route" => route.word()))
            .record(self.began.elapsed().as_secs_f64());
    }
}

/// A connection that is open until this is dropped.
pub struct OpenConnection(());

/// A connection was accepted.
pub fn connection_opened() -> OpenConnection {
    CONNECTIONS.increment(1.0);
    OpenConnection(())
}

static CONNECTIONS: LazyLock<Gauge> = LazyLock::new(|| gauge!(table::CONNECTIONS));

impl Drop for OpenConnection {
    fn drop(&mut self) {
        CONNECTIONS.decrement(1.0);
    }
}

/// A limit turned a request or a connection away.
pub fn limited(reason: Limited) {
    static COUNTS: [OnceLock<Counter>; Limited::COUNT] =
        [const { OnceLock::new() }; Limited::COUNT];
    COUNTS[reason as usize]
        .get_or_init(|| counter!(table::LIMITED, "reason" => reason.word()))
        .increment(1);
}

/// A caller was not let in.
pub fn auth_failed(reason: AuthFailure) {
    static COUNTS: [OnceLock<Counter>; AuthFailure::COUNT] =
        [const { OnceLock::new() }; AuthFailure::COUNT];
    COUNTS[reason as usize]
        .get_or_init(|| counter!(table::AUTH_FAILURES, "reason" => reason.word()))
        .increment(1);
}

/// The keys of a token issuer were asked for.
pub fn jwks_refreshed(result: Success) {
    static COUNTS: [OnceLock<Counter>; 2] = [const { OnceLock::new() }; 2];
    COUNTS[result as usize]
        .get_or_init(|| counter!(table::JWKS, "result" => result.word()))
        .increment(1);
}

/// Something was to be replaced while running.
pub fn reloaded(what: Reloaded, result: Success) {
    static COUNTS: [[OnceLock<Counter>; 2]; Reloaded::COUNT] =
        [const { [const { OnceLock::new() }; 2] }; Reloaded::COUNT];
    COUNTS[what as usize][result as usize]
        .get_or_init(|| counter!(table::RELOADS, "what" => what.word(), "result" => result.word()))
        .increment(1);
}

/// A line was to be written to the audit log.
pub fn audited(result: Success) {
    static COUNTS: [OnceLock<Counter>; 2] = [const { OnceLock::new() }; 2];
    COUNTS[result as usize]
        .get_or_init(|| counter!(table::AUDITED, "result" => result.word()))
        .increment(1);
}

/// An operation was written down.
pub fn operation_accepted(kind: OperationLabel) {
    static COUNTS: [OnceLock<Counter>; OperationLabel::COUNT] =
        [const { OnceLock::new() }; OperationLabel::COUNT];
    COUNTS[kind as usize]
        .get_or_init(|| counter!(table::ACCEPTED, "kind" => kind.word()))
        .increment(1);
}

/// An operation ended, so long after it was accepted.
pub fn operation_ended(kind: OperationLabel, outcome: Outcome, after: Duration) {
    static COUNTS: [[OnceLock<Counter>; 3]; OperationLabel::COUNT] =
        [const { [const { OnceLock::new() }; 3] }; OperationLabel::COUNT];
    static TIMES: [OnceLock<Histogram>; OperationLabel::COUNT] =
        [const { OnceLock::new() }; OperationLabel::COUNT];
    COUNTS[kind as usize][outcome as usize]
        .get_or_init(
            || counter!(table::FINISHED, "kind" => kind.word(), "outcome" => outcome_word(outcome)),
        )
        .increment(1);
    TIMES[kind as usize]
        .get_or_init(|| histogram!(table::OPERATION_TIMES, "kind" => kind.word()))
        .record(after.as_secs_f64());
}

/// The queues as they stand, and how old the oldest unfinished operation is.
pub fn queues_stand(stats: &Stats, oldest: Duration) {
    static GAUGES: LazyLock<[Gauge; 3]> = LazyLock::new(|| {
        ["waiting", "ready", "running"].map(|s| gauge!(table::QUEUED, "state" => s))
    });
    static OLDEST: LazyLock<Gauge> = LazyLock::new(|| gauge!(table::OLDEST));
    let mut sums = [0_u64; 3];
    for queue in &stats.queues {
        sums[0] += queue.waiting;
        sums[1] += queue.ready;
        sums[2] += queue.running;
    }
    for (gauge, sum) in GAUGES.iter().zip(sums) {
        gauge.set(u32::try_from(sum).map_or(f64::MAX, f64::from));
    }
    OLDEST.set(oldest.as_secs_f64());
}

/// Whether `/readyz` says yes.
pub fn ready_is(ready: bool) {
    static READY: LazyLock<Gauge> = LazyLock::new(|| gauge!(table::READY));
    READY.set(if ready { 1.0 } else { 0.0 });
}

#[cfg(test)]
mod tests {
    use super::labels::{DISCONNECTED, STATUSES, status_index};
    use super::{MetricKind, metrics};
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_has_a_name_of_its_own_that_says_what_sort_it_is() {
        let mut names = BTreeSet::new();
        for metric in metrics() {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.name.starts_with("sutler_"), "{}", metric.name);
            let counts = metric.name.ends_with("_total");
            assert_eq!(
                counts,
                metric.sort == MetricKind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn a_status_nobody_foresaw_makes_no_series_of_its_own() {
        assert_eq!(STATUSES[status_index(201)].1, "201");
        assert_eq!(STATUSES[status_index(418)].1, "other");
        assert_eq!(STATUSES[status_index(599)].1, "other");
        assert_eq!(STATUSES[DISCONNECTED].1, "disconnected");
    }
}
