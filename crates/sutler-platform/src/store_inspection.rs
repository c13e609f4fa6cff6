//! Opens the records of the platform for checks of a whole store: what each is, which operations it has, and which documents
//! belong to it. The checks themselves are in `sutler_journal::inspect`.
//!
//! An instance and its names, its id at the broker and its uses of secrets refer to each other; a binding the same. Not
//! checked: the id of a binding at its broker, which is taken for as long as its row of the ledger may delete something,
//! longer than the binding is kept; and what waited for a row of the ledger.

use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::orphan::OrphanKey;
use crate::periodic::PlannedTask;
use crate::records::{
    BINDING, BINDING_NAME, BROKER, BROKER_BINDING_ID, BROKER_INSTANCE_ID, BROKER_STATE,
    BrokerIdRecord, BrokerRegistration, BrokerState, CatalogRecord, GONE_TERM, INSTANCE,
    INSTANCE_NAME, NAMESPACE, NameRecord, NamespaceRecord, ORPHAN, OrphanRecord, PlatformKeys,
    REPLICA, Record, ReplicaRecord, SECRET, SECRET_USE, SERVICE_OFFERING, SERVICE_PLAN,
    SecretRecord, SecretUse, TypedRecord,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use sutler_journal::inspect::{DocumentFacts, DocumentReference, SealedReader, UnreadableError};
use sutler_journal::{IndexedDocument, Key, KeyRing, Operation, StoreTime};
use sutler_records::{RecordOpener, Resource, SINGLETON, read_contents, same_terms, unknown_form};
use uuid::Uuid;

/// Opens documents and operations of the platform with a key ring.
pub struct PlatformDocumentOpener {
    records: RecordOpener,
    keys: PlatformKeys,
}

/// A document that belongs to another one.
fn mutual(to: Key) -> DocumentReference {
    DocumentReference {
        to,
        is_mutual: true,
    }
}

/// A document that another one needs.
fn needed(to: Key) -> DocumentReference {
    DocumentReference {
        to,
        is_mutual: false,
    }
}

impl PlatformDocumentOpener {
    /// Opens with these keys.
    pub fn new(ring: Arc<KeyRing>) -> Self {
        Self {
            records: RecordOpener::new(ring),
            keys: PlatformKeys::default(),
        }
    }

    fn instance(&self, instance: &Instance) -> Vec<DocumentReference> {
        if instance.tombstone.is_some() {
            return Vec::new();
        }
        let (keys, namespace, uid) = (&self.keys, &instance.namespace, instance.uid);
        let names = instance.names().into_iter();
        let names = names.map(|name| mutual(keys.instance_name(namespace, &name)));
        let secrets = instance.secrets().into_keys();
        let secrets = secrets.map(|secret| mutual(keys.secret_use(namespace, &secret, uid)));
        let awaited = instance.awaited_orphan().map(|osb_id| OrphanKey {
            broker: instance.broker,
            instance: osb_id.clone(),
            binding: None,
        });
        let id = keys.broker_instance_id(instance.broker, &instance.osb_id);
        names
            .chain(secrets)
            .chain([mutual(id), needed(keys.broker_state(instance.broker))])
            .chain(awaited.map(|row| needed(keys.orphan(&row))))
            .collect()
    }

    fn binding(&self, binding: &Binding) -> Vec<DocumentReference> {
        let (keys, namespace) = (&self.keys, &binding.namespace);
        // The tombstone of an instance is kept as long as it has bindings.
        let mut references = vec![needed(keys.instance(namespace, binding.instance))];
        if binding.tombstone.is_some() {
            return references;
        }
        references.push(mutual(keys.binding_name(namespace, &binding.name)));
        let sources = binding.spec.parameter_sources.iter();
        let secrets: BTreeSet<&str> = sources.map(|it| it.secret.as_str()).collect();
        let uses = secrets.into_iter();
        let uses = uses.map(|secret| mutual(keys.secret_use(namespace, secret, binding.uid)));
        references.extend(uses);
        references
    }

    /// The instance or the binding that has a name, an id or a secret.
    fn holder(&self, namespace: &str, instance: Uuid, binding: Option<Uuid>) -> DocumentReference {
        mutual(match binding {
            None => self.keys.instance(namespace, instance),
            Some(binding) => self.keys.binding(namespace, instance, binding),
        })
    }

    fn secret_use(&self, key: &Key, used: &SecretUse) -> Vec<DocumentReference> {
        let Ok(uid) = Uuid::try_parse(key.id(2)) else {
            return Vec::new();
        };
        vec![match used.binding_of {
            None => self.holder(key.id(0), uid, None),
            Some(instance) => self.holder(key.id(0), instance, Some(uid)),
        }]
    }

    fn orphan(&self, record: &OrphanRecord) -> Vec<DocumentReference> {
        let row = &record.orphan;
        match row.state.needs_broker() {
            true => vec![needed(self.keys.broker_state(row.key.broker))],
            false => Vec::new(),
        }
    }

    /// The state of the broker to which an item of a catalog belongs, and the offering of a plan.
    fn item(&self, key: &Key, record: &CatalogRecord) -> Vec<DocumentReference> {
        let Ok(broker) = Uuid::try_parse(key.id(0)) else {
            return Vec::new();
        };
        let state = needed(self.keys.broker_state(broker));
        match record {
            CatalogRecord::Service(_) => vec![state],
            CatalogRecord::Plan(plan) => {
                let offering = self.keys.service_offering(broker, plan.service_id());
                vec![state, needed(offering)]
            }
        }
    }
}

impl SealedReader for PlatformDocumentOpener {
    fn document(&self, indexed: &IndexedDocument) -> Result<DocumentFacts, UnreadableError> {
        let key = &indexed.document.key;
        let Some(plain) = self.records.document(indexed)? else {
            return Ok(DocumentFacts::default());
        };
        let opened = OpenedDocument { indexed, plain };
        let namespace = key.id(0);
        match key.kind() {
            kind if kind == INSTANCE.as_str() => opened.lane(|it: &Instance| self.instance(it)),
            kind if kind == BINDING.as_str() => opened.lane(|it: &Binding| self.binding(it)),
            kind if kind == ORPHAN.as_str() => opened.lane(|it: &OrphanRecord| self.orphan(it)),
            kind if kind == BROKER_STATE.as_str() => opened.lane(|_: &BrokerState| Vec::new()),
            kind if kind == INSTANCE_NAME.as_str() || kind == BINDING_NAME.as_str() => opened
                .record(|it: &NameRecord| vec![self.holder(namespace, it.instance, it.binding)]),
            kind if kind == BROKER_INSTANCE_ID.as_str() => opened.record(|it: &BrokerIdRecord| {
                vec![self.holder(&it.namespace, it.instance, it.binding)]
            }),
            kind if kind == BROKER_BINDING_ID.as_str() => {
                opened.record(|_: &BrokerIdRecord| Vec::new())
            }
            kind if kind == SECRET_USE.as_str() => {
                opened.record(|it: &SecretUse| self.secret_use(key, it))
            }
            kind if kind == SECRET.as_str() => opened.record(|_: &SecretRecord| Vec::new()),
            kind if kind == NAMESPACE.as_str() => opened.record(|_: &NamespaceRecord| Vec::new()),
            kind if kind == BROKER.as_str() => opened
                .record(|it: &BrokerRegistration| vec![needed(self.keys.broker_state(it.uid))]),
            kind if kind == SERVICE_OFFERING.as_str() || kind == SERVICE_PLAN.as_str() => {
                opened.record(|it: &CatalogRecord| self.item(key, it))
            }
            kind if kind == REPLICA.as_str() => opened.record(|_: &ReplicaRecord| Vec::new()),
            kind if kind == SINGLETON.as_str() => opened.task(),
            _ => Ok(DocumentFacts::default()),
        }
    }

    fn operation(&self, operation: &Operation) -> Result<(), UnreadableError> {
        self.records.operation(operation)
    }
}

/// A document with its contents.
struct OpenedDocument<'a> {
    indexed: &'a IndexedDocument,
    plain: Vec<u8>,
}

impl OpenedDocument<'_> {
    /// The facts of a document with operations.
    fn lane<T: TypedRecord>(
        &self,
        references: impl FnOnce(&T) -> Vec<DocumentReference>,
    ) -> Result<DocumentFacts, UnreadableError> {
        let record: Record<T> = read_contents(&self.plain)?;
        let operations = record.referenced_operations();
        let facts = self.facts(&record, references)?;
        Ok(DocumentFacts {
            points_to: Some(operations),
            ..facts
        })
    }

    /// The facts of a document without operations.
    fn record<T: TypedRecord>(
        &self,
        references: impl FnOnce(&T) -> Vec<DocumentReference>,
    ) -> Result<DocumentFacts, UnreadableError> {
        self.facts(&read_contents(&self.plain)?, references)
    }

    /// The facts of the document of a periodic task.
    fn task(&self) -> Result<DocumentFacts, UnreadableError> {
        let task: PlannedTask = read_contents(&self.plain)?;
        Ok(DocumentFacts {
            points_to: Some(task.referenced_operations()),
            misfiled: !self.indexed.terms.is_empty(),
            refers_to: Vec::new(),
        })
    }

    fn facts<T: TypedRecord>(
        &self,
        record: &Record<T>,
        references: impl FnOnce(&T) -> Vec<DocumentReference>,
    ) -> Result<DocumentFacts, UnreadableError> {
        let Some(contents) = record.get() else {
            return Err(unknown_form());
        };
        let mut terms = contents.terms();
        terms.extend(contents.dated_terms(StoreTime::default()));
        Ok(DocumentFacts {
            points_to: None,
            misfiled: !same_terms(&self.indexed.terms, &terms, GONE_TERM),
            refers_to: references(contents),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PlatformDocumentOpener;
    use crate::records::{NameRecord, Record};
    use crate::test_platform::{Endpoint, NAMESPACE, ScriptedAnswer, TestPlatform};
    use bytes::Bytes;
    use serde_json::json;
    use std::time::Duration;
    use sutler_client::wire::Method;
    use sutler_journal::inspect::{RealmReaders, check};
    use sutler_journal::{Commit, Key};
    use sutler_records::LoadedDocument;
    use uuid::Uuid;

    /// What a check says of the store.
    async fn findings(platform: &TestPlatform) -> Vec<String> {
        let documents = &platform.context.records.documents;
        let reader = PlatformDocumentOpener::new(documents.keys.clone());
        let readers = RealmReaders::default().with(documents.realm.as_str(), reader);
        let report = check(&documents.store, Some(&readers), &|_, _| {}).await;
        let report = report.expect("the store answers");
        assert!(report.documents > 8 && report.operations > 2, "{report:?}");
        report.findings.iter().map(ToString::to_string).collect()
    }

    /// A platform with an instance, a binding and an orphan, that is not running any more.
    async fn stopped() -> (TestPlatform, Key, Key) {
        let platform = TestPlatform::start().await;
        let broker = &platform.broker;
        broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
        let (key, instance) = platform.live_instance().await;
        platform.bound(&instance, "db-app").await;
        let name = platform.context.records.keys.instance_name(NAMESPACE, "db");
        platform
            .broker
            .plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Never);
        let request = crate::test_platform::bind_request(&instance, "waits");
        platform.bind(request).await;
        platform.engine.shut_down(Duration::ZERO).await;
        (platform, key, name)
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_platform_writes_is_consistent() {
        let (platform, ..) = stopped().await;
        let found = findings(&platform).await;
        assert_eq!(found, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_is_missing_is_named_with_what_needs_it() {
        let (platform, key, name) = stopped().await;
        let store = &platform.context.records.documents.store;
        let there = store.get(&name).await.expect("it answers");
        let remove = Commit::new().remove(name, there.expect("a name").version);
        store.commit(&remove).await.expect("it is removed");
        let expected = format!(
            "service_instance app/{} of realm platform refers to instance_name app/db of realm platform, which is not \
             there: restore a backup",
            key.id(1)
        );
        assert_eq!(findings(&platform).await, [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_another_instance_has_is_a_fault_on_both_sides() {
        let (platform, key, name) = stopped().await;
        let records = &platform.context.records;
        let was: LoadedDocument<Record<NameRecord>> =
            records.load(&name).await.expect("it is read");
        let other = Record::of(NameRecord {
            instance: Uuid::nil(),
            binding: None,
        });
        let commit = records.documents.put(Commit::new(), &name, &was, &other);
        let written = records.documents.store.commit(&commit).await;
        written.expect("it is written");
        let found = findings(&platform).await;
        assert_eq!(found.len(), 2, "{found:?}");
        let missing = Uuid::nil().to_string();
        assert!(
            found
                .iter()
                .any(|it| it.starts_with("instance_name app/db") && it.contains(&missing))
        );
        let misled = |it: &String| it.contains(key.id(1)) && it.contains("something else");
        assert!(found.iter().any(misled), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_was_changed_is_not_opened() {
        let (platform, key, _) = stopped().await;
        let store = &platform.context.records.documents.store;
        let there = store.get(&key).await.expect("it answers").expect("one");
        let damaged = Bytes::from_static(b"damaged");
        let commit = Commit::new().replace(key, there.version, Vec::new(), damaged);
        store.commit(&commit).await.expect("it is written");
        let found = findings(&platform).await;
        assert!(
            found.iter().any(|it| it.contains("cannot be opened")),
            "{found:?}"
        );
    }
}
