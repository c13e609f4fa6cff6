//! Transactions of commits, against small views. Not here: whether etcd accepts them (`tests/it`).

use super::{CommitContext, CommitDecision, Transaction, decide};
use crate::keys::Keys;
use crate::rows::{self, time};
use crate::view::View;
use crate::wire::{Event, EventKind, Int, KeyValue};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::{
    Commit, CommitId, Due, Fence, Key, Kind, List, NewOperation, Next, OperationId, Outcome,
    Position, Queue, Realm, StaleItem, Start, StoreTime, Term, Version, WorkerId, Write,
};
use uuid::Uuid;

const NOW: StoreTime = StoreTime(1_000_000);

/// A minimal store: every transaction is applied to the view at once.
struct MiniStore {
    keys: Keys,
    view: View,
    dead: BTreeSet<WorkerId>,
}

impl MiniStore {
    fn new() -> Self {
        Self {
            keys: Keys::below("p"),
            view: View::default(),
            dead: BTreeSet::new(),
        }
    }

    fn decide(&self, commit: &Commit) -> CommitDecision {
        decide(&CommitContext {
            view: &self.view,
            keys: &self.keys,
            commit,
            now: NOW,
            dead: &self.dead,
            fetched: &BTreeMap::new(),
            void: 0,
        })
    }

    fn plan(&self, commit: &Commit) -> Transaction {
        match self.decide(commit) {
            CommitDecision::Write(plan) => plan,
            CommitDecision::Applied | CommitDecision::Stale(_) | CommitDecision::Fetch(_) => {
                panic!("no plan")
            }
        }
    }

    fn stale(&self, commit: &Commit) -> StaleItem {
        match self.decide(commit) {
            CommitDecision::Stale(which) => which,
            CommitDecision::Applied | CommitDecision::Write(_) | CommitDecision::Fetch(_) => {
                panic!("not stale")
            }
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        let kv = KeyValue {
            key: key.into(),
            value: value.into(),
            mod_revision: Int(self.view.revision + 1),
            lease: Int(7),
        };
        let kind = EventKind::Put;
        let applied = self.view.apply(&self.keys, &Event { kind, kv }, NOW);
        applied.expect("it can be read");
    }

    /// Plans a commit and applies it.
    fn commit(&mut self, commit: &Commit) {
        let plan = serde_json::to_value(&self.plan(commit).steps).expect("steps");
        for step in plan.as_array().expect("steps") {
            let read = |name: &str| {
                let field = step["request_put"][name].clone();
                serde_json::from_value::<crate::wire::Base64>(field).map(|it| it.0.to_vec())
            };
            if let (Ok(key), Ok(value)) = (read("key"), read("value")) {
                self.put(key, value);
            }
        }
    }

    fn worker(&mut self) -> WorkerId {
        let worker = WorkerId::fresh();
        self.put(self.keys.name(worker), time(NOW));
        self.put(self.keys.worker(worker), time(StoreTime(30)));
        worker
    }
}

fn key(id: &str) -> Key {
    Key::new(&Realm::new("r").expect("a realm"), Kind::new("k"), &[id]).expect("a key")
}

fn insert(id: &str, terms: usize) -> Commit {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let terms = names.iter().take(terms).map(|name| Term::new(name, "v"));
    Commit::new().insert(key(id), terms.collect(), Bytes::from_static(b"body"))
}

fn operation(start: Start) -> NewOperation {
    NewOperation {
        id: OperationId::fresh(),
        lane: key("lane"),
        verb: "provision",
        queue: Queue::named("work"),
        start,
        detail: Bytes::from_static(b"detail"),
        request: Bytes::from_static(b"request"),
    }
}

#[test]
fn a_commit_writes_one_key_per_record_and_two_more() {
    let store = MiniStore::new();
    for terms in [0, 8] {
        let commit = insert("a", terms).start(operation(Start::Waiting));
        let plan = store.plan(&commit);
        assert_eq!(plan.steps.len(), 4);
        // The commit itself and its void mark, the document, the operation.
        assert_eq!(plan.conditions.len(), 4);
    }
}

#[test]
fn an_applied_commit_needs_no_write() {
    let mut store = MiniStore::new();
    let commit = insert("a", 1);
    store.commit(&commit);
    assert!(matches!(store.decide(&commit), CommitDecision::Applied));
    assert_eq!(store.stale(&insert("a", 1)), StaleItem::Expect(0));
}

/// Size of a transaction in bytes, as etcd counts it.
fn bytes_of(plan: &Transaction) -> usize {
    let json = serde_json::to_vec(&(&plan.steps, &plan.conditions));
    json.expect("JSON").len() * 3 / 4
}

#[test]
fn the_largest_commit_fits_into_one_transaction() {
    let mut store = MiniStore::new();
    store.keys = Keys::below(&"p".repeat(128));
    let long = ["a", "b", "c"].map(|id| id.repeat(512));
    let ids = long.each_ref().map(String::as_str);
    let realm = Realm::new("r".repeat(64)).expect("a realm");
    let inline = Bytes::from(vec![1; rows::INLINE_BYTES_MAX]);
    let mut starts = vec![Commit::new(), Commit::new()];
    let mut next = Commit::new();
    for n in 0..100 {
        let mut new = operation(Start::Ready(Due::Now));
        new.lane = Key::new(&realm, Kind::new("k"), &ids).expect("a key");
        (new.detail, new.request) = (inline.clone(), inline.clone());
        // Ten times 100 kB: a megabyte. The rest writes existing contents again.
        let large = (n < 10).then(|| Bytes::from(vec![2; 99_000]));
        next = next.advance(new.id, Next::Same, None, large);
        let start = &mut starts[n % 2];
        *start = std::mem::take(start).start(new);
    }
    for start in &starts {
        store.commit(start);
    }
    for expects in [10, 100] {
        let mut commit = next.clone();
        for n in 0..expects {
            let id = format!("{n:0512}");
            let ids = [id.as_str(), ids[1], ids[2]];
            commit = commit.absent(Key::new(&realm, Kind::new("k"), &ids).expect("a key"));
        }
        commit.check().expect("a commit that every store takes");
        let plan = store.plan(&commit);
        assert!(plan.conditions.len() <= 128, "{}", plan.conditions.len());
        assert!(plan.steps.len() <= 128, "{}", plan.steps.len());
        let bytes = bytes_of(&plan);
        assert!(bytes < 1_572_864, "{bytes} bytes with {expects}");
    }
}

#[test]
fn a_fence_requires_the_lease_of_its_holder() {
    let mut store = MiniStore::new();
    let worker = store.worker();
    let new = operation(Start::Claimed(worker));
    let id = new.id;
    store.commit(&Commit::new().start(new));
    let done = |fence| {
        Commit::new()
            .advance(id, Next::Done(Outcome::Succeeded), None, None)
            .fenced(id, Fence(fence))
    };
    assert_eq!(store.plan(&done(1)).workers, BTreeSet::from([worker]));
    assert_eq!(store.stale(&done(2)), StaleItem::Expect(0));
    store.dead.insert(worker);
    assert_eq!(store.stale(&done(1)), StaleItem::Expect(0));
    let stranger = Commit::new().start(operation(Start::Claimed(WorkerId::fresh())));
    assert_eq!(store.stale(&stranger), StaleItem::Write(0));
}

#[test]
fn an_ended_unpinned_operation_is_fetched_before_it_is_written() {
    let mut store = MiniStore::new();
    let new = operation(Start::Waiting);
    let id = new.id;
    store.commit(&Commit::new().start(new));
    let done = Next::Done(Outcome::Failed);
    let end = Commit::new().advance(id, done, None, None);
    store.commit(&end.write(Write::Unpin(id)));
    let again = Commit::new().write(Write::Unpin(id));
    assert!(matches!(store.decide(&again), CommitDecision::Fetch(ids) if ids == [id]));
    let cancel = Commit::new().write(Write::Cancel(id));
    assert_eq!(store.plan(&cancel).steps.len(), 2, "nothing but the record");
    let late = Commit::new().advance(id, Next::Same, None, None);
    assert_eq!(store.stale(&late), StaleItem::Write(0));
}

#[test]
fn a_view_lists_by_present_terms_in_order() {
    let mut store = MiniStore::new();
    for (id, value) in [("b", "2"), ("a", "2"), ("c", "1"), ("a", "3")] {
        let version = Version(CommitId(Uuid::nil()));
        let value = rows::document(version, &[Term::new("rank", value)], b"");
        store.put(store.keys.document(&key(id)), value);
    }
    let realm = Realm::new("r").expect("a realm");
    let list = List::Term {
        realm,
        kind: Kind::new("k"),
        name: "rank",
        from: b"1".to_vec(),
        to: b"3".to_vec(),
    };
    let found = store.view.list(&list, None, 10);
    let found: Vec<&[u8]> = found.iter().map(|(_, key)| &key[..]).collect();
    let expected = ["c", "b", "a"].map(key);
    assert_eq!(found, expected.each_ref().map(Key::as_bytes));
    let all = List::Prefix(Vec::new());
    let after = Position {
        value: Vec::new(),
        key: key("a"),
    };
    let found = store.view.list(&all, Some(&after), 1);
    assert_eq!(found.len(), 2, "one more tells that something follows");
    assert_eq!(&found[0].1[..], key("b").as_bytes());
}
