//! The steps of every command about an instance that exists: read, decide, commit; again if another writer was first.

#[cfg(test)]
mod tests;

use super::change_options::ChangeOptions;
use super::command_error::CommandError;
use super::namespaces::namespace_record;
use crate::brokers::BrokerView;
use crate::context::PlatformContext;
use crate::executor::{decide_instance, instance_committed};
use crate::lifecycle::instance::{
    Event, Instance, InstanceDecision, InstanceEventError, InstanceReply,
};
use crate::records::{NameRecord, Record, ResourceName};
use crate::writes::{InstanceChange, instance_commit};
use std::sync::Arc;
use sutler_journal::{Commit, CommitError, Key, commit_until_known};
use sutler_records::LoadedDocument;
use uuid::Uuid;

/// Decisions that may find that another writer was first.
pub(super) const TRIES_MAX: usize = 20;

/// What a command led to.
#[derive(Clone, Debug)]
pub struct InstanceOutcome {
    /// The instance after it.
    pub instance: Instance,
    /// The answer of the rules.
    pub reply: InstanceReply,
}

/// An instance as it was read, with its broker.
pub(crate) struct LoadedInstance {
    /// Its key.
    pub(crate) key: Key,
    /// The document.
    pub(crate) was: LoadedDocument<Record<Instance>>,
    /// What is in it.
    pub(crate) instance: Instance,
    /// Its broker.
    pub(crate) view: Arc<BrokerView>,
}

/// Reads an instance by its name, or by its uid: then also one that is gone.
///
/// # Errors
/// There is none, or it cannot be read.
pub(crate) async fn load_instance(
    context: &PlatformContext,
    namespace: &ResourceName,
    name: &ResourceName,
) -> Result<LoadedInstance, CommandError> {
    let (key, was, instance) = read_instance(context, namespace, name).await?;
    let view = context.brokers.view(instance.broker).await?;
    Ok(LoadedInstance {
        key,
        was,
        instance,
        view,
    })
}

/// Reads an instance without its broker, which may not be registered any more if the instance is gone.
///
/// # Errors
/// There is none, or it cannot be read.
pub(super) async fn read_instance(
    context: &PlatformContext,
    namespace: &ResourceName,
    name: &ResourceName,
) -> Result<(Key, LoadedDocument<Record<Instance>>, Instance), CommandError> {
    let records = &context.records;
    let key = records
        .keys
        .instance_name(namespace.as_str(), name.as_str());
    let uid = match records.load::<NameRecord>(&key).await?.state {
        Record::Present(holder) => Some(holder.instance),
        Record::Newer(_) => return Err(CommandError::NewerVersion),
        Record::Absent => Uuid::try_parse(name.as_str()).ok(),
    };
    let uid = uid.ok_or(InstanceEventError::NotFound)?;
    let key = records.keys.instance(namespace.as_str(), uid);
    let was = records.load::<Instance>(&key).await?;
    let instance = match &was.state {
        Record::Present(instance) => instance.as_ref().clone(),
        Record::Newer(_) => return Err(CommandError::NewerVersion),
        Record::Absent => return Err(InstanceEventError::NotFound.into()),
    };
    if instance.tombstone.is_some() {
        check_owner(context, namespace, &instance).await?;
    }
    Ok((key, was, instance))
}

/// Reads an instance by its name for a change, if it is the one that the change is about.
///
/// # Errors
/// There is none, it is another one, or it cannot be read.
pub(super) async fn load_for_change(
    context: &PlatformContext,
    namespace: &ResourceName,
    name: &ResourceName,
    options: &ChangeOptions,
) -> Result<LoadedInstance, CommandError> {
    let loaded = load_instance(context, namespace, name).await?;
    let shown = loaded.instance.revision;
    match options.if_uid {
        Some(uid) if uid != loaded.instance.uid => {
            Err(InstanceEventError::RevisionChanged { shown }.into())
        }
        Some(_) | None => Ok(loaded),
    }
}

/// Refuses an instance that was gone before the namespace was created: it belonged to an earlier one of the same name.
async fn check_owner(
    context: &PlatformContext,
    namespace: &ResourceName,
    instance: &Instance,
) -> Result<(), CommandError> {
    let is_owner = match namespace_record(context, namespace).await {
        Ok(namespace) => namespace.owns(instance.tombstone.as_ref()),
        Err(CommandError::NoNamespace(_)) => false,
        Err(error) => return Err(error),
    };
    match is_owner {
        true => Ok(()),
        false => Err(InstanceEventError::NotFound.into()),
    }
}

/// Decides an event of an instance as it was read, and commits it. `None`: another writer was first; read it again.
///
/// # Errors
/// The rules refuse it, or it cannot be written.
pub(crate) async fn try_change(
    context: &PlatformContext,
    loaded: &LoadedInstance,
    event: Event,
    dry_run: bool,
) -> Result<Option<InstanceOutcome>, CommandError> {
    let instance = Some(loaded.instance.clone());
    let mut decision = decide_instance(context, &loaded.view, instance, event)?;
    let is_written = match commit_change(context, loaded, &decision, dry_run).await {
        // Less of the past is kept, as in runs: an instance that is full can still be deleted.
        Err(CommandError::TooLarge(_)) => {
            decision.next.forget_history();
            commit_change(context, loaded, &decision, dry_run).await?
        }
        written => written?,
    };
    Ok(is_written.then(|| outcome(decision)))
}

async fn commit_change(
    context: &PlatformContext,
    loaded: &LoadedInstance,
    decision: &InstanceDecision,
    dry_run: bool,
) -> Result<bool, CommandError> {
    let change = InstanceChange {
        context,
        broker: &loaded.view,
        key: &loaded.key,
        was: &loaded.was,
        decision,
        now: context.records.now(),
    };
    Ok(dry_run || commit_decision(&change, |commit| commit).await?)
}

/// Commits a decision with further expectations of the caller. Returns whether it was written.
///
/// # Errors
/// It cannot be written.
pub(super) async fn commit_decision(
    change: &InstanceChange<'_>,
    extend: impl FnOnce(Commit) -> Commit,
) -> Result<bool, CommandError> {
    let commit = instance_commit(change, None, |_| None).await?;
    if commit.writes().is_empty() {
        return Ok(true);
    }
    let commit = extend(commit);
    commit.check().map_err(CommandError::TooLarge)?;
    let store = change.context.records.documents.store.as_ref();
    match commit_until_known(store, &commit).await {
        Ok(()) => {
            instance_committed(change.context, change.decision).await;
            Ok(true)
        }
        Err(CommitError::Stale(_)) => Ok(false),
        Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
    }
}

pub(super) fn outcome(decision: InstanceDecision) -> InstanceOutcome {
    InstanceOutcome {
        instance: decision.next,
        reply: decision.reply,
    }
}
