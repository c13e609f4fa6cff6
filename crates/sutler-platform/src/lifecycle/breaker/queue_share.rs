//! How many exchanges of one replica a broker may occupy at once, whatever its registration says. Pure, not stored.
//!
//! Whoever registers a broker chooses its limit and how long it may take to answer. So that no broker that hangs takes the
//! places of the others, each has at most a part of them, and all brokers of one namespace have that part together. Places
//! of the platform's own operations are kept apart by the engine (`EngineSettings::reserved`).

use std::num::NonZeroU32;

/// Operations that one replica runs at once, exchanges with all brokers included.
pub const RUNS_MAX: u32 = 512;
/// Part of them that one broker may have.
const PARTS: u32 = 8;

/// Most exchanges of one replica at once with one broker. `of_namespace` is the number of brokers in its namespace, which
/// share; `None`: it is registered for all namespaces. At least 1: a broker is never cut off by it.
pub fn queue_share(runs_max: u32, of_namespace: Option<u32>) -> NonZeroU32 {
    let part = runs_max.div_ceil(PARTS);
    let share = of_namespace.map_or(part, |brokers| part / brokers.max(1));
    NonZeroU32::new(share).unwrap_or(NonZeroU32::MIN)
}
