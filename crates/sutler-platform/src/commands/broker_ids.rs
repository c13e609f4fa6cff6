//! Whether an id that a person names is free at its broker: no resource of any namespace has it, and no row of the orphan
//! ledger may still delete it.
//!
//! A row that a person forgot keeps its id: what it is about may exist at the broker still, so a create under the same id
//! would get something that exists, and another round of the row would delete what was created (P-007). Another round that
//! ends with a proof frees it.
//!
//! The refusal says nothing of who has it. Ids that the platform makes need no look: the commit takes them.

use super::command_error::CommandError;
use crate::context::PlatformContext;
use crate::lifecycle::orphan::{OrphanKey, OrphanState};
use crate::records::{BrokerIdRecord, OrphanRecord, Record};
use sutler_journal::{Commit, Key, Version};
use sutler_osb::{BindingId, InstanceId};
use uuid::Uuid;

/// The ledger's row of an id that is free: it must stay as it was read.
pub(super) struct LedgerRow {
    key: Key,
    version: Option<Version>,
}

impl LedgerRow {
    /// The commit holds only if the row is as it was read.
    pub(super) fn expect(self, commit: Commit) -> Commit {
        match self.version {
            Some(version) => commit.unchanged(self.key, version),
            None => commit.absent(self.key),
        }
    }
}

/// Refuses an id of an instance that is not free. Returns what the commit that takes it must expect.
///
/// # Errors
/// It is not free, or it cannot be read.
pub(super) async fn free_instance_id(
    context: &PlatformContext,
    broker: Uuid,
    id: &InstanceId,
) -> Result<LedgerRow, CommandError> {
    let records = &context.records;
    refuse_taken(context, &records.keys.broker_instance_id(broker, id)).await?;
    let key = records.keys.orphan(&OrphanKey {
        broker,
        instance: id.clone(),
        binding: None,
    });
    let row = records.load::<OrphanRecord>(&key).await?;
    match &row.state {
        Record::Newer(_) => return Err(CommandError::NewerVersion),
        Record::Present(row) if !matches!(row.orphan.state, OrphanState::Done { .. }) => {
            return Err(CommandError::BrokerIdTaken);
        }
        Record::Present(_) | Record::Absent => {}
    }
    Ok(LedgerRow {
        key,
        version: row.version,
    })
}

/// Refuses an id of a binding that is not free.
///
/// # Errors
/// It is not free, or it cannot be read.
pub(super) async fn check_binding_id(
    context: &PlatformContext,
    broker: Uuid,
    id: &BindingId,
) -> Result<(), CommandError> {
    refuse_taken(context, &context.records.keys.broker_binding_id(broker, id)).await
}

async fn refuse_taken(context: &PlatformContext, key: &Key) -> Result<(), CommandError> {
    match context.records.load::<BrokerIdRecord>(key).await?.state {
        Record::Absent => Ok(()),
        Record::Present(_) => Err(CommandError::BrokerIdTaken),
        Record::Newer(_) => Err(CommandError::NewerVersion),
    }
}
