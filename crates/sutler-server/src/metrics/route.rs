//! Routes as metrics and the request log name them.

use super::definitions::{REQUEST_TIMES, REQUESTS};
use super::labels::STATUSES;
use metrics::{Counter, Histogram, counter, histogram};
use std::sync::OnceLock;
use std::time::Duration;

/// A route: its label in metrics, and the path with its ids left out. Define one static for each, so that
/// the set of labels is closed.
pub struct Route {
    label: &'static str,
    template: &'static str,
    quiet: bool,
    counts: [OnceLock<Counter>; STATUSES.len()],
    times: OnceLock<Histogram>,
}

/// `/healthz` and `/readyz`.
pub(crate) static HEALTH: Route = Route::quiet("health", "/healthz, /readyz");
/// `/metrics`.
pub(crate) static METRICS_PAGE: Route = Route::quiet("metrics", "/metrics");
/// No such path, or none for this method.
pub(crate) static NOWHERE: Route = Route::new("nowhere", "{…}");

impl Route {
    /// A route with this label and this path template.
    #[must_use]
    pub const fn new(label: &'static str, template: &'static str) -> Self {
        Self {
            label,
            template,
            quiet: false,
            counts: [const { OnceLock::new() }; STATUSES.len()],
            times: OnceLock::new(),
        }
    }

    /// A route whose requests are logged at level debug only.
    #[must_use]
    pub const fn quiet(label: &'static str, template: &'static str) -> Self {
        let mut route = Self::new(label, template);
        route.quiet = true;
        route
    }

    /// The label in metrics.
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// The path with its ids left out, for logs and spans.
    #[must_use]
    pub fn template(&self) -> &'static str {
        self.template
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Counts a request that ended. `status`: an index of [`STATUSES`].
    pub(super) fn record(&self, status: usize, after: Duration) {
        let word = STATUSES[status].1;
        self.counts[status]
            .get_or_init(|| counter!(REQUESTS, "route" => self.label, "status" => word))
            .increment(1);
        self.times
            .get_or_init(|| histogram!(REQUEST_TIMES, "route" => self.label))
            .record(after.as_secs_f64());
    }
}
