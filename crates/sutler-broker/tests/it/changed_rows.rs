//! Rows that were changed in the database, which needs no key: no hook is called because of them.

use crate::fixture::scripted_service::Script;
use crate::fixture::{Fixture, catalog_of, test_catalog};
use serde_json::json;
use std::sync::Arc;
use sutler_broker::Broker;
use sutler_journal::{
    Commit, IndexedDocument, Key, KeyRing, MemoryStore, Operation, OperationFilter, OperationId,
    OperationList, Outcome, State, Store, Write,
};
use sutler_osb::OperationKind::{self, Bind, Deprovision, Provision, Unbind, Update};

/// A broker on a store.
async fn broker_on(store: Arc<dyn Store>, keys: &str) -> Fixture {
    let script = Arc::new(Script::default());
    let broker = Broker::new(catalog_of(test_catalog::catalog()))
        .other_services(script.clone())
        .basic_auth("user", "s3cret")
        .shared_store(store, KeyRing::parse(keys).expect("a ring"));
    let mut fixture = Fixture::around(broker.start().await.expect("the broker starts"));
    fixture.script = script;
    fixture
}

/// A copy of a store with changed rows of documents and operations.
async fn changed(
    from: &dyn Store,
    change_document: impl Fn(&mut IndexedDocument),
    change_operation: impl Fn(&mut Operation),
) -> Arc<dyn Store> {
    let to = MemoryStore::new();
    for mut indexed in from.scan_documents(&[], 1000).await.expect("documents") {
        change_document(&mut indexed);
        let put = Write::Put {
            key: indexed.document.key,
            terms: indexed.terms,
            body: indexed.document.body,
        };
        to.commit(&Commit::new().write(put)).await.expect("a copy");
    }
    let all = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 1000,
    };
    for row in from.operations(&all).await.expect("operations") {
        let operation = from.operation(row.id).await.expect("it answers");
        let mut operation = operation.expect("it is there");
        change_operation(&mut operation);
        let import = Write::Import(Box::new(operation));
        to.commit(&Commit::new().write(import))
            .await
            .expect("a copy");
    }
    Arc::new(to)
}

/// The key of a resource of the only realm of a store.
async fn key_of(store: &dyn Store, kind: &str, id: &str) -> Key {
    let all = store.scan_documents(&[], 1000).await.expect("documents");
    let mut keys = all.into_iter().map(|it| it.document.key);
    let is_it = |key: &Key| key.kind() == kind && (key.id(1) == id || key.id(0) == id);
    keys.find(is_it).expect("it is there")
}

/// Lets a broker run an operation of this verb up to its hook, changes the row, and lets another broker run it.
async fn is_cancelled_without_a_call(
    held: OperationKind,
    verb: OperationKind,
    lane: Option<(&str, &str)>,
) {
    let keys = KeyRing::fresh_line("one");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let old = broker_on(store.clone(), &keys).await;
    for instance in ["i", "j"] {
        old.has_instance(instance).await;
        old.has_binding(instance, &format!("{instance}-b")).await;
    }
    let gate = old.script.hold(held);
    let request = match held {
        Update => old.update("i").parameters(json!({ "size": 2 })),
        Bind => old.bind("i", "new"),
        _ => old.provision("new"),
    };
    let accepted = request.accepts_incomplete().send().await.is(202);
    gate.reached().await;
    let id = OperationId::parse(&accepted.operation()).expect("an id");
    let lane = match lane {
        Some((kind, id)) => Some(key_of(&*store, kind, id).await),
        None => None,
    };
    let change = |operation: &mut Operation| {
        if operation.row.id != id {
            return;
        }
        operation.row.verb = verb.word().into();
        if let Some(lane) = &lane {
            operation.row.lane = lane.clone();
        }
    };
    let store = changed(&*store, |_| {}, change).await;
    old.script.open_all();
    old.running.shut_down().await;

    let new = broker_on(store.clone(), &keys).await;
    let state = async || {
        let found = store.operation(id).await.expect("it answers");
        found.expect("it is there").row.state
    };
    new.until("it ended", async || matches!(state().await, State::Done(_)))
        .await;
    let ended = format!("{held:?} as {verb:?} of {lane:?}");
    assert_eq!(state().await, State::Done(Outcome::Cancelled), "{ended}");
    for verb in [Provision, Update, Deprovision, Bind, Unbind] {
        assert_eq!(new.script.calls(verb).len(), 0, "{ended}: {verb:?}");
    }
    for instance in ["i", "j"] {
        let binding = format!("{instance}-b");
        new.fetch_binding(instance, &binding).send().await.is(200);
    }
    new.running.shut_down().await;
}

#[tokio::test]
async fn an_operation_whose_verb_was_changed_calls_no_hook() {
    is_cancelled_without_a_call(Update, Deprovision, None).await;
    is_cancelled_without_a_call(Update, Provision, None).await;
    is_cancelled_without_a_call(Provision, Deprovision, None).await;
    is_cancelled_without_a_call(Provision, Update, None).await;
    is_cancelled_without_a_call(Bind, Unbind, None).await;
}

#[tokio::test]
async fn an_operation_that_was_moved_to_another_resource_calls_no_hook() {
    let (instance, binding) = (Some(("instance", "j")), Some(("binding", "j-b")));
    for verb in [Update, Deprovision, Provision] {
        is_cancelled_without_a_call(Update, verb, instance).await;
    }
    for verb in [Unbind, Bind] {
        is_cancelled_without_a_call(Update, verb, binding).await;
        is_cancelled_without_a_call(Bind, verb, binding).await;
    }
}

#[tokio::test]
async fn a_deprovision_removes_no_binding_of_another_instance_that_is_listed_for_it() {
    let keys = KeyRing::fresh_line("one");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let old = broker_on(store.clone(), &keys).await;
    for instance in ["i", "j"] {
        old.has_instance(instance).await;
        old.has_binding(instance, &format!("{instance}-b")).await;
    }
    let all = store.scan_documents(&[], 1000).await.expect("documents");
    let mut all = all.into_iter();
    let own = all.find(|it| it.document.key.id(1) == "i-b");
    let terms = own.expect("a binding").terms;
    let list_for_i = |indexed: &mut IndexedDocument| {
        if indexed.document.key.id(1) == "j-b" {
            indexed.terms.clone_from(&terms);
        }
    };
    let store = changed(&*store, list_for_i, |_| {}).await;
    old.running.shut_down().await;

    let new = broker_on(store, &keys).await;
    let deprovision = new.deprovision("i").accepts_incomplete();
    new.finish("i", deprovision).await;
    assert_eq!(new.script.calls(Deprovision).len(), 1);
    let unbound = new.script.only_call(Unbind);
    assert_eq!(unbound.binding.as_deref(), Some("i-b"));
    new.fetch_binding("j", "j-b").send().await.is(200);
    new.running.shut_down().await;
}
