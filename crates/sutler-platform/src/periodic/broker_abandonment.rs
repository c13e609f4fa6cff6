//! Deregisters a broker with everything that it has (T-92): each of its instances is given up (T-30), and the rows of the
//! orphan ledger are left to a person, because nothing can be sent to the broker any more.
//!
//! The mark comes first, and is not taken back: from then on nothing new is created at the broker. Then the instances are
//! given up, batch by batch, then the rows, and then `brokers/deregistration.rs` removes the broker. Each step finds what is
//! left of it, so a process that ends on the way loses nothing: `abandoned_brokers.rs` goes on.

use crate::brokers::BrokerCommandError;
use crate::context::PlatformContext;
use crate::instance_events::abandonments::{AbandonError, abandon_instance};
use crate::lifecycle::intent::Abandonment;
use crate::lifecycle::orphan::OrphanEvent;
use crate::orphan_events::{OrphanChangeError, change_orphan};
use crate::records::{BROKER_TERM, INSTANCE, ORPHAN, OrphanRecord};
use sutler_journal::{Key, List, StoreError};
use sutler_records::RecordError;
use uuid::Uuid;

/// Instances, and rows of the ledger, of one batch.
const BATCH: usize = 50;

/// How far a broker with everything that it has is deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonProgress {
    /// Nothing of it is left.
    Finished,
    /// Some of it is left, and is given up within minutes.
    GoesOn,
}

/// Why a broker is not given up now. What was given up stays so, and the rest follows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AbandonBrokerError {
    /// The broker cannot be read or removed.
    #[error(transparent)]
    Broker(#[from] BrokerCommandError),
    /// An instance is not given up.
    #[error("an instance of the broker cannot be given up now")]
    Instance(#[from] AbandonError),
    /// A row of the ledger cannot be changed.
    #[error("a row of the orphan ledger about the broker cannot be changed now")]
    Orphan(#[from] OrphanChangeError),
    /// A list cannot be read.
    #[error("what the broker has cannot be listed now")]
    Record(#[from] RecordError),
}

impl From<StoreError> for AbandonBrokerError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}

/// Gives up what a broker has, at most `batches` of it, and then removes the broker. `may_go_on` is asked before each batch.
///
/// # Errors
/// See [`AbandonBrokerError`].
pub(crate) async fn abandon_marked(
    context: &PlatformContext,
    broker: Uuid,
    batches: usize,
    may_go_on: impl Fn() -> bool,
) -> Result<AbandonProgress, AbandonBrokerError> {
    let Some(state) = context.brokers.state(broker).await? else {
        return Ok(AbandonProgress::Finished);
    };
    let Some(abandonment) = state.abandonment else {
        // Nothing was left of it, and its removal was decided before.
        return match state.removal {
            Some(_) => remove(context, broker).await,
            None => Ok(AbandonProgress::Finished),
        };
    };
    let (records, value) = (&context.records, broker.to_string());
    let instances = List::term(
        records.keys.realm(),
        INSTANCE,
        BROKER_TERM,
        value.as_bytes(),
    );
    let rows = List::Prefix(records.keys.all_below(ORPHAN, &value));
    let mut left = batches;
    // One that cannot be given up delays no other.
    let mut first_error = None;
    for list in [instances, rows] {
        let mut after = None;
        loop {
            if left == 0 || !may_go_on() {
                return Ok(AbandonProgress::GoesOn);
            }
            left -= 1;
            let store = &records.documents.store;
            let page = store.list(&list, after.as_ref(), BATCH).await?;
            for document in &page.documents {
                if let Err(error) = abandon(context, &document.key, &abandonment).await {
                    first_error.get_or_insert(error);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => remove(context, broker).await,
    }
}

/// Removes a broker of which nothing is left.
async fn remove(
    context: &PlatformContext,
    broker: Uuid,
) -> Result<AbandonProgress, AbandonBrokerError> {
    match context.brokers.deregister(broker).await {
        Ok(()) | Err(BrokerCommandError::NoBroker) => Ok(AbandonProgress::Finished),
        // A person asked for another round of an orphan meanwhile.
        Err(BrokerCommandError::HasInstances(_) | BrokerCommandError::HasOrphans(_)) => {
            Ok(AbandonProgress::GoesOn)
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives up an instance, or leaves a row of the ledger to a person.
async fn abandon(
    context: &PlatformContext,
    key: &Key,
    abandonment: &Abandonment,
) -> Result<(), AbandonBrokerError> {
    if key.kind() == INSTANCE.as_str() {
        return Ok(abandon_instance(context, key, abandonment).await?);
    }
    let row = context.records.load::<OrphanRecord>(key).await?;
    let Some(row) = row.state.into_inner() else {
        return Ok(());
    };
    if !row.orphan.state.needs_broker() {
        return Ok(());
    }
    change_orphan(context, &row.orphan.key, &OrphanEvent::BrokerGone).await?;
    Ok(())
}
