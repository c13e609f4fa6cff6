//! Opening: several replicas concurrently, tables of a later version, unreachable URLs.

use super::cluster::{self, TestDatabase};
use super::conformance::Postgres;
use crate::fixture::{insert, key};
use secrecy::SecretString;
use sqlx::{Executor as _, Row as _};
use sutler_journal::{Commit, Cursor, Store as _, Write};
use sutler_store_sql::{PostgresStore, SqlOpenError};

#[tokio::test(flavor = "multi_thread")]
async fn several_replicas_may_create_the_tables_concurrently() {
    let Some(server) = cluster::shared() else {
        return;
    };
    let mut place = TestDatabase::on(server).await;
    let url = cluster::url(server, &place.schema, server.address().port());
    let opening = [(); 3].map(|()| {
        let url = url.clone();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    for (n, store) in opening.into_iter().enumerate() {
        let store = store.await.expect("no panic").expect("a store");
        let made = store.commit(&insert(&n.to_string())).await;
        made.expect("a commit");
    }
    let count = format!("SELECT count(*) FROM {}.sutler_layout", place.schema);
    let row = place.db.fetch_one(sqlx::AssertSqlSafe(count)).await;
    assert_eq!(
        row.expect("a count").get::<i64, _>(0),
        3,
        "each layout once"
    );
}

/// As in a database of the first layout, whose functions are not corrected yet: here nothing can be removed, and
/// the feed is empty.
const FIRST_LAYOUT: &str = "
    DELETE FROM sutler_layout WHERE number > 1;
    DROP FUNCTION sutler_change_terms_v1;
    CREATE OR REPLACE FUNCTION sutler_horizon_v1() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'";

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_layout_gets_the_corrected_functions() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    let older = candidate.current();
    older.commit(&insert("a")).await.expect("a commit");
    let mut place = candidate.place.lock().await;
    let made = place.db.execute(sqlx::raw_sql(FIRST_LAYOUT)).await;
    made.expect("the first layout");
    let newer = super::conformance::open(&candidate.url).await;
    let layout = newer.info().await.expect("facts").layout;
    assert_eq!((layout.found, layout.now), (1, 3));
    let removed = Commit::new().write(Write::Remove(key("a")));
    newer.commit(&removed).await.expect("a commit");
    for store in [older, newer] {
        let read = store.changes(&Cursor::default(), 10).await;
        assert_eq!(read.expect("changes").changes.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_later_version_are_refused_with_a_sentence() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    let mut place = candidate.place.lock().await;
    let later = "INSERT INTO sutler_layout (number) VALUES (99)";
    place.db.execute(later).await.expect("a row");
    let refused = PostgresStore::open(&candidate.url).await;
    let error = refused.expect_err("a later version's");
    assert!(
        matches!(error, SqlOpenError::Newer { found: 99, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("use the newer program"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_permission_to_create_tables_gets_a_remedy() {
    let Some(server) = cluster::shared() else {
        return;
    };
    let url = cluster::url(server, "no_such_schema", server.address().port());
    let error = PostgresStore::open(&url).await.expect_err("no schema");
    assert!(matches!(error, SqlOpenError::Layout { .. }), "{error:?}");
    assert!(
        error.to_string().contains("right to create tables"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let port = sutler_servers::free_port();
    let url = format!("postgres://user:canary-of-a-password@127.0.0.1:{port}/db");
    let refused = PostgresStore::open(&SecretString::from(url)).await;
    let error = refused.expect_err("nobody there");
    let message = format!("{error} {error:?}");
    assert!(message.contains(&port.to_string()), "{message}");
    assert!(!message.contains("canary"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hot_statement_walks_an_index_and_sorts_nothing() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    for plan in sutler_store_sql::faults::plans(&candidate.url).await {
        assert!(plan.contains("Index"), "{plan}");
        for dear in ["Seq Scan", "Sort", "Hash", "Materialize", "Bitmap"] {
            assert!(!plan.contains(dear), "{plan}");
        }
    }
}
