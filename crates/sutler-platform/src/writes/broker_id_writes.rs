//! Which ids of a broker are taken, in the commit of the decision that takes or frees them.
//!
//! A resource has its ids until it is gone. The id of an instance that goes to the orphan ledger is guarded by its row from
//! then on; that of a binding stays taken until the row is done, because a broker may know bindings by their id alone.

use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::platform_records::PlatformRecords;
use crate::records::{BrokerIdRecord, Record};
use std::collections::BTreeSet;
use sutler_journal::{Commit, Key, Write};
use sutler_osb::{BindingId, InstanceId};
use sutler_records::LoadedDocument;
use uuid::Uuid;

/// Takes the id of an instance and frees the one before, as far as they differ.
pub(super) fn note_instance_id(
    records: &PlatformRecords,
    mut commit: Commit,
    before: Option<&Instance>,
    next: &Instance,
) -> Commit {
    let (before, after) = (before.and_then(instance_id), instance_id(next));
    if before == after {
        return commit;
    }
    let key = |id: &InstanceId| records.keys.broker_instance_id(next.broker, id);
    if let Some(before) = before {
        commit = commit.write(Write::Remove(key(before)));
    }
    if let Some(after) = after {
        let holder = BrokerIdRecord {
            namespace: next.namespace.clone(),
            instance: next.uid,
            binding: None,
        };
        commit = take(records, commit, &key(after), holder);
    }
    commit
}

/// Takes the ids of a binding and frees those that it has no more, except those that go to the ledger.
pub(super) fn note_binding_ids(
    records: &PlatformRecords,
    mut commit: Commit,
    broker: Uuid,
    before: Option<&Binding>,
    next: &Binding,
    on_ledger: &BTreeSet<&BindingId>,
) -> Commit {
    let before = before.map(binding_ids).unwrap_or_default();
    let after = binding_ids(next);
    let key = |id: &BindingId| records.keys.broker_binding_id(broker, id);
    for id in before.difference(&after) {
        if !on_ledger.contains(id) {
            commit = commit.write(Write::Remove(key(id)));
        }
    }
    for id in after.difference(&before) {
        let holder = BrokerIdRecord {
            namespace: next.namespace.clone(),
            instance: next.instance,
            binding: Some(next.uid),
        };
        commit = take(records, commit, &key(id), holder);
    }
    commit
}

fn take(records: &PlatformRecords, commit: Commit, key: &Key, holder: BrokerIdRecord) -> Commit {
    let was = LoadedDocument::absent();
    records
        .documents
        .put(commit, key, &was, &Record::of(holder))
}

fn instance_id(instance: &Instance) -> Option<&InstanceId> {
    instance.tombstone.is_none().then_some(&instance.osb_id)
}

/// The ids of all generations, and the one that a person chose even before it is used again.
fn binding_ids(binding: &Binding) -> BTreeSet<&BindingId> {
    if binding.tombstone.is_some() {
        return BTreeSet::new();
    }
    let generations = binding.generations.iter().map(|it| &it.osb_id);
    generations.chain(&binding.chosen_id).collect()
}
