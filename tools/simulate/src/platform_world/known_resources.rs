//! What the platform has written down: its instances, bindings and orphans, as of the last commit. And what follows from it:
//! whether it knows of something at the broker (I-5).

use super::broker_side::BrokerId;
use std::collections::BTreeMap;
use sutler_journal::{Key, OperationId};
use sutler_osb::InstanceId;
use sutler_platform::lifecycle::binding::Binding;
use sutler_platform::lifecycle::instance::{Exposure, Instance};
use sutler_platform::lifecycle::intent::IntentState;
use sutler_platform::lifecycle::orphan::OrphanState;
use sutler_platform::records::OrphanRecord;

/// Documents by their keys.
#[derive(Default)]
pub(crate) struct KnownResources {
    pub instances: BTreeMap<Key, Instance>,
    pub bindings: BTreeMap<Key, Binding>,
    pub orphans: BTreeMap<Key, OrphanRecord>,
}

impl KnownResources {
    /// Whether a document says that the broker may have this.
    pub(crate) fn knows(&self, (instance, binding): &BrokerId) -> bool {
        let is_known = match binding {
            None => self.knows_instance(instance),
            Some(binding) => self.knows_binding(binding),
        };
        is_known || self.is_on_ledger(instance, binding.as_deref())
    }

    fn knows_instance(&self, id: &str) -> bool {
        let mut instances = self.instances.values();
        instances.any(|it| {
            let may_exist = match it.exposure {
                Exposure::MayExist | Exposure::Confirmed | Exposure::Uncertain(_) => true,
                Exposure::Nothing | Exposure::OnLedger => false,
            };
            it.osb_id.as_str() == id && may_exist
        })
    }

    fn knows_binding(&self, id: &str) -> bool {
        let generations = self.bindings.values().flat_map(|it| &it.generations);
        let mut known = generations.filter(|it| it.may_exist());
        known.any(|it| it.osb_id.as_str() == id)
    }

    /// Whether the ledger has it, and does not take it for deleted.
    pub(crate) fn is_on_ledger(&self, instance: &str, binding: Option<&str>) -> bool {
        self.orphans.values().any(|it| {
            let key = &it.orphan.key;
            let is_done = matches!(it.orphan.state, OrphanState::Done { .. });
            key.instance.as_str() == instance
                && key.binding.as_ref().map(|it| it.as_str()) == binding
                && !is_done
        })
    }

    /// How far the intent of an operation has come, if it is pending.
    pub(crate) fn intent_state(&self, lane: &Key, operation: OperationId) -> Option<&IntentState> {
        let of_instance = self.instances.get(lane).and_then(|it| {
            let mut pending = it.pending.iter();
            pending.find(|it| it.operation.0 == operation.0)
        });
        let of_binding = self.bindings.get(lane).and_then(|it| {
            let mut pending = it.pending.iter();
            pending.find(|it| it.operation.0 == operation.0)
        });
        let of_binding = of_binding.map(|it| &it.state);
        of_instance.map(|it| &it.state).or(of_binding)
    }

    /// Whether the resource of a lane is no more.
    pub(crate) fn is_gone(&self, lane: &Key) -> bool {
        let instance = self.instances.get(lane).map(|it| it.tombstone.is_some());
        let binding = self.bindings.get(lane).map(|it| it.tombstone.is_some());
        instance.or(binding).unwrap_or(false)
    }

    /// Whether an instance that the broker confirmed has this id, and no delete of it is being sent.
    pub(crate) fn lives(&self, id: &str) -> bool {
        let mut instances = self.instances.values();
        instances.any(|it| {
            let exists = matches!(it.exposure, Exposure::Confirmed | Exposure::Uncertain(_));
            let is_deleted = it
                .pending
                .iter()
                .any(|it| it.change.is_delete() && matches!(it.state, IntentState::Sending { .. }));
            it.osb_id.as_str() == id && it.tombstone.is_none() && exists && !is_deleted
        })
    }

    /// Whether credentials of this binding are in use, and no unbind of it is being sent.
    pub(crate) fn binding_lives(&self, id: &str) -> bool {
        let mut bindings = self.bindings.values().filter(|it| it.tombstone.is_none());
        bindings.any(|it| {
            let mut generations = it.generations.iter();
            let found = generations.find(|it| it.osb_id.as_str() == id);
            let Some(found) = found.filter(|it| it.bound().is_some()) else {
                return false;
            };
            let is_deleted = it.pending.iter().any(|it| {
                let concerns = it.change.is_delete() || it.change.concerns(&found.osb_id);
                concerns && matches!(it.state, IntentState::Sending { .. })
            });
            !is_deleted
        })
    }

    /// Whether the ledger has an instance of this id that waits for an operator.
    pub(crate) fn is_left(&self, id: &InstanceId) -> bool {
        self.orphans.values().any(|it| {
            let waits = matches!(
                it.orphan.state,
                OrphanState::Deferred | OrphanState::NeedsOperator { .. }
            );
            it.orphan.key.instance == *id && it.orphan.key.binding.is_none() && waits
        })
    }

    /// Rows of the ledger that are being deleted, or wait for that.
    pub(crate) fn unsettled_orphans(&self) -> impl Iterator<Item = &OrphanRecord> {
        self.orphans.values().filter(|it| {
            matches!(
                it.orphan.state,
                OrphanState::Due { .. } | OrphanState::InFlight { .. }
            )
        })
    }
}
