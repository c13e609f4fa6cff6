//! What the platform has written down: its instances, bindings and orphans, as of the last commit. And what follows from it:
//! whether it knows of something at the broker (I-5).

use super::broker_side::BrokerId;
use std::collections::BTreeMap;
use sutler_journal::Key;
use sutler_platform::lifecycle::binding::Binding;
use sutler_platform::lifecycle::instance::{Exposure, Instance};
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
