//! Every metric of the broker by name: what it is, what it means, which labels it has.

use metrics::Unit;
use sutler_journal::metrics::{Metric, MetricKind};

pub(super) const REQUESTS: &str = "sutler_http_requests_total";
pub(super) const REQUEST_TIMES: &str = "sutler_http_request_duration_seconds";
pub(super) const IN_FLIGHT: &str = "sutler_http_requests_in_flight";
pub(super) const CONNECTIONS: &str = "sutler_http_connections_open";
pub(super) const LIMITED: &str = "sutler_http_requests_limited_total";
pub(super) const AUTH_FAILURES: &str = "sutler_auth_failures_total";
pub(super) const JWKS: &str = "sutler_jwks_refreshes_total";
pub(super) const ACCEPTED: &str = "sutler_operations_accepted_total";
pub(super) const FINISHED: &str = "sutler_operations_finished_total";
pub(super) const OPERATION_TIMES: &str = "sutler_operation_duration_seconds";
pub(super) const QUEUED: &str = "sutler_operations_unfinished";
pub(super) const OLDEST: &str = "sutler_operations_oldest_age_seconds";
pub(super) const RELOADS: &str = "sutler_reloads_total";
pub(super) const READY: &str = "sutler_ready";
pub(super) const AUDITED: &str = "sutler_audit_records_total";

const fn metric(
    name: &'static str,
    sort: MetricKind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        sort,
        unit,
        help,
        labels,
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    metric(name, MetricKind::Counter, Unit::Count, labels, help)
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(name, MetricKind::Gauge, Unit::Count, labels, help)
}

const fn times(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(name, MetricKind::Histogram, Unit::Seconds, labels, help)
}

/// Everything the broker measures, besides what its journal does.
pub(super) const METRICS: &[Metric] = &[
    counter(
        REQUESTS,
        &["route", "status"],
        "Requests answered, by endpoint and status.",
    ),
    times(
        REQUEST_TIMES,
        &["route"],
        "From the head of a request to its answer, by endpoint.",
    ),
    gauge(IN_FLIGHT, &[], "Requests that are being answered."),
    gauge(CONNECTIONS, &[], "Connections that are open."),
    counter(
        LIMITED,
        &["reason"],
        "Requests and connections turned away by a limit, by which.",
    ),
    counter(
        AUTH_FAILURES,
        &["reason"],
        "Callers that were not let in, by why.",
    ),
    counter(
        JWKS,
        &["result"],
        "Attempts to fetch the keys of a token issuer, by result.",
    ),
    counter(
        ACCEPTED,
        &["kind"],
        "Operations written down, by what they do.",
    ),
    counter(
        FINISHED,
        &["kind", "outcome"],
        "Operations that ended, by what they did and how.",
    ),
    times(
        OPERATION_TIMES,
        &["kind"],
        "From the acceptance of an operation to its end, over all attempts.",
    ),
    gauge(
        QUEUED,
        &["state"],
        "Operations that have not ended, by state; sampled.",
    ),
    metric(
        OLDEST,
        MetricKind::Gauge,
        Unit::Seconds,
        &[],
        "Age of the oldest operation that has not ended; sampled.",
    ),
    counter(
        RELOADS,
        &["what", "result"],
        "Attempts to replace something while running, by what and result.",
    ),
    gauge(READY, &[], "1 while /readyz answers 200, else 0."),
    counter(
        AUDITED,
        &["result"],
        "Lines for the audit log, by whether they could be written.",
    ),
];
