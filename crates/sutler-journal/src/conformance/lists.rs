//! Lists of documents and operations: order, ranges, pages.

use super::Candidate;
use super::fixture::{
    Fixture, THING, bytes, finish, ids, insert, insert_with, key, new_operation, only, realm,
    things,
};
use crate::commit::{Commit, Start, Write};
use crate::document::{IndexedDocument, Term};
use crate::key::{Key, Kind, Realm};
use crate::operation::{OperationId, Outcome};
use crate::query::{List, OperationFilter, OperationList, Position};

fn range(name: &'static str, from: &[u8], to: &[u8]) -> List {
    List::Term {
        realm: realm(),
        kind: THING,
        name,
        from: from.to_vec(),
        to: to.to_vec(),
    }
}

/// By prefix: in byte order of the keys, regardless of the order of writes.
pub async fn a_list_by_prefix_is_in_order_of_keys(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for id in ["m", "b", "z", "a", "Z", "y"] {
        fixture.commit(insert(id, id)).await;
    }
    let list = List::Prefix(things());
    for limit in 1..8 {
        let found = fixture.list_all(&list, limit).await;
        assert_eq!(ids(&found), ["Z", "a", "b", "m", "y", "z"]);
    }
}

/// By term: by value, then by key; documents are complete.
pub async fn a_list_by_term_is_in_order_of_values_then_keys(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for (id, value) in [("d", "2"), ("a", "3"), ("c", "1"), ("b", "2"), ("e", "10")] {
        fixture.commit(insert_with(id, "rank", value)).await;
    }
    fixture.commit(insert_with("x", "other", "2")).await;
    fixture.commit(insert_with("y", "ranks", "2")).await;
    let list = range("rank", b"", b"\xff");
    for limit in 1..7 {
        let found = fixture.list_all(&list, limit).await;
        assert_eq!(ids(&found), ["c", "e", "b", "d", "a"]);
        for document in found {
            let id = document.key.id(0).to_owned();
            assert_eq!(Some(document), fixture.get(&id).await);
        }
    }
}

/// A range includes both ends; a reversed one is empty.
pub async fn a_range_includes_both_its_ends(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for id in ["1", "2", "20", "3", "4"] {
        fixture.commit(insert_with(id, "rank", id)).await;
    }
    let cases: [(&[u8], &[u8], &[&str]); 5] = [
        (b"2", b"3", &["2", "20", "3"]),
        (b"2", b"2", &["2"]),
        (b"20", b"39", &["20", "3"]),
        (b"5", b"9", &[]),
        (b"3", b"2", &[]),
    ];
    for (from, to, expected) in cases {
        let found = fixture.list_all(&range("rank", from, to), 2).await;
        assert_eq!(ids(&found), expected, "{from:?}..={to:?}");
    }
}

/// A next position is returned only if something follows.
pub async fn the_last_page_has_no_next_position(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for id in ["a", "b", "c", "d"] {
        fixture.commit(insert_with(id, "rank", "1")).await;
    }
    for list in [List::Prefix(things()), range("rank", b"1", b"1")] {
        let value = match &list {
            List::Prefix(_) => Vec::new(),
            List::Term { from, .. } => from.clone(),
        };
        let first = fixture.page(&list, None, 2).await;
        assert_eq!(ids(&first.documents), ["a", "b"]);
        let next = Position {
            value,
            key: key("b"),
        };
        assert_eq!(first.next, Some(next));
        let second = fixture.page(&list, first.next.as_ref(), 2).await;
        assert_eq!(ids(&second.documents), ["c", "d"]);
        assert_eq!(second.next, None, "four documents are two pages of two");
        assert_eq!(fixture.page(&list, None, 4).await.next, None);
    }
}

/// A document is found by its present terms only.
pub async fn a_document_is_found_by_its_present_terms(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let terms = |plan: &str, state: &str| vec![Term::new("plan", plan), Term::new("state", state)];
    let commit = Commit::new().insert(key("a"), terms("small", "new"), bytes("1"));
    fixture.commit(commit).await;
    let read = fixture.version("a").await;
    let commit = Commit::new().replace(key("a"), read, terms("large", "new"), bytes("2"));
    fixture.commit(commit).await;
    let found = async |name, value: &str| {
        let list = List::term(&realm(), THING, name, value.as_bytes());
        fixture.list_all(&list, 10).await.len()
    };
    assert_eq!(found("plan", "small").await, 0, "its former term");
    assert_eq!(found("plan", "large").await, 1);
    assert_eq!(found("state", "new").await, 1);
    assert_eq!(found("state", "large").await, 0, "another term's value");
    fixture.commit(only(Write::Remove(key("a")))).await;
    assert_eq!(found("plan", "large").await, 0, "it is gone");
    assert_eq!(found("state", "new").await, 0, "it is gone");
}

/// A page continues after the last position, even if that document was removed or has moved.
pub async fn paging_continues_after_a_removed_position(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for id in ["a", "b", "c", "d"] {
        fixture.commit(insert_with(id, "rank", id)).await;
    }
    for list in [List::Prefix(things()), range("rank", b"a", b"d")] {
        let first = fixture.page(&list, None, 2).await;
        let read = fixture.version("b").await;
        fixture.commit(Commit::new().remove(key("b"), read)).await;
        let second = fixture.page(&list, first.next.as_ref(), 2).await;
        assert_eq!(ids(&second.documents), ["c", "d"]);
        fixture.commit(insert_with("b", "rank", "b")).await;
    }
}

/// Operations are listed newest first, before an id, with any filter.
pub async fn operations_are_listed_newest_first(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut started: Vec<(OperationId, &str)> = Vec::new();
    for n in 0..12 {
        let lane = ["a", "b", "A"][n % 3];
        let new = new_operation(lane, Start::Waiting);
        started.push((new.id, lane));
        fixture.commit(Commit::new().start(new)).await;
    }
    for (id, _) in started.iter().step_by(2) {
        fixture.commit(finish(*id, Outcome::Failed)).await;
    }
    started.reverse();
    let lane = |wanted: &str| -> Vec<OperationId> {
        let of_lane = started.iter().filter(|(_, lane)| *lane == wanted);
        of_lane.map(|(id, _)| *id).collect()
    };
    let unfinished = started.iter().step_by(2).map(|(id, _)| *id).collect();
    let all = started.iter().map(|(id, _)| *id).collect();
    for (filter, expected) in [
        (OperationFilter::All, all),
        (OperationFilter::Unfinished, unfinished),
        (OperationFilter::Lane(key("a")), lane("a")),
        (OperationFilter::Lane(key("A")), lane("A")),
        (OperationFilter::Lane(key("none")), Vec::new()),
    ] {
        let expected: Vec<OperationId> = expected;
        for limit in [1, 3, 100] {
            let found = page_through(&fixture, &filter, limit).await;
            assert_eq!(found, expected, "{filter:?} by {limit}");
        }
    }
}

async fn page_through(
    fixture: &Fixture,
    filter: &OperationFilter,
    limit: usize,
) -> Vec<OperationId> {
    let mut found: Vec<OperationId> = Vec::new();
    loop {
        let list = OperationList {
            filter: filter.clone(),
            before: found.last().copied(),
            limit,
        };
        let rows = fixture.store.operations(&list).await.expect("a list");
        assert!(rows.len() <= limit, "a page over its limit");
        if rows.is_empty() {
            return found;
        }
        for row in rows {
            assert_eq!(
                row,
                fixture.row(row.id).await,
                "the row as it is read alone"
            );
            assert!(found.last().is_none_or(|last| row.id < *last), "backwards");
            found.push(row.id);
        }
    }
}

/// A scan returns documents with their terms from any bytes on: completely, by key, across realms and
/// kinds, in their present state.
pub async fn scanned_documents_have_their_terms(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let terms = || vec![Term::new("plan", "small"), Term::new("age", vec![0, 255])];
    let elsewhere = Realm::new("zone").expect("a realm");
    let mut expected: Vec<(Key, Vec<Term>)> = Vec::new();
    for (key, terms) in [
        (key("a"), terms()),
        (key("b"), Vec::new()),
        (key("b/c"), [terms(), terms()].concat()),
        (
            Key::new(&elsewhere, Kind::new("other"), &["a", "b"]).expect("a key"),
            vec![Term::new("plan", "large")],
        ),
    ] {
        let commit = Commit::new().insert(key.clone(), terms.clone(), bytes("first"));
        fixture.commit(commit).await;
        expected.push((key, terms));
    }
    let read = fixture.version("a").await;
    let newer = vec![Term::new("plan", "large")];
    let commit = Commit::new().replace(key("a"), read, newer.clone(), bytes("second"));
    fixture.commit(commit).await;
    expected[0].1 = newer;
    expected.sort();
    for limit in 1..6 {
        let mut from = Vec::new();
        let mut found: Vec<IndexedDocument> = Vec::new();
        loop {
            let page = fixture
                .store
                .scan_documents(&from, limit)
                .await
                .expect("documents");
            assert!(page.len() <= limit, "a page over its limit");
            let Some(last) = page.last() else { break };
            from = [last.document.key.as_bytes(), &[0]].concat();
            found.extend(page);
        }
        assert_eq!(found.len(), expected.len());
        for (indexed, (key, terms)) in found.into_iter().zip(&expected) {
            let document = fixture.store.get(key).await.expect("a document");
            let document = document.expect("it is there");
            assert_eq!(indexed, IndexedDocument::new(document, terms.clone()));
        }
    }
    let from = fixture.store.scan_documents(key("b").as_bytes(), 1).await;
    assert_eq!(from.expect("one")[0].document.key, key("b"), "itself first");
}
