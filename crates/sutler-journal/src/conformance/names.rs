//! Names and contents are bytes, compared as bytes; realms and kinds are separate.

use super::Candidate;
use super::fixture::{Fixture, THING, bytes, ids, insert_with, key, new_operation, realm};
use crate::commit::{Commit, Start};
use crate::document::Term;
use crate::key::{ID_BYTES_MAX, Key, Kind, Realm};
use crate::query::{List, OperationFilter};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Ids that some databases treat as equal, and the longest ones.
fn lookalikes() -> Vec<String> {
    let mut names: Vec<String> = [
        "a",
        "A",
        "a ",
        " a",
        "a/b",
        "a%2Fb",
        "a\\b",
        "a%",
        "a_",
        "a*",
        "a\n",
        "ä",
        "a\u{308}",
        "Ä",
        "ß",
        "ss",
        "ı",
        "i",
        "I",
        "0",
        "00",
        "null",
        "\u{feff}a",
        "a\u{200b}",
        "😀",
        "'; --",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(ID_BYTES_MAX));
    names.push(format!("{}y", "x".repeat(ID_BYTES_MAX - 1)));
    names.push("x".repeat(ID_BYTES_MAX - 1));
    names
}

/// Each lookalike names its own document.
pub async fn ids_that_look_alike_are_different_documents(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let names = lookalikes();
    for name in &names {
        let commit = Commit::new().insert(key(name), Vec::new(), bytes(name));
        fixture.commit(commit).await;
    }
    for name in &names {
        let document = fixture.get(name).await.expect("its document");
        assert_eq!((document.key, document.body), (key(name), bytes(name)));
    }
    let mut sorted = names.clone();
    sorted.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let all = fixture.list_all(&List::Prefix(Vec::new()), 7).await;
    assert_eq!(ids(&all), sorted);
}

/// Each lookalike is its own term value.
pub async fn ids_that_look_alike_are_different_term_values(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let names = lookalikes();
    for (n, name) in names.iter().enumerate() {
        let commit = insert_with(&format!("doc-{n}"), "plan", name.as_bytes());
        fixture.commit(commit).await;
    }
    for (n, name) in names.iter().enumerate() {
        let list = List::term(&realm(), THING, "plan", name.as_bytes());
        let found = fixture.list_all(&list, 10).await;
        assert_eq!(ids(&found), [format!("doc-{n}")], "{name:?}");
    }
}

/// Each lookalike is its own lane.
pub async fn ids_that_look_alike_are_different_lanes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut started = Vec::new();
    for name in lookalikes() {
        let new = new_operation(&name, Start::Waiting);
        started.push((key(&name), new.id));
        fixture.commit(Commit::new().start(new)).await;
    }
    for (n, (lane, id)) in started.iter().enumerate() {
        let filter = OperationFilter::Lane(lane.clone());
        assert_eq!(fixture.operations(filter).await, [*id]);
        let polled = fixture.store.poll(lane, *id).await.expect("a poll");
        assert!(polled.is_some(), "{lane:?} does not see its operation");
        let (other, _) = &started[(n + 1) % started.len()];
        let polled = fixture.store.poll(other, *id).await.expect("a poll");
        assert!(polled.is_none(), "{other:?} sees an operation of {lane:?}");
        assert_eq!(fixture.row(*id).await.lane, *lane);
    }
}

/// A term's value may be any bytes, including none, and is sorted as bytes.
pub async fn term_values_are_any_bytes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let values: [&[u8]; 8] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\x01",
        b"\x01",
        b"a\0b",
        b"\x7f\x80",
        b"\xff\xff",
    ];
    for (n, value) in values.iter().enumerate().rev() {
        fixture
            .commit(insert_with(&format!("{n}"), "value", *value))
            .await;
    }
    let all = List::Term {
        realm: realm(),
        kind: THING,
        name: "value",
        from: Vec::new(),
        to: vec![0xff; 3],
    };
    let in_order: Vec<String> = (0..values.len()).map(|n| n.to_string()).collect();
    for limit in [1, 3, 100] {
        assert_eq!(ids(&fixture.list_all(&all, limit).await), in_order);
    }
    for (n, value) in values.iter().enumerate() {
        let exact = List::term(&realm(), THING, "value", value);
        assert_eq!(ids(&fixture.list_all(&exact, 10).await), [n.to_string()]);
    }
}

/// A body of any bytes, including none, is read back unchanged.
pub async fn bodies_are_any_bytes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let every: Bytes = (0..=255).collect::<Vec<u8>>().into();
    for (id, body) in [("every", every), ("none", Bytes::new())] {
        let mut new = new_operation(id, Start::Waiting);
        new.detail = body.clone();
        new.request = body.clone();
        let operation = new.id;
        let commit = Commit::new().insert(key(id), Vec::new(), body.clone());
        fixture.commit(commit.start(new)).await;
        assert_eq!(fixture.get(id).await.expect("it").body, body);
        let read = fixture.operation(operation).await;
        assert_eq!((read.row.detail, read.request), (body.clone(), body));
    }
}

/// The same ids in two realms, or of two kinds, are two documents that never share a list.
pub async fn realms_and_kinds_never_see_each_other(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let realms = ["r", "R", "r ", "rr"].map(|name| Realm::new(name).expect("a realm"));
    let kinds = ["instance", "instances", "binding"].map(Kind::new);
    let mut all = BTreeSet::new();
    for realm in &realms {
        for kind in kinds {
            let key = Key::new(realm, kind, &["same"]).expect("a key");
            let body = Bytes::copy_from_slice(key.as_bytes());
            let terms = vec![Term::new("plan", "p")];
            fixture
                .commit(Commit::new().insert(key.clone(), terms, body))
                .await;
            all.insert(key);
        }
    }
    for realm in &realms {
        for kind in kinds {
            let key = Key::new(realm, kind, &["same"]).expect("a key");
            let prefix = Key::prefix(realm, kind, &[]).expect("a prefix");
            for list in [List::Prefix(prefix), List::term(realm, kind, "plan", b"p")] {
                let found = fixture.list_all(&list, 10).await;
                assert_eq!(found.len(), 1, "{list:?}");
                assert_eq!(found[0].key, key);
                assert_eq!(found[0].body, key.as_bytes());
            }
        }
    }
    // Neighbours in the index that differ only in the realm.
    let lone = Kind::new("lone");
    let everywhere = |realm: &Realm| List::Term {
        realm: realm.clone(),
        kind: lone,
        name: "plan",
        from: Vec::new(),
        to: vec![0xff],
    };
    let pair = ["s", "t"].map(|name| Realm::new(name).expect("a realm"));
    for realm in &pair {
        let key = Key::new(realm, lone, &["same"]).expect("a key");
        let terms = vec![Term::new("plan", "p")];
        fixture
            .commit(Commit::new().insert(key.clone(), terms, bytes("x")))
            .await;
        all.insert(key);
    }
    for realm in &pair {
        let found = fixture.list_all(&everywhere(realm), 10).await;
        assert_eq!(found.len(), 1, "{realm:?}");
        assert_eq!(found[0].key.realm(), realm.as_str());
    }
    let everything = fixture.list_all(&List::Prefix(Vec::new()), 5).await;
    let everything: Vec<Key> = everything.into_iter().map(|d| d.key).collect();
    assert_eq!(everything, all.into_iter().collect::<Vec<_>>());
}

/// A list below one id contains its children, and none of ids that only begin alike.
pub async fn a_prefix_takes_the_children_and_no_neighbours(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for instance in ["a", "A", "a ", "a/b", "aa", "ä"] {
        for binding in ["1", "2", "/"] {
            let key = Key::new(&realm(), THING, &[instance, binding]).expect("a key");
            let commit = Commit::new().insert(key, Vec::new(), bytes(instance));
            fixture.commit(commit).await;
        }
    }
    let below = Key::prefix(&realm(), THING, &["a"]).expect("a prefix");
    for limit in [1, 2, 3, 4] {
        let found = fixture.list_all(&List::Prefix(below.clone()), limit).await;
        let found: Vec<&str> = found.iter().map(|document| document.key.id(1)).collect();
        assert_eq!(found, ["/", "1", "2"]);
    }
}
