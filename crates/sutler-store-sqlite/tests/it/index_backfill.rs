//! New documents are indexed late, without any effect on reads.
//!
//! A model holds the expected contents; the store is read completely before documents are indexed,
//! while they are being indexed, when they are indexed, and after each of these with the store opened
//! again.

use crate::fixture::{THING, directory, file, key, realm};
use bytes::Bytes;
use std::collections::BTreeMap;
use sutler_journal::{Commit, Document, Key, List, Position, Store, Term, Version};
use sutler_store_sqlite::SqliteStore;
use uuid::Uuid;

/// Id, and the version and term of its document.
type Model = BTreeMap<String, (Version, &'static str)>;

fn terms(plan: &'static str) -> Vec<Term> {
    vec![Term::new("plan", plan), Term::new("all", "yes")]
}

async fn add(store: &SqliteStore, model: &mut Model, count: usize) {
    for _ in 0..count / 50 {
        let mut commit = Commit::new();
        let ids: Vec<String> = (0..50).map(|_| Uuid::new_v4().to_string()).collect();
        for id in &ids {
            commit = commit.insert(key(id), terms("small"), Bytes::from_static(b"body"));
        }
        store.commit(&commit).await.expect("a commit");
        for id in ids {
            model.insert(id, (Version(commit.id()), "small"));
        }
    }
}

/// Changes every seventh document, and removes every eleventh.
async fn change_some(store: &SqliteStore, model: &mut Model) {
    let ids: Vec<String> = model.keys().cloned().collect();
    for part in ids.chunks(100) {
        let mut commit = Commit::new();
        let id = Version(commit.id());
        for (n, id_of) in part.iter().enumerate() {
            let version = model[id_of].0;
            if n % 11 == 0 {
                commit = commit.remove(key(id_of), version);
                model.remove(id_of);
            } else if n % 7 == 0 {
                let body = Bytes::from_static(b"changed");
                commit = commit.replace(key(id_of), version, terms("large"), body);
                model.insert(id_of.clone(), (id, "large"));
            }
        }
        store.commit(&commit).await.expect("a change");
    }
}

async fn all(store: &SqliteStore, list: &List) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut after: Option<Position> = None;
    loop {
        let page = store.list(list, after.as_ref(), 997).await.expect("a page");
        documents.extend(page.documents);
        after = page.next;
        if after.is_none() {
            return documents;
        }
    }
}

async fn check(store: &SqliteStore, model: &Model) {
    let found = |documents: &[Document]| -> Vec<(String, Version)> {
        let pair = |d: &Document| (d.key.id(0).to_owned(), d.version);
        documents.iter().map(pair).collect()
    };
    let expected = |plan: Option<&str>| -> Vec<(String, Version)> {
        let wanted = model
            .iter()
            .filter(|(_, (_, p))| plan.is_none_or(|plan| *p == plan));
        wanted
            .map(|(id, (version, _))| (id.clone(), *version))
            .collect()
    };
    let prefix = List::Prefix(Key::prefix(&realm(), THING, &[]).expect("a prefix"));
    assert!(
        found(&all(store, &prefix).await) == expected(None),
        "by key"
    );
    let every = List::term(&realm(), THING, "all", b"yes");
    assert!(
        found(&all(store, &every).await) == expected(None),
        "by a term of all"
    );
    for plan in ["small", "large"] {
        let list = List::term(&realm(), THING, "plan", plan.as_bytes());
        assert!(
            found(&all(store, &list).await) == expected(Some(plan)),
            "{plan}"
        );
    }
    for (id, (version, _)) in model.iter().step_by(97) {
        let document = store
            .get(&key(id))
            .await
            .expect("a read")
            .expect("a document");
        assert_eq!(document.version, *version);
    }
}

#[tokio::test]
async fn documents_are_found_before_during_and_after_indexing() {
    let directory = directory();
    let mut model = Model::new();
    // Unindexed; then in the middle of the first run; then after it, with a second run in progress.
    for count in [3_000, 6_000, 9_000] {
        let store = SqliteStore::open(file(&directory)).await.expect("a store");
        check(&store, &model).await;
        add(&store, &mut model, count).await;
        check(&store, &model).await;
        change_some(&store, &mut model).await;
        check(&store, &model).await;
        store.close().await;
    }
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    check(&store, &model).await;
    let copy = directory.path().join("copy.db");
    store.backup(&copy, |_| {}).await.expect("a backup");
    check(&SqliteStore::open(&copy).await.expect("a store"), &model).await;
}
