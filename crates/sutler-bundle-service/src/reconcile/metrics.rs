//! Metrics of registries. Every process reports them from the records it last read.

use super::view::Counts;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use sutler_registry::{KnownRegistry, RegistryChange};

const LISTED: &str = "sutler_registry_listed_timestamp_seconds";
const ITEMS: &str = "sutler_registry_items";
const WITHDRAWN: &str = "sutler_registry_withdrawn_specs";
const FAULTY: &str = "sutler_registry_faulty_items";
const FAILURES: &str = "sutler_registry_failed_refreshes";
const CHANGES: &str = "sutler_registry_changes_total";
const UNWRITTEN: &str = "sutler_registry_unwritten_refreshes_total";

/// Names of all registry metrics.
pub const REGISTRY_METRICS: [&str; 7] = [
    LISTED, ITEMS, WITHDRAWN, FAULTY, FAILURES, CHANGES, UNWRITTEN,
];

/// Registers the description of each metric.
pub(super) fn describe() {
    describe_gauge!(
        LISTED,
        "When a registry was last listed completely, in seconds since 1970."
    );
    describe_gauge!(ITEMS, "Items of the last complete listing of a registry.");
    describe_gauge!(WITHDRAWN, "Specs that are withdrawn and not deleted yet.");
    describe_gauge!(FAULTY, "Items that could not be read at the last refresh.");
    describe_gauge!(
        FAILURES,
        "Refreshes in a row in which a registry could not be listed."
    );
    describe_counter!(
        CHANGES,
        "Changes by refreshes and deletions, what could not be read included."
    );
    describe_counter!(
        UNWRITTEN,
        "Refreshes by this process whose findings could not be written down."
    );
    counter!(UNWRITTEN).absolute(0);
}

/// Counts a refresh whose findings could not be written.
pub(super) fn unwritten() {
    counter!(UNWRITTEN).increment(1);
}

/// Counts a stored change.
pub(super) fn changed(change: &RegistryChange) {
    let registry = change.registry().to_owned();
    counter!(CHANGES, "registry" => registry, "change" => change.word()).increment(1);
}

/// Reports the state of a registry.
pub(super) fn standing(registry: &str, known: &KnownRegistry, counts: Counts) {
    let set = |name: &'static str, count: usize| {
        let count = u32::try_from(count).map_or(f64::MAX, f64::from);
        gauge!(name, "registry" => registry.to_owned()).set(count);
    };
    if let Some(listed) = known.listed {
        let seconds = listed.as_second() as f64;
        gauge!(LISTED, "registry" => registry.to_owned()).set(seconds);
    }
    set(ITEMS, known.items);
    set(WITHDRAWN, counts.withdrawn);
    set(FAULTY, counts.faulty + known.unread.len());
    set(FAILURES, known.failures as usize);
}
