//! Events of bindings outside of their own runs: commands of people, and what happens to their instance.
//!
//! Each is one decision in one commit; another writer that is first makes it decide again.

#[cfg(test)]
mod tests;

use crate::brokers::{BrokerView, BrokerViewError};
use crate::context::{PlatformContext, fresh_uuid, journal_id};
use crate::lifecycle::binding::{
    self, Binding, BindingDecision, BindingEffect, BindingEventError, Context, Event, NewIds,
    OperationStart,
};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::OperationId;
use crate::records::Record;
use crate::writes::{BindingChange, binding_commit};
use sutler_journal::{
    Commit, CommitError, CommitSizeError, Key, StoreError, Write, commit_until_known,
};
use sutler_osb::BindingId;
use sutler_records::RecordError;

/// Decisions that may find that another writer was first.
const TRIES_MAX: usize = 20;

/// Why an event of a binding was not committed.
#[derive(Debug, thiserror::Error)]
pub enum BindingChangeError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] BindingEventError),
    /// A record cannot be read or written.
    #[error("a record of the binding cannot be read or written")]
    Record(#[from] RecordError),
    /// The broker cannot be read.
    #[error(transparent)]
    Broker(#[from] BrokerViewError),
    /// A newer version of the platform wrote a document.
    #[error("a newer version of the platform wrote the document")]
    NewerVersion,
    /// It does not fit into one record.
    #[error("the change is too large to be stored with what the binding has already")]
    TooLarge(#[source] CommitSizeError),
    /// Other writers were first too often.
    #[error("other changes of the binding were first; repeat the request")]
    Contended,
}

impl From<StoreError> for BindingChangeError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}

/// Applies an event of the platform to a binding. A refusal means that it does not concern the binding any more; other
/// faults are logged: who causes such events causes them again.
pub(crate) async fn apply_to_binding(context: &PlatformContext, key: &Key, event: Event) {
    match change_binding(context, key, event).await {
        Ok(_) | Err(BindingChangeError::Refused(_)) => {}
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a binding was not notified"
            );
        }
    }
}

/// Decides an event of a binding that exists, and commits it.
///
/// # Errors
/// See [`BindingChangeError`].
pub(crate) async fn change_binding(
    context: &PlatformContext,
    key: &Key,
    event: Event,
) -> Result<BindingDecision, BindingChangeError> {
    let changed = change_binding_if(context, key, |_, _, _| Some(event.clone()));
    // An event always leads to a decision.
    changed.await?.ok_or(BindingChangeError::Contended)
}

/// The same for an event that follows from what is stored, each time it is read. `None`: there is none.
///
/// # Errors
/// See [`BindingChangeError`].
pub(crate) async fn change_binding_if(
    context: &PlatformContext,
    key: &Key,
    event: impl Fn(&Binding, &Instance, &BrokerView) -> Option<Event>,
) -> Result<Option<BindingDecision>, BindingChangeError> {
    let records = &context.records;
    for _ in 0..TRIES_MAX {
        let was = records.load::<Binding>(key).await?;
        let binding = match &was.state {
            Record::Present(binding) => binding.as_ref().clone(),
            Record::Newer(_) => return Err(BindingChangeError::NewerVersion),
            Record::Absent => return Err(BindingEventError::NotFound.into()),
        };
        let instance = records.keys.instance(&binding.namespace, binding.instance);
        let instance = match records.load::<Instance>(&instance).await?.state {
            Record::Present(instance) => *instance,
            Record::Newer(_) => return Err(BindingChangeError::NewerVersion),
            Record::Absent => return Err(BindingEventError::NoInstance.into()),
        };
        let view = context.brokers.view(instance.broker).await?;
        let Some(event) = event(&binding, &instance, &view) else {
            return Ok(None);
        };
        let decision = decide(context, &view, Some(binding), event)?;
        let change = BindingChange {
            context,
            key,
            instance: &instance,
            was: &was,
            decision: &decision,
            now: records.now(),
        };
        if commit_change(&change, |commit| commit).await? {
            return Ok(Some(decision));
        }
    }
    Err(BindingChangeError::Contended)
}

/// Commits a decision with further expectations of the caller. Returns whether it was written.
///
/// # Errors
/// See [`BindingChangeError`].
pub(crate) async fn commit_change(
    change: &BindingChange<'_>,
    extend: impl FnOnce(Commit) -> Commit,
) -> Result<bool, BindingChangeError> {
    let commit = extend(binding_commit(change, None, |_| None).await?);
    if commit.writes().is_empty() {
        return Ok(true);
    }
    commit.check().map_err(BindingChangeError::TooLarge)?;
    let store = change.context.records.documents.store.as_ref();
    match commit_until_known(store, &commit).await {
        Ok(()) => {
            after_commit(change.context, change.instance, change.decision).await;
            Ok(true)
        }
        Err(CommitError::Stale(_)) => Ok(false),
        Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
    }
}

/// What follows from a committed decision for callers that wait, and for the delete of the instance.
pub(crate) async fn after_commit(
    context: &PlatformContext,
    instance: &Instance,
    decision: &BindingDecision,
) {
    for effect in &decision.effects {
        match effect {
            BindingEffect::End(operation, _) => context.waiters.ended(journal_id(*operation)),
            BindingEffect::Start(_, OperationStart::Ready) | BindingEffect::Wake(_) => {
                context.brokers.operation_is_ready(instance.broker);
            }
            BindingEffect::Start(_, OperationStart::Waiting | OperationStart::Later)
            | BindingEffect::Suspend(_)
            | BindingEffect::DiscardRequest(_)
            | BindingEffect::Send
            | BindingEffect::Look
            | BindingEffect::Poll(_)
            | BindingEffect::PollAfter(_)
            | BindingEffect::TryAgainAfter(_)
            | BindingEffect::TryAgainNow
            | BindingEffect::RecordOrphan(_)
            | BindingEffect::TakeName(_)
            | BindingEffect::FreeName(_) => {}
        }
    }
    let is_settled = decision.next.tombstone.is_some() || decision.next.deletion.is_none();
    if is_settled && instance.deletion.is_some() {
        wake_delete(context, instance).await;
    }
}

/// Wakes the delete of an instance that waits for its bindings. One that has no turn yet, because a create is being sent,
/// stays as it is: only the operation of the active intent can be claimed.
async fn wake_delete(context: &PlatformContext, instance: &Instance) {
    let records = &context.records;
    let key = records.keys.instance(&instance.namespace, instance.uid);
    let Ok(found) = records.load::<Instance>(&key).await else {
        return;
    };
    let (Some(instance), Some(version)) = (found.state.get(), found.version) else {
        return;
    };
    let active = instance.active().and_then(|it| instance.intent(it));
    let Some(delete) = active.filter(|it| it.change.is_delete()) else {
        return;
    };
    let wake = Commit::new()
        .unchanged(key, version)
        .write(Write::Wake(journal_id(delete.operation)));
    let store = records.documents.store.as_ref();
    match commit_until_known(store, &wake).await {
        Ok(()) => context.brokers.operation_is_ready(instance.broker),
        // It looks again by itself.
        Err(error) => tracing::debug!(%error, "the delete of the instance was not woken"),
    }
}

/// Asks the rules what follows from an event.
pub(crate) fn decide(
    context: &PlatformContext,
    view: &BrokerView,
    binding: Option<Binding>,
    event: Event,
) -> Result<BindingDecision, BindingEventError> {
    let policy = view.binding_policy(context.lease);
    let osb_id = BindingId::try_from(fresh_uuid().to_string());
    let decision_context = Context {
        now: context.records.now(),
        ids: NewIds {
            operation: OperationId(fresh_uuid()),
            uid: fresh_uuid(),
            osb_id: osb_id.expect("a UUID is a valid id"),
        },
        policy: &policy,
    };
    binding::decide(binding, event, &decision_context)
}
