//! How registries are asked, and what becomes of what they do not have any more.

use crate::config::words::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How registries are asked, and what becomes of what they do not have any more.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Refresh {
    /// How long after they were asked registries are asked again. They are also asked at the start.
    pub every: Span,
    /// How many items of one registry are looked at together.
    pub at_once: usize,
    /// How long a bundle that its registry does not have any more is kept, although no instance needs it.
    pub grace: Span,
    /// How often it is looked for bundles that may be deleted.
    pub delete_every: Span,
    /// After how many failures in a row the unused bundles of a registry are withdrawn; never, if none is given.
    pub withdraw_after_failures: Option<u32>,
    /// How long a provision waits whose plan is not known while registries are asked.
    pub wait: Span,
    /// How many provisions may wait so, on each platform.
    pub waiting: usize,
    /// How long such a request waits if it does not accept asynchronous operations.
    pub synchronous_wait: Span,
}

impl Default for Refresh {
    fn default() -> Self {
        let patience = sutler_broker::Patience::default();
        Self {
            every: Span::seconds(600),
            at_once: sutler_registry::CONCURRENT_ITEMS,
            grace: Span(sutler_registry::WithdrawalRules::default().grace),
            delete_every: Span::seconds(3600),
            withdraw_after_failures: None,
            wait: Span(patience.wait),
            waiting: patience.waiting_max,
            synchronous_wait: Span(patience.sync_wait),
        }
    }
}
