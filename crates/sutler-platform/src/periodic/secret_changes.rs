//! Notifies the instances and bindings that use a secret of its change: intents that could not be sent without it go on in
//! the name of their own author, and instances that watch it are updated in the name of who changed it.
//!
//! A secret is listed until all its users are notified: its own commit says so. An instance that cannot take the change
//! now, e.g. because it is being created, is notified again by a later run.

use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::bind_facts::bind_facts;
use crate::binding_changes::{BindingChangeError, change_binding_if};
use crate::brokers::BrokerView;
use crate::context::PlatformContext;
use crate::instance_events::{InstanceChangeError, change_instance_if};
use crate::lifecycle::binding::{self, Binding, BindingCommand, BindingEventError};
use crate::lifecycle::instance::{
    ChangeFacts, ChangeRequest, Event, Instance, InstanceCommand, InstanceEventError, IntentChange,
    PENDING_MAX, PendingIntent,
};
use crate::lifecycle::intent::{HoldReason, IntentCause, IntentState};
use crate::lifecycle::request_key::RequestKey;
use crate::records::{NOTICE_DUE, NOTICE_TERM, Record, SECRET, SecretRecord, SecretUse};
use jiff::Timestamp;
use sutler_journal::{Commit, Key, List, Run};
use uuid::Uuid;

/// Most events of one instance at once: each of its pending intents may go on, and an update.
const EVENTS_MAX: usize = PENDING_MAX + 1;

/// Whether an instance or a binding is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// Yes, or the change does not concern it.
    Given,
    /// It cannot take the change now.
    Later,
}

/// A change of a secret.
struct SecretChange<'a> {
    name: &'a str,
    secret: &'a SecretRecord,
}

/// Notifies the users of all secrets that have changed.
///
/// # Errors
/// The store does not answer, or the claim was lost.
pub(super) async fn notify_users(context: &PlatformContext, run: &Run) -> Result<(), TaskRunError> {
    let realm = context.records.keys.realm();
    let list = List::term(realm, SECRET, NOTICE_TERM, NOTICE_DUE);
    let mut changed = ListedKeys::of(context, run, list);
    while let Some(page) = changed.next_page().await? {
        for key in page {
            match notify_users_of(context, run, &key).await {
                Ok(()) => {}
                Err(TaskRunError::Lost(lost)) => return Err(lost.into()),
                Err(TaskRunError::Record(error)) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the users of a secret are notified of its change later"
                ),
            }
        }
    }
    Ok(())
}

async fn notify_users_of(
    context: &PlatformContext,
    run: &Run,
    key: &Key,
) -> Result<(), TaskRunError> {
    let records = &context.records;
    let was = records.load::<SecretRecord>(key).await?;
    let Some(secret) = was.state.get() else {
        return Ok(());
    };
    let (namespace, name) = (key.id(0), key.id(1));
    let change = SecretChange { name, secret };
    let mut all = Notice::Given;
    let uses = List::Prefix(records.keys.uses_of_secret(namespace, name));
    let mut uses = ListedKeys::of(context, run, uses);
    while let Some(page) = uses.next_page().await? {
        for used_by in page {
            if change.notify(context, namespace, &used_by).await? == Notice::Later {
                all = Notice::Later;
            }
        }
    }
    if all == Notice::Later {
        return Ok(());
    }
    let next = SecretRecord {
        notified: secret.revision,
        ..secret.clone()
    };
    let documents = &records.documents;
    let commit = documents.put(Commit::new(), key, &was, &Record::of(next));
    // Stale: it has changed again, and is still listed.
    let _ = run.commit(commit).await?;
    Ok(())
}

impl SecretChange<'_> {
    async fn notify(
        &self,
        context: &PlatformContext,
        namespace: &str,
        used_by: &Key,
    ) -> Result<Notice, TaskRunError> {
        let records = &context.records;
        let found = records.load::<SecretUse>(used_by).await?.state.into_inner();
        let (Some(found), Ok(uid)) = (found, Uuid::try_parse(used_by.id(2))) else {
            return Ok(Notice::Given);
        };
        Ok(match found.binding_of {
            None => {
                let key = records.keys.instance(namespace, uid);
                self.notify_instance(context, &key).await
            }
            Some(instance) => {
                let key = records.keys.binding(namespace, instance, uid);
                self.notify_binding(context, &key).await
            }
        })
    }

    /// Lets a bind go on that waits for the secret.
    async fn notify_binding(&self, context: &PlatformContext, key: &Key) -> Notice {
        let event = |binding: &Binding, instance: &Instance, view: &BrokerView| {
            let held = binding.pending_bind()?;
            let goes_on = self.lets_go_on(&held.state, held.accepted);
            let facts = bind_facts(instance, view, &binding.spec);
            let command = BindingCommand::Resume(held.number, held.author.clone(), facts);
            goes_on.then(|| binding::Event::Command(Box::new(command)))
        };
        match change_binding_if(context, key, event).await {
            Ok(_)
            | Err(BindingChangeError::Refused(
                BindingEventError::NotFound | BindingEventError::Gone,
            )) => Notice::Given,
            Err(BindingChangeError::Refused(_)) => Notice::Later,
            Err(error) => {
                tracing::warn!(
                    binding.uid = key.id(2),
                    error = &error as &dyn std::error::Error,
                    "a binding is notified later of the change of a secret"
                );
                Notice::Later
            }
        }
    }

    async fn notify_instance(&self, context: &PlatformContext, key: &Key) -> Notice {
        for _ in 0..EVENTS_MAX {
            let event = |instance: &Instance, view: &BrokerView| self.event(instance, view);
            match change_instance_if(context, key, event).await {
                Ok(Some(_)) => {}
                Ok(None) => return Notice::Given,
                Err(InstanceChangeError::Refused(
                    InstanceEventError::NotFound | InstanceEventError::Gone,
                )) => return Notice::Given,
                Err(InstanceChangeError::Refused(_)) => return Notice::Later,
                Err(error) => {
                    tracing::warn!(
                        instance.uid = key.id(1),
                        error = &error as &dyn std::error::Error,
                        "an instance is notified later of the change of a secret"
                    );
                    return Notice::Later;
                }
            }
        }
        Notice::Later
    }

    /// What the change causes next for an instance, as it is stored.
    fn event(&self, instance: &Instance, view: &BrokerView) -> Option<Event> {
        if instance.tombstone.is_some() {
            return None;
        }
        let catalog_revision = view.state.catalog_revision;
        let facts = |request: ChangeRequest| ChangeFacts {
            request,
            violations: Vec::new(),
            catalog_revision,
        };
        let mut pending = instance.pending.iter();
        let waits = |intent: &&PendingIntent| {
            self.lets_go_on(&intent.state, intent.accepted) && self.is_named(instance, intent)
        };
        let command = match pending.find(waits) {
            Some(held) => {
                let cause = IntentCause::Resume(held.number);
                let request = ChangeRequest {
                    on_failure: held.on_failure,
                    ..ChangeRequest::of_platform(held.author.clone(), cause)
                };
                InstanceCommand::Resume(held.number, facts(request))
            }
            None => InstanceCommand::Touch(facts(self.update(instance)?)),
        };
        Some(Event::Command(Box::new(command)))
    }

    /// Whether an intent waits for a secret. One that was accepted after the change has read it, and waits for another
    /// change.
    fn lets_go_on(&self, state: &IntentState, accepted: Timestamp) -> bool {
        let is_held = matches!(
            state,
            IntentState::OnHold(HoldReason::UnresolvedParameters(_))
        );
        is_held && accepted <= self.secret.changed
    }

    /// Whether the parameters of an intent come from the secret.
    fn is_named(&self, instance: &Instance, intent: &PendingIntent) -> bool {
        let mut spec = instance.basis.spec().clone();
        if let Some(patch) = intent.change.patch() {
            spec = spec.apply(patch);
        }
        let mut sources = spec.parameter_sources.iter();
        sources.any(|source| source.secret == self.name)
    }

    /// The update that sends the new values; `None`: the instance does not watch the secret, or the update is accepted, or
    /// a request that is still to be built reads the new values (its commit expects that the secret is unchanged).
    fn update(&self, instance: &Instance) -> Option<ChangeRequest> {
        // No request can have been made of an earlier one.
        let is_first = self.secret.revision == 1;
        if is_first || instance.secrets().get(self.name) != Some(&true) {
            return None;
        }
        let reads_later = |intent: &PendingIntent| {
            let is_unsent =
                intent.is_unsent() && matches!(intent.state, IntentState::Queued { last: None });
            let is_same = intent.cause == IntentCause::SecretChange
                && intent.author.is_same_person(&self.secret.changed_by);
            is_unsent && is_same
        };
        let creates = |intent: &PendingIntent| {
            intent.change == IntentChange::Provision && !intent.is_unsent()
        };
        let mut pending = instance.pending.iter();
        let is_read_later = match instance.confirmed() {
            Some(_) => pending.any(reads_later),
            None => !pending.any(creates),
        };
        if is_read_later {
            return None;
        }
        let SecretRecord {
            revision, changed, ..
        } = self.secret;
        let key = format!("secret {} {revision} {changed}", self.name);
        let key = RequestKey::of(&self.secret.changed_by, &key, &[]);
        let request = ChangeRequest {
            idempotency_key: Some(key),
            forced: true,
            ..ChangeRequest::of_platform(self.secret.changed_by.clone(), IntentCause::SecretChange)
        };
        instance
            .accepted_under(&request)
            .is_ok_and(|accepted| accepted.is_none())
            .then_some(request)
    }
}
