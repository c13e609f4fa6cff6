//! Metrics of the journal: leases, takeovers, retries, calls of the store.
//!
//! Recorded through the `metrics` facade: the program installs the recorder, and without one the cost is
//! negligible. Every label is a closed set of words. A recorder must be installed before the first
//! engine starts, because handles are looked up once. Other crates define their own metrics.

use metrics::{Counter, Histogram, Unit, counter, histogram};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// Definition of one metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in Prometheus.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub sort: MetricKind,
    /// Unit of its values.
    pub unit: Unit,
    /// Description in one sentence.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// Defines a metric.
    pub const fn new(
        name: &'static str,
        sort: MetricKind,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            sort,
            unit,
            help,
            labels,
        }
    }

    /// Defines a counter.
    pub const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(name, MetricKind::Counter, Unit::Count, labels, help)
    }

    /// Defines a histogram of times.
    pub const fn times(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(name, MetricKind::Histogram, Unit::Seconds, labels, help)
    }

    /// Describes the metric to the recorder.
    pub fn describe(&self) {
        match self.sort {
            MetricKind::Counter => metrics::describe_counter!(self.name, self.unit, self.help),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, self.unit, self.help),
            MetricKind::Histogram => metrics::describe_histogram!(self.name, self.unit, self.help),
        }
    }
}

const LEASE_LOSSES: &str = "sutler_lease_losses_total";
const TAKEOVERS: &str = "sutler_takeovers_total";
const RETRIES: &str = "sutler_operation_retries_total";
const STORE_CALLS: &str = "sutler_store_call_duration_seconds";
const STORE_FAILURES: &str = "sutler_store_call_failures_total";
const GROUPS: &str = "sutler_store_commit_group_size";

/// All metrics of the journal.
pub const METRICS: &[Metric] = &[
    Metric::counter(
        LEASE_LOSSES,
        &[],
        "Leases that ran out while this process believed to hold them.",
    ),
    Metric::counter(
        TAKEOVERS,
        &[],
        "Claims of operations that were taken over before, without a memo since.",
    ),
    Metric::counter(
        RETRIES,
        &[],
        "Attempts that ended and will be followed by another one.",
    ),
    Metric::times(
        STORE_CALLS,
        &["call"],
        "How long the store took to answer, by call.",
    ),
    Metric::counter(
        STORE_FAILURES,
        &["call"],
        "Calls that the store could not serve; a commit that came second is not one of them.",
    ),
    Metric::new(
        GROUPS,
        MetricKind::Histogram,
        Unit::Count,
        &[],
        "How many writes shared one sync of the disk.",
    ),
];

/// A call of the store, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCall {
    /// `commit`
    Commit,
    /// `get`
    Get,
    /// `operation`
    Operation,
    /// `poll`
    Poll,
    /// `list`
    List,
    /// `operations`
    Operations,
    /// `renew`
    Renew,
    /// `claim`
    Claim,
    /// `changes`
    Changes,
    /// `sweep`
    Sweep,
    /// `stats`
    Stats,
    /// Any other
    Other,
}

/// Number of kinds of calls.
const CALLS: usize = StoreCall::Other as usize + 1;

impl StoreCall {
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Get => "get",
            Self::Operation => "operation",
            Self::Poll => "poll",
            Self::List => "list",
            Self::Operations => "operations",
            Self::Renew => "renew",
            Self::Claim => "claim",
            Self::Changes => "changes",
            Self::Sweep => "sweep",
            Self::Stats => "stats",
            Self::Other => "other",
        }
    }
}

/// Records the duration of a store call, and whether it was served.
pub fn record_store_call(call: StoreCall, took: Duration, served: bool) {
    static TIMES: [OnceLock<Histogram>; CALLS] = [const { OnceLock::new() }; CALLS];
    static FAILURES: [OnceLock<Counter>; CALLS] = [const { OnceLock::new() }; CALLS];
    TIMES[call as usize]
        .get_or_init(|| histogram!(STORE_CALLS, "call" => call.word()))
        .record(took.as_secs_f64());
    if !served {
        FAILURES[call as usize]
            .get_or_init(|| counter!(STORE_FAILURES, "call" => call.word()))
            .increment(1);
    }
}

/// Records the size of a group of writes that one sync made durable.
pub fn record_commit_group(writes: usize) {
    static SIZES: LazyLock<Histogram> = LazyLock::new(|| histogram!(GROUPS));
    SIZES.record(u32::try_from(writes).map_or(f64::MAX, f64::from));
}

pub(crate) fn record_lease_loss() {
    LOSSES.increment(1);
}

pub(crate) fn record_takeover() {
    TAKEN.increment(1);
}

pub(crate) fn record_retry() {
    RETRIED.increment(1);
}

static LOSSES: LazyLock<Counter> = LazyLock::new(|| counter!(LEASE_LOSSES));
static TAKEN: LazyLock<Counter> = LazyLock::new(|| counter!(TAKEOVERS));
static RETRIED: LazyLock<Counter> = LazyLock::new(|| counter!(RETRIES));

/// Describes all metrics to the recorder, and sets counters used in alerts to zero.
pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
    for counter in [&LOSSES, &TAKEN, &RETRIED] {
        counter.increment(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{METRICS, MetricKind};

    #[test]
    fn metric_names_have_the_suffix_of_their_kind() {
        for metric in METRICS {
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
