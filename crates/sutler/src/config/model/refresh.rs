//! Refresh of registries, and withdrawal of bundles that are no longer listed.

use crate::config::value_types::DurationText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How registries are asked, and what becomes of what they do not have any more.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Refresh")]
pub struct RefreshConfig {
    /// How long after they were asked registries are asked again. They are also asked at the start.
    pub every: DurationText,
    /// How many items of one registry are looked at together.
    pub at_once: usize,
    /// How long a bundle that its registry does not have any more is kept, although no instance needs it.
    pub grace: DurationText,
    /// How often it is looked for bundles that may be deleted.
    pub delete_every: DurationText,
    /// After how many failures in a row the unused bundles of a registry are withdrawn; never, if none is given.
    pub withdraw_after_failures: Option<u32>,
    /// How long a provision waits whose plan is not known while registries are asked.
    pub wait: DurationText,
    /// How many provisions may wait so, on each platform.
    pub waiting: usize,
    /// How long such a request waits if it does not accept asynchronous operations.
    pub synchronous_wait: DurationText,
}

impl Default for RefreshConfig {
    fn default() -> Self {
        let patience = sutler_broker::PlanWaitLimits::default();
        Self {
            every: DurationText::seconds(600),
            at_once: sutler_registry::CONCURRENT_ITEMS,
            grace: DurationText(sutler_registry::WithdrawalRules::default().grace),
            delete_every: DurationText::seconds(3600),
            withdraw_after_failures: None,
            wait: DurationText(patience.wait),
            waiting: patience.waiting_max,
            synchronous_wait: DurationText(patience.sync_wait),
        }
    }
}
