//! Every metric of the broker by name, with its kind, meaning and labels.

use metrics::Unit;
use sutler_journal::metrics::{Metric, MetricKind};

pub(super) const ACCEPTED: &str = "sutler_operations_accepted_total";
pub(super) const FINISHED: &str = "sutler_operations_finished_total";
pub(super) const OPERATION_TIMES: &str = "sutler_operation_duration_seconds";
pub(super) const QUEUED: &str = "sutler_operations_unfinished";
pub(super) const OLDEST: &str = "sutler_operations_oldest_age_seconds";
pub(super) const RELOADS: &str = "sutler_reloads_total";
pub(super) const AUDITED: &str = "sutler_audit_records_total";

/// Every metric of the broker; those of the journal and of the server are in their crates.
pub(super) const METRICS: &[Metric] = &[
    Metric::counter(
        ACCEPTED,
        &["kind"],
        "Operations written down, by what they do.",
    ),
    Metric::counter(
        FINISHED,
        &["kind", "outcome"],
        "Operations that ended, by what they did and how.",
    ),
    Metric::times(
        OPERATION_TIMES,
        &["kind"],
        "From the acceptance of an operation to its end, over all attempts.",
    ),
    Metric::new(
        QUEUED,
        MetricKind::Gauge,
        Unit::Count,
        &["state"],
        "Operations that have not ended, by state; sampled.",
    ),
    Metric::new(
        OLDEST,
        MetricKind::Gauge,
        Unit::Seconds,
        &[],
        "Age of the oldest operation that has not ended; sampled.",
    ),
    Metric::counter(
        RELOADS,
        &["what", "result"],
        "Attempts to replace something while running, by what and result.",
    ),
    Metric::counter(
        AUDITED,
        &["result"],
        "Lines for the audit log, by whether they could be written.",
    ),
];
