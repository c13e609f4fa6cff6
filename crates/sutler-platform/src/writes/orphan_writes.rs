//! A new row of the orphan ledger, in the commit of the decision that found it.

use super::operation_changes::{OperationChange, OperationWriter, ScrubbedOperations};
use crate::context::fresh_uuid;
use crate::lifecycle::intent::IntentNumber;
use crate::lifecycle::orphan::{self, NewOrphan, Orphan, OrphanEffect, OrphanEvent, OrphanState};
use crate::platform_records::PlatformRecords;
use crate::records::{IntentRequest, OrphanRecord, Record, broker_queue};
use jiff::Timestamp;
use sutler_journal::{Commit, Due, OperationId, Start, Write};
use sutler_records::{LoadedDocument, RecordError};

/// Verb of the operations that delete orphans.
pub(crate) const MITIGATE: &str = "mitigate";

/// Adds a row to the ledger, with the operation that deletes it, and whether the broker may have got values of secrets. A
/// row of the same ids is found again.
///
/// # Errors
/// The row cannot be read.
pub(crate) async fn add_new_orphan(
    records: &PlatformRecords,
    commit: Commit,
    (found, has_secrets): (NewOrphan, bool),
    now: Timestamp,
) -> Result<Commit, RecordError> {
    let lane = records.keys.orphan(&found.key);
    let queue = broker_queue(found.key.broker);
    let was = records.load::<OrphanRecord>(&lane).await?;
    let (row, operation, known) = match was.state.get().cloned() {
        Some(record) => (Some(record.orphan), record.operation, record.has_secrets),
        None => (None, None, false),
    };
    let event = OrphanEvent::Found(Box::new(found));
    let Ok(decision) = orphan::decide(row, event, now) else {
        return Ok(commit);
    };
    let mut record = OrphanRecord {
        orphan: decision.next,
        operation,
        has_secrets: has_secrets || known,
    };
    let mut changes = Vec::new();
    for effect in decision.effects {
        match effect {
            OrphanEffect::Start(wait) => {
                let id = OperationId(fresh_uuid());
                record.operation = Some(id);
                changes.push(OperationChange::Start {
                    id,
                    verb: MITIGATE,
                    start: Start::Ready(Due::In(wait)),
                    request: Box::new(mitigation(&record.orphan, now)),
                });
            }
            OrphanEffect::AgainAfter(_) => {
                changes.extend(record.operation.map(OperationChange::Wake));
            }
            // What waited for the row is replaced by what waits now, and nothing is sent with this commit.
            OrphanEffect::Send
            | OrphanEffect::Poll
            | OrphanEffect::PollAfter(_)
            | OrphanEffect::End
            | OrphanEffect::NotifyInstance(..)
            | OrphanEffect::Alert(_) => {}
        }
    }
    let writer = OperationWriter {
        records,
        lane: &lane,
        queue: &queue,
        scrubbed: &ScrubbedOperations::default(),
    };
    let commit = put_orphan(records, commit, &was, record);
    Ok(writer.add_to(commit, changes, None))
}

/// Adds the next state of a row to a commit.
pub(crate) fn put_orphan(
    records: &PlatformRecords,
    commit: Commit,
    was: &LoadedDocument<Record<OrphanRecord>>,
    next: OrphanRecord,
) -> Commit {
    let orphan = &next.orphan;
    let key = records.keys.orphan(&orphan.key);
    let was_done = was.state.get().is_some_and(|row| is_done(&row.orphan));
    // The id of a binding stays taken as long as its row may delete something.
    let commit = match &orphan.key.binding {
        Some(binding) if is_done(orphan) && !was_done => {
            let id = records.keys.broker_binding_id(orphan.key.broker, binding);
            commit.write(Write::Remove(id))
        }
        Some(_) | None => commit,
    };
    records.documents.put(commit, &key, was, &Record::of(next))
}

fn is_done(orphan: &Orphan) -> bool {
    matches!(orphan.state, OrphanState::Done { .. })
}

/// The request of an operation that deletes an orphan: the platform itself asks for it.
pub(crate) fn mitigation(row: &Orphan, now: Timestamp) -> IntentRequest {
    IntentRequest {
        number: IntentNumber::default(),
        author: row.by.clone(),
        verb: MITIGATE.to_owned(),
        patch: None,
        stands_on: Vec::new(),
        accepted: now,
    }
}
