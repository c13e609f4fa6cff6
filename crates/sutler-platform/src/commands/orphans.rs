//! The orphan ledger for operators: list, another round at once, forget.

use super::command_error::CommandError;
use super::namespaces::written;
use super::reads::ResourcePage;
use crate::author::Author;
use crate::context::{PlatformContext, fresh_uuid};
use crate::lifecycle::intent::{CancelledBy, IntentEnd};
use crate::lifecycle::orphan::{
    self, ForgetReason, OrphanEffect, OrphanEvent, OrphanEventError, OrphanKey, OrphanReply,
};
use crate::orphan_notice::notify_waiting;
use crate::platform::Platform;
use crate::records::{ORPHAN, OrphanRecord, Record, broker_queue};
use crate::writes::{
    MITIGATE, OperationChange, OperationWriter, ScrubbedOperations, mitigation, put_orphan,
};
use sutler_journal::{Commit, Due, List, OperationId, Position, Start};

/// Writes that may find that another writer was first.
const TRIES_MAX: usize = 20;

/// What a command about an orphan led to.
#[derive(Clone, Debug)]
pub struct OrphanOutcome {
    /// The row after it.
    pub orphan: OrphanRecord,
    /// The answer of the rules.
    pub reply: OrphanReply,
}

impl Platform {
    /// A page of the ledger, by broker and ids.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn orphans(
        &self,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<ResourcePage<OrphanRecord>, CommandError> {
        let records = &self.context.records;
        let list = List::Prefix(records.keys.all_of(ORPHAN));
        Ok(records
            .list::<OrphanRecord>(&list, after, limit)
            .await?
            .into())
    }

    /// Deletes an orphan at once, with a new round of tries.
    ///
    /// # Errors
    /// There is none or it is deleted, or it cannot be written.
    pub async fn retry_orphan(&self, key: &OrphanKey) -> Result<OrphanOutcome, CommandError> {
        change(&self.context, key, &OrphanEvent::Retry).await
    }

    /// Takes an orphan off the list of what needs a person; it stays listed as forgotten.
    ///
    /// # Errors
    /// There is none or it is deleted, or it cannot be written.
    pub async fn forget_orphan(
        &self,
        key: &OrphanKey,
        by: &Author,
        reason: ForgetReason,
    ) -> Result<OrphanOutcome, CommandError> {
        let by = by.clone();
        change(&self.context, key, &OrphanEvent::Forget { by, reason }).await
    }
}

async fn change(
    context: &PlatformContext,
    orphan: &OrphanKey,
    event: &OrphanEvent,
) -> Result<OrphanOutcome, CommandError> {
    let records = &context.records;
    let lane = records.keys.orphan(orphan);
    for _ in 0..TRIES_MAX {
        let was = records.load::<OrphanRecord>(&lane).await?;
        let record = match &was.state {
            Record::Present(record) => record.as_ref().clone(),
            Record::Newer(_) => return Err(CommandError::NewerVersion),
            Record::Absent => return Err(OrphanEventError::NotFound.into()),
        };
        let now = records.now();
        let decision = orphan::decide(Some(record.orphan), event.clone(), now)?;
        let mut next = OrphanRecord {
            orphan: decision.next,
            operation: record.operation,
            secrets: record.secrets,
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
        let commit = put_orphan(records, Commit::new(), &was, next.clone());
        if written(context, writer.add_to(commit, changes, None)).await? {
            notify(context, orphan, &decision.effects).await;
            return Ok(OrphanOutcome {
                orphan: next,
                reply: decision.reply,
            });
        }
    }
    Err(CommandError::Contended)
}

/// Notifies what waits for the orphan. If the process ends before that, `periodic/settled_orphans.rs` does it.
async fn notify(context: &PlatformContext, orphan: &OrphanKey, effects: &[OrphanEffect]) {
    for effect in effects {
        if let OrphanEffect::NotifyInstance(waiting, result) = effect {
            notify_waiting(context, orphan, waiting, *result).await;
        }
    }
}
