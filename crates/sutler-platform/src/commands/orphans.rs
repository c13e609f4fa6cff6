//! The orphan ledger for operators: list, another round at once, forget.

use super::command_error::CommandError;
use super::reads::ResourcePage;
use crate::author::Author;
use crate::brokers::BrokerViewError;
use crate::context::PlatformContext;
use crate::lifecycle::orphan::{ForgetReason, OrphanEvent, OrphanKey};
use crate::orphan_events::{OrphanOutcome, TRIES_MAX, change_orphan, try_change_orphan};
use crate::platform::Platform;
use crate::records::{ORPHAN, OrphanRecord};
use sutler_journal::{Commit, List, Position};

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
    /// There is none or it is deleted, its broker is deregistered, or it cannot be written.
    pub async fn retry_orphan(&self, key: &OrphanKey) -> Result<OrphanOutcome, CommandError> {
        retry(&self.context, key).await
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

/// Deletes an orphan at once, unless its broker is deregistered.
pub(crate) async fn retry(
    context: &PlatformContext,
    key: &OrphanKey,
) -> Result<OrphanOutcome, CommandError> {
    for _ in 0..TRIES_MAX {
        let view = match context.brokers.view(key.broker).await {
            Ok(view) if view.registration.deregistering.is_none() => view,
            Ok(_) | Err(BrokerViewError::NotRegistered(_)) => {
                return Err(CommandError::OrphanWithoutBroker);
            }
            Err(error) => return Err(error.into()),
        };
        // A deregistration that begins meanwhile leaves the row to a person.
        let commit = view.expect_registered(Commit::new());
        let changed = try_change_orphan(context, key, &OrphanEvent::Retry, commit).await?;
        if let Some(outcome) = changed {
            return Ok(outcome);
        }
    }
    Err(CommandError::Contended)
}

async fn change(
    context: &PlatformContext,
    orphan: &OrphanKey,
    event: &OrphanEvent,
) -> Result<OrphanOutcome, CommandError> {
    Ok(change_orphan(context, orphan, event).await?)
}
