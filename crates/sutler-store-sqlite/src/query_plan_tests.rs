//! Query plans of each read, as SQLite reports them.
//!
//! A page must cost its own length among a hundred documents as among twenty thousand: no scan, no
//! sort, and a bounded number of steps of the database's machine.

use crate::documents::{self, View};
use crate::interned_strings::{self, Interner};
use crate::schema;
use crate::sql;
use crate::unindexed_documents::UnindexedDocuments;
use rusqlite::{Connection, StatementStatus};
use std::path::PathBuf;
use sutler_journal::{Key, Kind, List, Position, Realm};
use tempfile::TempDir;

const KIND: Kind = Kind::new("thing");

fn store_with(documents: usize) -> (TempDir, PathBuf, Connection) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (mut db, _) = schema::open_writer(&path, 4096).expect("a file");
    let word = interned_strings::scope("r", "thing", "plan");
    let change = db.transaction().expect("a transaction");
    change.execute(sql::WORD_ADD, [word]).expect("a word");
    for n in 1..=documents as i64 {
        let key = key(n as usize);
        let id = format!("{n:08}");
        let row = (n, [7u8; 16], key.as_bytes(), [0u8; 0], [7u8; 600]);
        change.execute(sql::DOC_ADD, row).expect("a document");
        change
            .execute(sql::DOC_FILE, (key.as_bytes(), n))
            .expect("a key");
        let term = (1, &b"small"[..], id.as_bytes(), n);
        change.execute(sql::TERM_ADD, term).expect("a term");
    }
    change
        .execute("UPDATE tally SET filed = ?1", [documents as i64])
        .expect("a number");
    change.commit().expect("a commit");
    (directory, path, db)
}

fn key(n: usize) -> Key {
    let realm = Realm::new("r").expect("a realm");
    Key::new(&realm, KIND, &[&format!("{n:08}")]).expect("a key")
}

/// Machine steps, scans and sorts of a statement since the last call.
fn cost(db: &Connection, text: &str) -> (i32, i32, i32) {
    let statement = db.prepare_cached(text).expect("a statement");
    (
        statement.reset_status(StatementStatus::VmStep),
        statement.reset_status(StatementStatus::FullscanStep),
        statement.reset_status(StatementStatus::Sort),
    )
}

/// Machine steps of one page in the middle, in the index and for the documents.
fn steps_of_a_page(documents: usize, by_term: bool, limit: usize) -> i32 {
    let (_directory, path, _writer) = store_with(documents);
    let db = schema::open_reader(&path, 512).expect("a reader");
    let (words, unindexed) = (Interner::default(), UnindexedDocuments::default());
    let view = View {
        db: &db,
        words: &words,
        unindexed: &unindexed,
    };
    let realm = Realm::new("r").expect("a realm");
    let (list, index) = match by_term {
        true => (
            List::term(&realm, KIND, "plan", b"small"),
            sql::LIST_BY_TERM_AFTER,
        ),
        false => (
            List::Prefix(Key::prefix(&realm, KIND, &[]).expect("a prefix")),
            sql::LIST_BY_KEY_AFTER,
        ),
    };
    let after = Position {
        value: if by_term {
            b"small".to_vec()
        } else {
            Vec::new()
        },
        key: key(documents / 2),
    };
    let page = documents::list(&view, &list, Some(&after), limit);
    let page = page.expect("a page").expect("of one moment");
    assert_eq!(page.documents.len(), limit);
    assert_eq!(page.documents[0].key, key(documents / 2 + 1));
    let mut steps = 0;
    for text in [index, sql::LISTED] {
        let (machine, scanned, sorted) = cost(&db, text);
        assert_eq!((scanned, sorted), (0, 0), "{text}");
        steps += machine;
    }
    steps
}

#[test]
fn a_page_costs_its_own_length_among_few_and_among_many() {
    for by_term in [false, true] {
        let among_few = steps_of_a_page(100, by_term, 20);
        let among_many = steps_of_a_page(20_000, by_term, 20);
        assert_eq!(among_few, among_many, "by term: {by_term}");
        assert!(among_many < 25 * 21, "{among_many} steps for 20 documents");
    }
}

fn plan(text: &str) -> String {
    let (_directory, _path, db) = store_with(1);
    let mut statement = db
        .prepare(&format!("EXPLAIN QUERY PLAN {text}"))
        .expect("a plan");
    let lines = statement
        .raw_query()
        .mapped(|row| row.get::<_, String>(3))
        .collect::<Result<Vec<String>, _>>();
    lines.expect("a plan").join("; ")
}

#[test]
fn every_hot_statement_searches_an_index_and_sorts_nothing() {
    for text in [
        sql::DOC_GET,
        sql::DOC_GET_YOUNG,
        sql::OP_POLL,
        sql::OP_LANE,
        sql::OP_WHOLE,
        sql::LIST_BY_KEY_FROM,
        sql::LIST_BY_KEY_AFTER,
        sql::LIST_BY_TERM_FROM,
        sql::LIST_BY_TERM_AFTER,
        sql::LISTED_FILED,
        sql::OPS_ALL,
        sql::OPS_OF_LANE,
        sql::FEED_AFTER,
        sql::LOG_READ,
        sql::OP_READY,
        sql::OP_VOID,
        sql::SWEEPABLE,
        sql::DOC_FIND,
        sql::OP_FIND,
        sql::FEED_KNOWS,
        sql::LANE_IS_USED,
    ] {
        let plan = plan(text);
        assert!(plan.starts_with("SEARCH"), "{text}: {plan}");
        assert!(!plan.contains("SCAN"), "{text}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{text}: {plan}");
    }
}

#[test]
fn a_poll_reads_no_overflow_page() {
    // The columns of a poll, and those before them, must fit in the part of a row that stays on a leaf.
    let columns = plan_columns("op");
    let place = |name: &str| columns.iter().position(|column| column == name);
    for small in ["state", "verb", "lane_key", "detail"] {
        for large in ["request", "progress"] {
            assert!(place(small) < place(large), "{small} stands before {large}");
        }
    }
}

fn plan_columns(table: &str) -> Vec<String> {
    let (_directory, _path, db) = store_with(1);
    let mut statement = db
        .prepare(&format!("PRAGMA table_info({table})"))
        .expect("a table");
    let columns = statement
        .query_map([], |row| row.get::<_, String>(1))
        .expect("columns")
        .collect::<Result<Vec<String>, _>>();
    columns.expect("columns")
}
