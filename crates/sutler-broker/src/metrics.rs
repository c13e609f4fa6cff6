//! Metrics of operations, reloads and the audit log, one function for each event.
//!
//! Recorded through the `metrics` facade: the program installs a recorder before the broker starts, and
//! calls [`describe`]. Handles are looked up once and kept. Labels are closed sets
//! (`metrics/labels.rs`), names and meanings are in `metrics/definitions.rs`. Requests and connections
//! are counted by `sutler_server::metrics`.

mod definitions;
mod labels;

pub(crate) use labels::outcome_word;
pub use labels::{OperationLabel, ReloadKind};
pub use sutler_journal::metrics::{Metric, MetricKind};
pub use sutler_server::metrics::Success;

use ::metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use sutler_journal::{Outcome, Stats};
use sutler_server::metrics::MetricKind as ServerMetricKind;

/// Every metric of a broker, those of its server and its journal too.
pub fn metrics() -> impl Iterator<Item = Metric> {
    let server = sutler_server::metrics::METRICS.iter().map(|it| Metric {
        name: it.name,
        sort: match it.kind {
            ServerMetricKind::Counter => MetricKind::Counter,
            ServerMetricKind::Gauge => MetricKind::Gauge,
            ServerMetricKind::Histogram => MetricKind::Histogram,
        },
        unit: it.unit,
        help: it.help,
        labels: it.labels,
    });
    let own = definitions::METRICS.iter().copied();
    let journal = sutler_journal::metrics::METRICS.iter().copied();
    server.chain(own).chain(journal)
}

/// Describes every metric to the recorder. The journal also shows its counters at zero.
pub fn describe() {
    sutler_server::metrics::describe();
    sutler_journal::metrics::describe();
    definitions::METRICS.iter().for_each(Metric::describe);
}

/// Counts an attempt to replace something at run time.
pub fn reloaded(what: ReloadKind, result: Success) {
    static COUNTS: [[OnceLock<Counter>; 2]; ReloadKind::COUNT] =
        [const { [const { OnceLock::new() }; 2] }; ReloadKind::COUNT];
    COUNTS[what as usize][result as usize]
        .get_or_init(
            || counter!(definitions::RELOADS, "what" => what.word(), "result" => result.word()),
        )
        .increment(1);
}

/// Counts an attempt to write a line of the audit log.
pub fn audited(result: Success) {
    static COUNTS: [OnceLock<Counter>; 2] = [const { OnceLock::new() }; 2];
    COUNTS[result as usize]
        .get_or_init(|| counter!(definitions::AUDITED, "result" => result.word()))
        .increment(1);
}

/// Counts an accepted operation.
pub fn operation_accepted(kind: OperationLabel) {
    static COUNTS: [OnceLock<Counter>; OperationLabel::COUNT] =
        [const { OnceLock::new() }; OperationLabel::COUNT];
    COUNTS[kind as usize]
        .get_or_init(|| counter!(definitions::ACCEPTED, "kind" => kind.word()))
        .increment(1);
}

/// Counts an operation that ended. `after`: time since it was accepted.
pub fn operation_ended(kind: OperationLabel, outcome: Outcome, after: Duration) {
    static COUNTS: [[OnceLock<Counter>; 3]; OperationLabel::COUNT] =
        [const { [const { OnceLock::new() }; 3] }; OperationLabel::COUNT];
    static TIMES: [OnceLock<Histogram>; OperationLabel::COUNT] =
        [const { OnceLock::new() }; OperationLabel::COUNT];
    COUNTS[kind as usize][outcome as usize]
        .get_or_init(
            || counter!(definitions::FINISHED, "kind" => kind.word(), "outcome" => outcome_word(outcome)),
        )
        .increment(1);
    TIMES[kind as usize]
        .get_or_init(|| histogram!(definitions::OPERATION_TIMES, "kind" => kind.word()))
        .record(after.as_secs_f64());
}

/// Sets the lengths of the queues and the age of the oldest unfinished operation.
pub fn set_queue_gauges(stats: &Stats, oldest: Duration) {
    static GAUGES: LazyLock<[Gauge; 3]> = LazyLock::new(|| {
        ["waiting", "ready", "running"].map(|s| gauge!(definitions::QUEUED, "state" => s))
    });
    static OLDEST: LazyLock<Gauge> = LazyLock::new(|| gauge!(definitions::OLDEST));
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

#[cfg(test)]
mod tests {
    use super::{MetricKind, metrics};
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_has_a_unique_name_with_the_suffix_of_its_kind() {
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
}
