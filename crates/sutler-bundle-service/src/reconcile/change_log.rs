//! Log lines and counts of changes in registries.
//!
//! Changes are decided by `sutler-registry` and written by `refresh.rs`, `deletions.rs` and
//! `catalog_publisher/push.rs`, which log them here. The counters are in `metrics.rs`.

use super::metrics;
use sutler_registry::RegistryChange;

/// Logs and counts a change. Call it once the change is written.
pub(super) fn log_change(change: &RegistryChange) {
    metrics::changed(change);
    let registry = change.registry();
    let word = change.word();
    match (change.is_trouble(), change) {
        (true, _) => tracing::warn!(registry, change = word, "{change}"),
        (false, RegistryChange::Listed { .. }) => {
            tracing::debug!(registry, change = word, "{change}")
        }
        (false, _) => tracing::info!(registry, change = word, "{change}"),
    }
}
