//! The commit of a decision about a binding.

use super::broker_id_writes::note_binding_ids;
use super::instance_writes::put_secret_use;
use super::operation_changes::{OperationChange, OperationWriter, START_NOW, ScrubbedOperations};
use super::orphan_writes::add_new_orphan;
use super::own_operation::{NextClaim, OwnOperation};
use crate::context::{PlatformContext, journal_id};
use crate::lifecycle::binding::{
    Binding, BindingDecision, BindingEffect, BindingOrphan, IntentChange, OperationStart,
    PendingIntent,
};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::OperationId;
use crate::lifecycle::orphan::{NewOrphan, OrphanKey, WaitingResource};
use crate::records::{IntentRequest, NameRecord, Record, SecretUse, broker_queue};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;
use sutler_journal::{Commit, Due, Key, Start, Write};
use sutler_records::{LoadedDocument, RecordError};

/// First look of a bind whose instance is not live yet, unless the instance wakes it.
const INSTANCE_WAIT: Duration = Duration::from_secs(1);

/// A decision about a binding that is to be written.
pub(crate) struct BindingChange<'a> {
    /// Parts of the platform.
    pub(crate) context: &'a PlatformContext,
    /// Key of the binding.
    pub(crate) key: &'a Key,
    /// The instance, as it was read last.
    pub(crate) instance: &'a Instance,
    /// The binding as it was read.
    pub(crate) was: &'a LoadedDocument<Record<Binding>>,
    /// The decision.
    pub(crate) decision: &'a BindingDecision,
    /// The moment of the decision.
    pub(crate) now: Timestamp,
}

/// Makes the commit of a decision; the document is left out if it stays as it is. The run's own operation is part of it:
/// `waits` says when it is claimed again after an effect that asks for that.
///
/// # Errors
/// An operation that ends, or a row of the ledger, cannot be read.
pub(crate) async fn binding_commit(
    change: &BindingChange<'_>,
    mut own: Option<&mut OwnOperation>,
    waits: impl Fn(&BindingEffect) -> Option<NextClaim>,
) -> Result<Commit, RecordError> {
    let records = &change.context.records;
    let next = &change.decision.next;
    let mut commit = match change.was.state.get() == Some(next) {
        true => Commit::new(),
        false => {
            let next = Record::of(next.clone());
            let documents = &records.documents;
            documents.put(Commit::new(), change.key, change.was, &next)
        }
    };
    let mut operations = Vec::new();
    for effect in &change.decision.effects {
        if let Some(operation) = change.operation_change(effect) {
            operations.push(operation);
        }
        if let (Some(own), Some(claim)) = (own.as_deref_mut(), waits(effect)) {
            own.next = claim;
        }
        commit = match effect {
            BindingEffect::TakeName(name) => change.take_name(commit, name),
            BindingEffect::FreeName(name) => {
                let key = records.keys.binding_name(&next.namespace, name);
                commit.write(Write::Remove(key))
            }
            BindingEffect::RecordOrphan(orphan) => {
                let orphan = change.new_orphan(orphan);
                let mut sources = change
                    .instance
                    .sources()
                    .chain(&next.spec.parameter_sources);
                let has_secrets = sources.next().is_some();
                add_new_orphan(records, commit, (orphan, has_secrets), change.now).await?
            }
            BindingEffect::Start(..)
            | BindingEffect::Wake(_)
            | BindingEffect::Suspend(_)
            | BindingEffect::End(..)
            | BindingEffect::DiscardRequest(_)
            | BindingEffect::Send
            | BindingEffect::Look
            | BindingEffect::Poll(_)
            | BindingEffect::PollAfter(_)
            | BindingEffect::TryAgainAfter(_)
            | BindingEffect::TryAgainNow => commit,
        };
    }
    let commit = change.note_ids(change.note_secret_uses(commit));
    let own_id = own.as_deref().map(|own| own.id);
    let scrubbed = ScrubbedOperations::read(records, &operations, own_id).await?;
    let writer = OperationWriter {
        records,
        lane: change.key,
        queue: &broker_queue(change.instance.broker),
        scrubbed: &scrubbed,
    };
    let commit = writer.add_to(commit, operations, own.as_deref_mut());
    Ok(match own {
        Some(own) => own.add_to(commit, records),
        None => commit,
    })
}

impl BindingChange<'_> {
    fn operation_change(&self, effect: &BindingEffect) -> Option<OperationChange> {
        match effect {
            BindingEffect::Start(operation, start) => {
                let intent = self.intent(*operation)?;
                Some(OperationChange::Start {
                    id: journal_id(*operation),
                    verb: intent.change.verb(),
                    start: match start {
                        OperationStart::Ready => START_NOW,
                        OperationStart::Waiting => Start::Waiting,
                        OperationStart::Later => Start::Ready(Due::In(INSTANCE_WAIT)),
                    },
                    request: Box::new(request_of(intent)),
                })
            }
            BindingEffect::Wake(operation) => Some(OperationChange::Wake(journal_id(*operation))),
            BindingEffect::Suspend(operation) => {
                Some(OperationChange::Suspend(journal_id(*operation)))
            }
            BindingEffect::End(operation, end) => {
                Some(OperationChange::End(journal_id(*operation), end.clone()))
            }
            BindingEffect::DiscardRequest(operation) => {
                Some(OperationChange::DiscardRequest(journal_id(*operation)))
            }
            BindingEffect::Send
            | BindingEffect::Look
            | BindingEffect::Poll(_)
            | BindingEffect::PollAfter(_)
            | BindingEffect::TryAgainAfter(_)
            | BindingEffect::TryAgainNow
            | BindingEffect::RecordOrphan(_)
            | BindingEffect::TakeName(_)
            | BindingEffect::FreeName(_) => None,
        }
    }

    fn intent(&self, operation: OperationId) -> Option<&PendingIntent> {
        let mut pending = self.decision.next.pending.iter();
        pending.find(|intent| intent.operation == operation)
    }

    fn take_name(&self, commit: Commit, name: &str) -> Commit {
        let records = &self.context.records;
        let next = &self.decision.next;
        let key = records.keys.binding_name(&next.namespace, name);
        let holder = Record::of(NameRecord {
            instance: next.instance,
            binding: Some(next.uid),
        });
        let was = LoadedDocument::absent();
        records.documents.put(commit, &key, &was, &holder)
    }

    /// Which secrets the binding uses: those of its parameters, until it is gone.
    fn note_secret_uses(&self, commit: Commit) -> Commit {
        let records = &self.context.records;
        let next = &self.decision.next;
        let before = self
            .was
            .state
            .get()
            .is_some_and(|it| it.tombstone.is_none());
        let after = next.tombstone.is_none();
        if before == after {
            return commit;
        }
        let sources = next.spec.parameter_sources.iter();
        let secrets: BTreeSet<&str> = sources.map(|it| it.secret.as_str()).collect();
        secrets.into_iter().fold(commit, |commit, secret| {
            let key = records.keys.secret_use(&next.namespace, secret, next.uid);
            let document = SecretUse {
                watch: false,
                binding_of: Some(next.instance),
            };
            match after {
                true => put_secret_use(records, commit, key, document),
                false => commit.write(Write::Remove(key)),
            }
        })
    }

    /// Which ids of the broker are taken follows from the binding before and after, and from what goes to the ledger.
    fn note_ids(&self, commit: Commit) -> Commit {
        let effects = self.decision.effects.iter();
        let on_ledger = effects.filter_map(|effect| match effect {
            BindingEffect::RecordOrphan(orphan) => Some(&orphan.osb_id),
            _ => None,
        });
        note_binding_ids(
            &self.context.records,
            commit,
            self.instance.broker,
            self.was.state.get(),
            &self.decision.next,
            &on_ledger.collect(),
        )
    }

    fn new_orphan(&self, orphan: &BindingOrphan) -> NewOrphan {
        let next = &self.decision.next;
        let instance = self.instance;
        let is_awaited = next.waits_for(&orphan.osb_id);
        NewOrphan {
            key: OrphanKey {
                broker: instance.broker,
                instance: instance.osb_id.clone(),
                binding: Some(orphan.osb_id.clone()),
            },
            service_id: instance.service.clone(),
            plan_id: instance.basis.spec().plan.clone(),
            cause: orphan.cause,
            by: orphan.by.clone(),
            waiting: is_awaited.then(|| WaitingResource::Binding {
                namespace: next.namespace.clone(),
                instance: next.instance,
                uid: next.uid,
            }),
            guarded_until: orphan.guarded_until,
            cleanup: orphan.cleanup,
        }
    }
}

fn request_of(intent: &PendingIntent) -> IntentRequest {
    IntentRequest {
        number: intent.number,
        author: Some(intent.author.clone()),
        verb: intent.change.verb().to_owned(),
        patch: None,
        stands_on: Vec::new(),
        accepted: intent.accepted,
    }
}

impl IntentChange {
    /// The verb of its operation.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Bind(_) => "bind",
            Self::Unbind(_) => "unbind",
            Self::Delete => "delete",
        }
    }
}
