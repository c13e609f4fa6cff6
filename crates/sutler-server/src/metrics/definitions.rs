//! Every metric of this crate by name, with its kind, meaning and labels.

use metrics::Unit;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// Definition of one metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricKind,
    /// Unit of its values.
    pub unit: Unit,
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// Describes the metric to the recorder.
    pub fn describe(&self) {
        match self.kind {
            MetricKind::Counter => metrics::describe_counter!(self.name, self.unit, self.help),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, self.unit, self.help),
            MetricKind::Histogram => metrics::describe_histogram!(self.name, self.unit, self.help),
        }
    }
}

pub(super) const REQUESTS: &str = "sutler_http_requests_total";
pub(super) const REQUEST_TIMES: &str = "sutler_http_request_duration_seconds";
pub(super) const IN_FLIGHT: &str = "sutler_http_requests_in_flight";
pub(super) const CONNECTIONS: &str = "sutler_http_connections_open";
pub(super) const LIMITED: &str = "sutler_http_requests_limited_total";
pub(super) const AUTH_FAILURES: &str = "sutler_auth_failures_total";
pub(super) const JWKS: &str = "sutler_jwks_refreshes_total";
pub(super) const READY: &str = "sutler_ready";

const fn metric(
    name: &'static str,
    kind: MetricKind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
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

/// Every metric of this crate.
pub const METRICS: &[Metric] = &[
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
    gauge(READY, &[], "1 while /readyz answers 200, else 0."),
];
