//! Metrics of the platform. Recorded through the `metrics` facade; every label is a closed set of words.

use crate::lifecycle::orphan::OperatorReason;
use metrics::counter;
use sutler_journal::metrics::Metric;

const ORPHAN_ALERTS: &str = "sutler_platform_orphan_alerts_total";

/// All metrics of the platform.
pub const METRICS: &[Metric] = &[Metric::counter(
    ORPHAN_ALERTS,
    &["reason"],
    "Orphans at brokers that the platform gave up to delete, so that an operator has to, by reason.",
)];

/// Describes all metrics to the recorder, and sets counters used in alerts to zero.
pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
    for reason in [OperatorReason::TriesUsedUp, OperatorReason::AlwaysBusy] {
        counter!(ORPHAN_ALERTS, "reason" => word(reason)).increment(0);
    }
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
    use super::METRICS;
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
}
