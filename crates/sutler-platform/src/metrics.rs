//! Metrics of the platform. Recorded through the `metrics` facade; every label is a closed set of words, except the names of
//! brokers, of which there are at most [`BROKER_LABELS_MAX`]. `census.rs` samples the gauges.

use crate::lifecycle::breaker::ExchangeOutcome;
use crate::lifecycle::orphan::OperatorReason;
use metrics::{counter, gauge, histogram};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::metrics::{Metric, MetricKind};
use sutler_journal::{Key, Outcome};

const ORPHAN_ALERTS: &str = "sutler_platform_orphan_alerts_total";
const EXCHANGES: &str = "sutler_platform_exchanges_total";
const OPERATION_TIMES: &str = "sutler_platform_operation_duration_seconds";
const OPERATIONS: &str = "sutler_platform_operations_unfinished";
const OLDEST: &str = "sutler_platform_operations_oldest_age_seconds";
const ORPHANS: &str = "sutler_platform_orphans";
const BROKERS: &str = "sutler_platform_brokers";

/// Brokers with a label of their own; exchanges with further ones are counted as those of `other`.
pub const BROKER_LABELS_MAX: usize = 100;
/// Label of all brokers that serve one namespace. No name of a broker has a colon.
const NAMESPACED: &str = "namespaced:all";
/// Label of brokers without one of their own.
const OTHER: &str = "other";
/// Verbs of the platform's operations, as labels.
const VERBS: [&str; 7] = [
    "provision",
    "update",
    "local",
    "delete",
    "bind",
    "unbind",
    "mitigate",
];

/// All metrics of the platform.
pub const METRICS: &[Metric] = &[
    Metric::counter(
        ORPHAN_ALERTS,
        &["reason"],
        "Orphans at brokers that the platform gave up to delete, so that an operator has to, by reason.",
    ),
    Metric::counter(
        EXCHANGES,
        &["broker", "outcome"],
        "Exchanges with brokers, by broker and by what they say of it.",
    ),
    Metric::times(
        OPERATION_TIMES,
        &["verb", "outcome"],
        "Time from acceptance to end of operations that a run of this process ended.",
    ),
    gauge_of(
        OPERATIONS,
        &["state"],
        "Operations that have not ended; sampled.",
    ),
    Metric::new(
        OLDEST,
        MetricKind::Gauge,
        metrics::Unit::Seconds,
        &[],
        "Age of the oldest operation that has not ended; sampled.",
    ),
    gauge_of(
        ORPHANS,
        &["state"],
        "Rows of the orphan ledger that are neither deleted nor forgotten; sampled.",
    ),
    gauge_of(
        BROKERS,
        &["breaker"],
        "Brokers by the state of their breaker; sampled.",
    ),
];

const fn gauge_of(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric::new(name, MetricKind::Gauge, metrics::Unit::Count, labels, help)
}

/// Describes all metrics to the recorder, and sets counters used in alerts to zero.
pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
    for reason in [OperatorReason::TriesUsedUp, OperatorReason::AlwaysBusy] {
        counter!(ORPHAN_ALERTS, "reason" => word(reason)).increment(0);
    }
}

/// Counts an exchange with the broker of a registration.
pub(crate) fn record_exchange(registration: Option<&Key>, outcome: ExchangeOutcome) {
    let broker = registration.map_or_else(|| OTHER.to_owned(), broker_label);
    let outcome = match outcome {
        ExchangeOutcome::Answered => "answered",
        ExchangeOutcome::Overloaded => "overloaded",
        ExchangeOutcome::Unauthorized => "unauthorized",
        ExchangeOutcome::NotTried => "not_tried",
        ExchangeOutcome::Unanswered => "unanswered",
    };
    counter!(EXCHANGES, "broker" => broker, "outcome" => outcome).increment(1);
}

/// The name of a broker of all namespaces. Those of single namespaces share one label: the page of metrics may be public,
/// and they come and go.
fn broker_label(registration: &Key) -> String {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if registration.id(0) != "-" {
        return NAMESPACED.to_owned();
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    labelled(&mut known, registration.id(1).to_owned())
}

fn labelled(known: &mut BTreeSet<String>, name: String) -> String {
    if known.contains(&name) {
        return name;
    }
    if known.len() >= BROKER_LABELS_MAX {
        return OTHER.to_owned();
    }
    known.insert(name.clone());
    name
}

/// Records the end of an operation, and the time since it was accepted.
pub(crate) fn record_operation(verb: &str, outcome: Outcome, after: Duration) {
    let verb = VERBS.into_iter().find(|it| *it == verb).unwrap_or(OTHER);
    let outcome = match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    };
    histogram!(OPERATION_TIMES, "verb" => verb, "outcome" => outcome).record(after.as_secs_f64());
}

/// Sets the numbers of operations that have not ended, and the age of the oldest.
pub(crate) fn set_operations(counts: [(&'static str, u64); 3], oldest: Duration) {
    for (state, count) in counts {
        gauge!(OPERATIONS, "state" => state).set(number(count));
    }
    gauge!(OLDEST).set(oldest.as_secs_f64());
}

/// Sets the number of rows of the ledger in a state.
pub(crate) fn set_orphans(state: &'static str, count: u64) {
    gauge!(ORPHANS, "state" => state).set(number(count));
}

/// Sets the number of brokers whose breaker has a state.
pub(crate) fn set_brokers(breaker: &'static str, count: u64) {
    gauge!(BROKERS, "breaker" => breaker).set(number(count));
}

fn number(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// Counts an orphan that needs an operator.
pub(crate) fn record_orphan_alert(reason: OperatorReason) {
    counter!(ORPHAN_ALERTS, "reason" => word(reason)).increment(1);
}

fn word(reason: OperatorReason) -> &'static str {
    match reason {
        OperatorReason::TriesUsedUp => "tries_used_up",
        OperatorReason::AlwaysBusy => "always_busy",
        OperatorReason::BrokerGone => "broker_gone",
    }
}

#[cfg(test)]
mod tests {
    use super::{BROKER_LABELS_MAX, METRICS, OTHER, labelled};
    use std::collections::BTreeSet;
    use sutler_journal::metrics::MetricKind;

    #[test]
    fn metric_names_have_the_suffix_of_their_kind() {
        for metric in METRICS {
            assert!(
                metric.name.starts_with("sutler_platform_"),
                "{}",
                metric.name
            );
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
    fn brokers_beyond_the_bound_share_one_label() {
        let mut known = BTreeSet::new();
        for number in 0..BROKER_LABELS_MAX {
            let name = format!("broker-{number}");
            assert_eq!(labelled(&mut known, name.clone()), name);
        }
        assert_eq!(labelled(&mut known, "one-more".to_owned()), OTHER);
        assert_eq!(labelled(&mut known, "broker-7".to_owned()), "broker-7");
    }
}
