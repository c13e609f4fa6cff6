//! Metrics for Prometheus: the recorder of the process, and the scraped page.

use super::TelemetryError;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::time::Duration;
use sutler_broker::metrics;

/// Buckets of durations, from half a millisecond (polls) to ten minutes (databases).
const SECONDS: [f64; 18] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 600.0,
];
/// Buckets of commits per sync.
const GROUPS: [f64; 11] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
];
/// Interval at which histogram samples are aggregated; they use memory until then.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The recorder.
pub(super) struct MetricsRecorder(PrometheusHandle);

impl MetricsRecorder {
    /// Installs the recorder; must be called before the broker starts.
    pub(super) fn install() -> Result<Self, TelemetryError> {
        let suffix = |text: &str| Matcher::Suffix(text.to_owned());
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(suffix("_seconds"), &SECONDS)
            .and_then(|it| it.set_buckets_for_metric(suffix("_group_size"), &GROUPS))
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|_| TelemetryError::Twice)?;
        metrics::describe();
        let upkeep = handle.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP_EVERY).await;
                upkeep.run_upkeep();
            }
        });
        Ok(Self(handle))
    }

    pub(super) fn page(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let handle = self.0.clone();
        move || handle.render()
    }
}
