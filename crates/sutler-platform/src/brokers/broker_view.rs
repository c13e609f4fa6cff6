//! One broker as it is now: everything that a decision about its instances or an exchange with it needs.

use super::catalog_snapshot::CatalogSnapshot;
use super::transport::BrokerTransport;
use crate::lifecycle::binding::BindingPolicy;
use crate::lifecycle::instance::InstancePolicy;
use crate::lifecycle::orphan::LATE_CREATE_MARGIN;
use crate::records::{BrokerRegistration, BrokerState};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::ReplyContext;
use sutler_client::wire::InvalidConnectionError;
use sutler_journal::{Commit, Key, Version};
use sutler_osb::PinnedPlan;
use sutler_records::RecordError;
use uuid::Uuid;

/// For how long requests to one instance are serialized after a broker asked for it.
pub const SERIALIZED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A broker.
pub struct BrokerView {
    /// As its operator registered it.
    pub registration: BrokerRegistration,
    /// Key of the registration.
    pub key: Key,
    /// Version of the registration.
    pub version: Version,
    /// What is known of it at present.
    pub state: BrokerState,
    /// Its catalog.
    pub catalog: Arc<CatalogSnapshot>,
    /// The connection to it, unless its registration allows none.
    pub transport: Result<Arc<dyn BrokerTransport>, InvalidConnectionError>,
}

/// Why there is no view of a broker.
#[derive(Debug, thiserror::Error)]
pub enum BrokerViewError {
    /// It is not registered any more.
    #[error("the broker {0} is not registered")]
    NotRegistered(Uuid),
    /// A newer version of the platform wrote its documents.
    #[error("a newer version of the platform wrote the documents of the broker {0}")]
    NewerForm(Uuid),
    /// It cannot be read now.
    #[error("the broker cannot be read")]
    Record(#[from] RecordError),
}

impl BrokerView {
    /// Adds to a commit that the broker is registered as it is seen here. Every commit that creates something of a broker
    /// needs it, and must not be made if [`BrokerRegistration::deregistering`] is set: a deregistration first marks the
    /// registration and then looks for instances, so it sees whatever was committed before, and excludes all that comes
    /// after.
    #[must_use]
    pub fn expect_registered(&self, commit: Commit) -> Commit {
        commit.unchanged(self.key.clone(), self.version)
    }

    /// Whether requests about one instance are serialized: by choice, or because the broker said that it takes one at a
    /// time (P-061).
    pub fn is_serialized(&self, now: Timestamp) -> bool {
        let learned = self.state.serialization.is_some_and(|learned| {
            let since = learned.last_conflict.duration_until(now);
            // A moment in the future is none ago: clocks of replicas differ a little.
            Duration::try_from(since).unwrap_or_default() < SERIALIZED_FOR
        });
        self.registration.options.serialize || learned
    }

    /// Choices for decisions about instances of a plan; `None`: the catalog does not have the plan.
    pub fn instance_policy(&self, plan: Option<&PinnedPlan>, lease: Duration) -> InstancePolicy {
        let options = &self.registration.options;
        InstancePolicy {
            send_within: self.registration.limits.send_within,
            exclusive: options.exclusive,
            delete_waits_for_update: options.delete_waits_for_update,
            manual_cleanup: options.manual_orphan_cleanup,
            auto_retries: options.auto_retries,
            late_create_within: self.late_create_within(lease),
            context_updates: plan.is_some_and(|plan| plan.allow_context_updates),
            retrievable: plan.is_some_and(|plan| plan.instances_retrievable),
        }
    }

    /// Choices for decisions about bindings.
    pub fn binding_policy(&self, lease: Duration) -> BindingPolicy {
        let options = &self.registration.options;
        BindingPolicy {
            send_within: self.registration.limits.send_within,
            manual_cleanup: options.manual_orphan_cleanup,
            auto_retries: options.auto_retries,
            late_create_within: self.late_create_within(lease),
            may_name_application: options.may_name_application,
            overlap: options.rotation_overlap,
        }
    }

    /// How the answer to a request is read, except whether it was sent before.
    pub fn reply_context(&self, plan: Option<&PinnedPlan>) -> ReplyContext {
        ReplyContext {
            bindings_retrievable: plan.is_none_or(|plan| plan.bindings_retrievable),
            missing_is_gone: self.registration.options.missing_is_gone,
            ..ReplyContext::default()
        }
    }

    /// How long a create whose outcome is unknown may still take effect.
    pub fn late_create_within(&self, lease: Duration) -> Duration {
        self.registration
            .limits
            .answer_within
            .saturating_add(lease)
            .saturating_add(LATE_CREATE_MARGIN)
    }
}
