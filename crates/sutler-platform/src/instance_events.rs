//! Events of instances that the platform itself causes, outside of their own runs.
//!
//! Each is one decision in one commit; another writer that is first makes it decide again. If the document has no room for
//! it, less of the past is kept, as in runs. Commands of people are not here.

pub(crate) mod abandonments;
#[cfg(test)]
mod tests;

use crate::brokers::{BrokerView, BrokerViewError};
use crate::context::PlatformContext;
use crate::executor::{decide_instance, instance_committed};
use crate::lifecycle::instance::{Event, Instance, InstanceDecision, InstanceEventError};
use crate::records::Record;
use crate::writes::{InstanceChange, instance_commit};
use sutler_journal::{Commit, CommitError, CommitSizeError, Key, StoreError, commit_until_known};
use sutler_records::{LoadedDocument, RecordError};

/// Decisions that may find that another writer was first.
const TRIES_MAX: usize = 20;

/// Why an event of an instance was not committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstanceChangeError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] InstanceEventError),
    /// A record cannot be read or written.
    #[error("a record of the instance cannot be read or written")]
    Record(#[from] RecordError),
    /// The broker cannot be read.
    #[error(transparent)]
    Broker(#[from] BrokerViewError),
    /// A newer version of the platform wrote the document.
    #[error("a newer version of the platform wrote the document")]
    NewerVersion,
    /// It does not fit into one record, even without the past.
    #[error("the change is too large to be stored with what the instance has already")]
    TooLarge(#[source] CommitSizeError),
    /// Other writers were first too often.
    #[error("other changes of the instance were first again and again")]
    Contended,
}

impl From<StoreError> for InstanceChangeError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}

/// Applies an event to an instance. A refusal means that it does not concern the instance any more; other faults are
/// logged: who causes such events causes them again.
pub(crate) async fn apply_to_instance(context: &PlatformContext, key: &Key, event: Event) {
    match change_instance(context, key, |_, _| event.clone()).await {
        Ok(_) | Err(InstanceChangeError::Refused(_)) => {}
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an instance was not notified"
            );
        }
    }
}

/// Decides an event of an instance that exists, and commits it. `event` makes it from what is stored, each time it is read.
///
/// # Errors
/// See [`InstanceChangeError`].
pub(crate) async fn change_instance(
    context: &PlatformContext,
    key: &Key,
    event: impl Fn(&Instance, &BrokerView) -> Event,
) -> Result<InstanceDecision, InstanceChangeError> {
    let changed = change_instance_if(context, key, |it, view| Some(event(it, view)));
    // An event always leads to a decision.
    changed.await?.ok_or(InstanceChangeError::Contended)
}

/// The same for an event that need not be. `None`: there is none.
///
/// # Errors
/// See [`InstanceChangeError`].
pub(crate) async fn change_instance_if(
    context: &PlatformContext,
    key: &Key,
    event: impl Fn(&Instance, &BrokerView) -> Option<Event>,
) -> Result<Option<InstanceDecision>, InstanceChangeError> {
    let records = &context.records;
    for _ in 0..TRIES_MAX {
        let was = records.load::<Instance>(key).await?;
        let instance = match &was.state {
            Record::Present(instance) => instance.as_ref().clone(),
            Record::Newer(_) => return Err(InstanceChangeError::NewerVersion),
            Record::Absent => return Err(InstanceEventError::NotFound.into()),
        };
        let view = context.brokers.view(instance.broker).await?;
        let Some(event) = event(&instance, &view) else {
            return Ok(None);
        };
        let mut decision = decide_instance(context, &view, Some(instance), event)?;
        let at = (key, &was);
        let mut commit = commit_of(context, &view, at, &decision).await?;
        if commit.check().is_err() {
            decision.next.forget_history();
            commit = commit_of(context, &view, at, &decision).await?;
            commit.check().map_err(InstanceChangeError::TooLarge)?;
        }
        if commit.writes().is_empty() {
            return Ok(Some(decision));
        }
        let store = records.documents.store.as_ref();
        match commit_until_known(store, &commit).await {
            Ok(()) => {
                instance_committed(context, &decision).await;
                return Ok(Some(decision));
            }
            Err(CommitError::Stale(_)) => {}
            Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => {
                return Err(error.into());
            }
        }
    }
    Err(InstanceChangeError::Contended)
}

/// The commit of a decision about an instance as it was read.
async fn commit_of(
    context: &PlatformContext,
    broker: &BrokerView,
    (key, was): (&Key, &LoadedDocument<Record<Instance>>),
    decision: &InstanceDecision,
) -> Result<Commit, RecordError> {
    let change = InstanceChange {
        context,
        broker,
        key,
        was,
        decision,
        now: context.records.now(),
    };
    instance_commit(&change, None, |_| None).await
}
