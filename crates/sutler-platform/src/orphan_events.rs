//! Events of rows of the orphan ledger outside of their own runs: commands of people, and the end of their broker.
//!
//! Each is one decision in one commit; another writer that is first makes it decide again. `orphan_notice.rs` notifies what
//! waits for a row.

mod orphan_notice;

pub(crate) use orphan_notice::notify_waiting;

use crate::context::{PlatformContext, fresh_uuid};
use crate::lifecycle::intent::{CancelledBy, IntentEnd};
use crate::lifecycle::orphan::{
    self, OrphanEffect, OrphanEvent, OrphanEventError, OrphanKey, OrphanReply,
};
use crate::records::{OrphanRecord, Record, broker_queue};
use crate::writes::{
    MITIGATE, OperationChange, OperationWriter, ScrubbedOperations, mitigation, put_orphan,
};
use sutler_journal::{
    Commit, CommitError, CommitSizeError, Due, OperationId, Start, StoreError, commit_until_known,
};
use sutler_records::RecordError;

/// Writes that may find that another writer was first.
pub(crate) const TRIES_MAX: usize = 20;

/// What an event of an orphan led to.
#[derive(Clone, Debug)]
pub struct OrphanOutcome {
    /// The row after it.
    pub orphan: OrphanRecord,
    /// The answer of the rules.
    pub reply: OrphanReply,
}

/// Why an event of an orphan was not committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrphanChangeError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] OrphanEventError),
    /// A record cannot be read or written.
    #[error("a record of the orphan ledger cannot be read or written")]
    Record(#[from] RecordError),
    /// A newer version of the platform wrote the document.
    #[error("a newer version of the platform wrote the document")]
    NewerVersion,
    /// It does not fit into one record.
    #[error("the change is too large to be stored with what the row has already")]
    TooLarge(#[source] CommitSizeError),
    /// Other writers were first too often.
    #[error("other changes of the row were first again and again")]
    Contended,
}

impl From<StoreError> for OrphanChangeError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}

/// Decides an event of a row that exists, and commits it.
///
/// # Errors
/// See [`OrphanChangeError`].
pub(crate) async fn change_orphan(
    context: &PlatformContext,
    orphan: &OrphanKey,
    event: &OrphanEvent,
) -> Result<OrphanOutcome, OrphanChangeError> {
    for _ in 0..TRIES_MAX {
        if let Some(outcome) = try_change_orphan(context, orphan, event, Commit::new()).await? {
            return Ok(outcome);
        }
    }
    Err(OrphanChangeError::Contended)
}

/// Decides an event of a row as it is stored, and commits it with what the commit has already, e.g. expectations of the
/// caller. `None`: another writer was first, or an expectation does not hold; read again.
///
/// # Errors
/// See [`OrphanChangeError`].
pub(crate) async fn try_change_orphan(
    context: &PlatformContext,
    orphan: &OrphanKey,
    event: &OrphanEvent,
    commit: Commit,
) -> Result<Option<OrphanOutcome>, OrphanChangeError> {
    let records = &context.records;
    let lane = records.keys.orphan(orphan);
    let was = records.load::<OrphanRecord>(&lane).await?;
    let record = match &was.state {
        Record::Present(record) => record.as_ref().clone(),
        Record::Newer(_) => return Err(OrphanChangeError::NewerVersion),
        Record::Absent => return Err(OrphanEventError::NotFound.into()),
    };
    let now = records.now();
    let decision = orphan::decide(Some(record.orphan), event.clone(), now)?;
    let mut next = OrphanRecord {
        orphan: decision.next,
        operation: record.operation,
        has_secrets: record.has_secrets,
    };
    let mut changes = Vec::new();
    for effect in &decision.effects {
        match effect {
            OrphanEffect::Start(wait) => {
                let id = OperationId(fresh_uuid());
                next.operation = Some(id);
                changes.push(OperationChange::Start {
                    id,
                    verb: MITIGATE,
                    start: Start::Ready(Due::In(*wait)),
                    request: Box::new(mitigation(&next.orphan, now)),
                });
            }
            OrphanEffect::AgainAfter(_) => {
                changes.extend(next.operation.map(OperationChange::Wake));
            }
            OrphanEffect::End => {
                let end = IntentEnd::Cancelled(CancelledBy::Delete(Default::default()));
                let ended = next.operation.take();
                changes.extend(ended.map(|id| OperationChange::End(id, end)));
            }
            // What waits is notified after the commit.
            OrphanEffect::NotifyInstance(..)
            | OrphanEffect::Send
            | OrphanEffect::Poll
            | OrphanEffect::PollAfter(_)
            | OrphanEffect::Alert(_) => {}
        }
    }
    let scrubbed = ScrubbedOperations::read(records, &changes, None).await?;
    let writer = OperationWriter {
        records,
        lane: &lane,
        queue: &broker_queue(orphan.broker),
        scrubbed: &scrubbed,
    };
    let commit = put_orphan(records, commit, &was, next.clone());
    if !written(context, writer.add_to(commit, changes, None)).await? {
        return Ok(None);
    }
    notify(context, orphan, &decision.effects).await;
    Ok(Some(OrphanOutcome {
        orphan: next,
        reply: decision.reply,
    }))
}

/// Whether a commit was written; `false`: another writer was first.
async fn written(context: &PlatformContext, commit: Commit) -> Result<bool, OrphanChangeError> {
    commit.check().map_err(OrphanChangeError::TooLarge)?;
    let store = context.records.documents.store.as_ref();
    match commit_until_known(store, &commit).await {
        Ok(()) => Ok(true),
        Err(CommitError::Stale(_)) => Ok(false),
        Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
    }
}

/// Notifies what waits for the orphan. If the process ends before that, `periodic/settled_orphans.rs` does it.
async fn notify(context: &PlatformContext, orphan: &OrphanKey, effects: &[OrphanEffect]) {
    for effect in effects {
        if let OrphanEffect::NotifyInstance(waiting, result) = effect {
            notify_waiting(context, orphan, waiting, *result).await;
        }
    }
}
