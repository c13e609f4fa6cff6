//! The commit of a decision about an instance.

use super::broker_id_writes::note_instance_id;
use super::operation_changes::{OperationChange, OperationWriter, START_NOW, ScrubbedOperations};
use super::orphan_writes::add_new_orphan;
use super::own_operation::{NextClaim, OwnOperation};
use crate::author::Author;
use crate::brokers::BrokerView;
use crate::context::{PlatformContext, journal_id};
use crate::lifecycle::instance::{
    Instance, InstanceDecision, InstanceEffect, InstanceOrphan, IntentChange, OperationStart,
    PendingIntent,
};
use crate::lifecycle::intent::OperationId;
use crate::lifecycle::orphan::{NewOrphan, OrphanKey, WaitingResource, late_create_guard};
use crate::platform_records::PlatformRecords;
use crate::records::{IntentRequest, NameRecord, Record, SecretUse, TypedRecord, broker_queue};
use jiff::Timestamp;
use sutler_journal::{Commit, Key, SealContext, Start, Write};
use sutler_records::{LoadedDocument, RecordError};

/// A decision about an instance that is to be written.
pub(crate) struct InstanceChange<'a> {
    /// Parts of the platform.
    pub(crate) context: &'a PlatformContext,
    /// The broker as it was when it was decided.
    pub(crate) broker: &'a BrokerView,
    /// Key of the instance.
    pub(crate) key: &'a Key,
    /// The instance as it was read.
    pub(crate) was: &'a LoadedDocument<Record<Instance>>,
    /// The decision.
    pub(crate) decision: &'a InstanceDecision,
    /// The moment of the decision.
    pub(crate) now: Timestamp,
}

/// Makes the commit of a decision; the document is left out if it stays as it is. The run's own operation is part of it: `waits` says when it is claimed again after an
/// effect that asks for that.
///
/// # Errors
/// An operation that ends, or a row of the ledger, cannot be read.
pub(crate) async fn instance_commit(
    change: &InstanceChange<'_>,
    mut own: Option<&mut OwnOperation>,
    waits: impl Fn(&InstanceEffect) -> Option<NextClaim>,
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
            InstanceEffect::TakeName(name) => change.take_name(commit, name),
            InstanceEffect::FreeName(name) => {
                let key = records.keys.instance_name(&next.namespace, name);
                commit.write(Write::Remove(key))
            }
            InstanceEffect::RecordOrphan(orphan) => {
                let orphan = change.new_orphan(orphan);
                let has_secrets = change.has_secrets();
                add_new_orphan(records, commit, (orphan, has_secrets), change.now).await?
            }
            InstanceEffect::Start(..)
            | InstanceEffect::Wake(_)
            | InstanceEffect::Suspend(_)
            | InstanceEffect::End(..)
            | InstanceEffect::Send
            | InstanceEffect::Look
            | InstanceEffect::Poll(_)
            | InstanceEffect::PollAfter(_)
            | InstanceEffect::TryAgainAfter(_)
            | InstanceEffect::TryAgainNow
            | InstanceEffect::WakeBindings
            | InstanceEffect::Unbind(_)
            | InstanceEffect::AbandonBindings(_)
            | InstanceEffect::Fetch => commit,
        };
    }
    let commit = note_instance_id(records, commit, change.was.state.get(), next);
    let commit = change.note_secret_uses(commit);
    let own_id = own.as_deref().map(|own| own.id);
    let scrubbed = ScrubbedOperations::read(records, &operations, own_id).await?;
    let writer = OperationWriter {
        records,
        lane: change.key,
        queue: &broker_queue(next.broker),
        scrubbed: &scrubbed,
    };
    let commit = writer.add_to(commit, operations, own.as_deref_mut());
    Ok(match own {
        Some(own) => own.add_to(commit, records),
        None => commit,
    })
}

impl InstanceChange<'_> {
    fn operation_change(&self, effect: &InstanceEffect) -> Option<OperationChange> {
        match effect {
            InstanceEffect::Start(operation, start) => {
                let intent = self.intent(*operation)?;
                Some(OperationChange::Start {
                    id: journal_id(*operation),
                    verb: intent.change.verb(),
                    start: match start {
                        OperationStart::Ready => START_NOW,
                        OperationStart::Waiting => Start::Waiting,
                    },
                    request: Box::new(request_of(intent)),
                })
            }
            InstanceEffect::Wake(operation) => Some(OperationChange::Wake(journal_id(*operation))),
            InstanceEffect::Suspend(operation) => {
                Some(OperationChange::Suspend(journal_id(*operation)))
            }
            InstanceEffect::End(operation, end) => {
                Some(OperationChange::End(journal_id(*operation), end.clone()))
            }
            InstanceEffect::Send
            | InstanceEffect::Look
            | InstanceEffect::Poll(_)
            | InstanceEffect::PollAfter(_)
            | InstanceEffect::TryAgainAfter(_)
            | InstanceEffect::TryAgainNow
            | InstanceEffect::RecordOrphan(_)
            | InstanceEffect::TakeName(_)
            | InstanceEffect::FreeName(_)
            | InstanceEffect::WakeBindings
            | InstanceEffect::Unbind(_)
            | InstanceEffect::AbandonBindings(_)
            | InstanceEffect::Fetch => None,
        }
    }

    fn intent(&self, operation: OperationId) -> Option<&PendingIntent> {
        let mut pending = self.decision.next.pending.iter();
        pending.find(|intent| intent.operation == operation)
    }

    fn take_name(&self, commit: Commit, name: &str) -> Commit {
        let records = &self.context.records;
        let next = &self.decision.next;
        let key = records.keys.instance_name(&next.namespace, name);
        let holder = Record::of(NameRecord {
            instance: next.uid,
            binding: None,
        });
        let was = LoadedDocument::absent();
        records.documents.put(commit, &key, &was, &holder)
    }

    fn new_orphan(&self, orphan: &InstanceOrphan) -> NewOrphan {
        let next = &self.decision.next;
        let answer_within = self.broker.registration.limits.answer_within;
        let is_awaited = next.awaited_orphan() == Some(&orphan.osb_id);
        let guard = |sent: Timestamp| late_create_guard(sent, answer_within, self.context.lease);
        NewOrphan {
            key: OrphanKey {
                broker: next.broker,
                instance: orphan.osb_id.clone(),
                binding: None,
            },
            service_id: next.service.clone(),
            plan_id: next.basis.spec().plan.clone(),
            cause: orphan.cause,
            by: self.abandoned_by().cloned(),
            waiting: is_awaited.then(|| WaitingResource::Instance {
                namespace: next.namespace.clone(),
                uid: next.uid,
            }),
            guarded_until: orphan.create_sent.map(guard),
            cleanup: orphan.mode,
        }
    }

    /// Whether the broker may have got values of secrets for the instance.
    fn has_secrets(&self) -> bool {
        let instances = self
            .was
            .state
            .get()
            .into_iter()
            .chain([&self.decision.next]);
        instances.flat_map(Instance::sources).next().is_some()
    }

    fn abandoned_by(&self) -> Option<&Author> {
        let effects = self.decision.effects.iter();
        let mut by = effects.filter_map(|effect| match effect {
            InstanceEffect::AbandonBindings(by) => Some(by),
            _ => None,
        });
        by.next_back()
    }

    /// Which secrets the instance uses, as it is shown, follows from it before and after.
    fn note_secret_uses(&self, mut commit: Commit) -> Commit {
        let records = &self.context.records;
        let next = &self.decision.next;
        let before = self.was.state.get().map(Instance::secrets);
        let before = before.unwrap_or_default();
        let after = next.secrets();
        let key = |secret: &str| records.keys.secret_use(&next.namespace, secret, next.uid);
        for secret in before.keys().filter(|secret| !after.contains_key(*secret)) {
            commit = commit.write(Write::Remove(key(secret)));
        }
        for (secret, watch) in &after {
            if before.get(secret) == Some(watch) {
                continue;
            }
            let key = key(secret);
            let document = SecretUse {
                watch: *watch,
                binding_of: None,
            };
            commit = put_secret_use(records, commit, key, document);
        }
        commit
    }
}

/// Adds to a commit that a resource uses a secret.
pub(super) fn put_secret_use(
    records: &PlatformRecords,
    commit: Commit,
    key: Key,
    document: SecretUse,
) -> Commit {
    let terms = document.terms();
    let sealed = SealContext::Document(&key);
    let body = records.documents.seal(sealed, &Record::of(document));
    commit.write(Write::Put { key, terms, body })
}

fn request_of(intent: &PendingIntent) -> IntentRequest {
    IntentRequest {
        number: intent.number,
        author: Some(intent.author.clone()),
        verb: intent.change.verb().to_owned(),
        patch: intent.change.patch().cloned(),
        stands_on: intent.stands_on.clone(),
        accepted: intent.accepted,
    }
}

impl IntentChange {
    /// The verb of its operation.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update(_) => "update",
            Self::Local(_) => "local",
            Self::Delete => "delete",
        }
    }
}
