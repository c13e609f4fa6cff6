//! The writes of a synced catalog, in batches that each fit into one commit. Pure but for sealing.
//!
//! A read between two batches finds no plan without its offering: offerings come before their plans, and are removed
//! after them.

use crate::catalog::{ItemChange, PlanKey, SyncPlan};
use crate::platform_records::PlatformRecords;
use crate::records::{CatalogRecord, Record};
use sutler_journal::{Key, SealContext, WRITES_MAX, Write};
use sutler_osb::ServiceId;
use uuid::Uuid;

/// Most items in one commit: the state of the broker and the operation are written with them.
const ITEMS_MAX: usize = WRITES_MAX - 10;
/// Most bytes of items in one commit, unless a single one is longer: the state of the broker has room beside them, which
/// may list a hundred faults.
const ITEMS_BYTES_MAX: usize = 400_000;

/// What is written of one item; without contents it is deleted.
#[derive(Debug, PartialEq)]
pub(super) struct ItemWrite {
    key: Key,
    contents: Option<CatalogRecord>,
}

/// All items to write, in their order.
pub(super) fn item_writes(
    records: &PlatformRecords,
    broker: Uuid,
    plan: &SyncPlan,
) -> Vec<ItemWrite> {
    let keys = &records.keys;
    let service_key = |id: &ServiceId| keys.service_offering(broker, id);
    let plan_key = |id: &PlanKey| keys.service_plan(broker, &id.service_id, &id.plan_id);
    let (mut offered, mut marked, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    for (id, change) in &plan.services {
        let contents = change.to_write().cloned().map(CatalogRecord::Service);
        let write = ItemWrite {
            key: service_key(id),
            contents,
        };
        match change {
            ItemChange::Added(_) | ItemChange::Changed(_) | ItemChange::Returned(_) => {
                offered.push(write);
            }
            ItemChange::Removed(_) => marked.push(write),
            ItemChange::Dropped => dropped.push(write),
            ItemChange::Unchanged | ItemChange::Unusable => {}
        }
    }
    let (mut plans, mut dropped_plans) = (Vec::new(), Vec::new());
    for (id, change) in &plan.plans {
        let contents = change.to_write().cloned().map(CatalogRecord::Plan);
        let write = ItemWrite {
            key: plan_key(id),
            contents,
        };
        match change {
            ItemChange::Added(_)
            | ItemChange::Changed(_)
            | ItemChange::Returned(_)
            | ItemChange::Removed(_) => plans.push(write),
            ItemChange::Dropped => dropped_plans.push(write),
            ItemChange::Unchanged | ItemChange::Unusable => {}
        }
    }
    let stages = [offered, plans, marked, dropped_plans, dropped];
    stages.into_iter().flatten().collect()
}

/// Seals items, and divides them into batches.
pub(super) fn batches(records: &PlatformRecords, items: Vec<ItemWrite>) -> Vec<Vec<Write>> {
    let mut batches: Vec<Vec<Write>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        let (write, length) = sealed(records, item);
        match batches.last_mut() {
            Some(batch) if batch.len() < ITEMS_MAX && bytes + length <= ITEMS_BYTES_MAX => {
                bytes += length;
                batch.push(write);
            }
            Some(_) | None => {
                bytes = length;
                batches.push(vec![write]);
            }
        }
    }
    batches
}

/// The write of an item, and its length in bytes.
fn sealed(records: &PlatformRecords, item: ItemWrite) -> (Write, usize) {
    let ItemWrite { key, contents } = item;
    let Some(contents) = contents else {
        return (Write::Remove(key), 0);
    };
    let contents = Record::of(contents);
    let documents = &records.documents;
    let body = documents.seal(SealContext::Document(&key), &contents);
    let terms = documents.terms_of(&key, &contents);
    let of_terms: usize = terms.iter().map(|term| term.value.len()).sum();
    let length = key.as_bytes().len() + of_terms + body.len();
    (Write::Put { key, terms, body }, length)
}
