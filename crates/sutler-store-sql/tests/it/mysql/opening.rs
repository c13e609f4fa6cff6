//! Opening: several replicas concurrently, tables of a later version, unreachable URLs.

use super::cluster::{self, TestDatabase};
use super::conformance::MySql;
use crate::fixture::insert;
use secrecy::SecretString;
use sqlx::{Executor as _, Row as _};
use sutler_journal::Store as _;
use sutler_store_sql::{MySqlStore, SqlOpenError};

#[tokio::test(flavor = "multi_thread")]
async fn several_replicas_may_create_the_tables_concurrently() {
    let Some(server) = cluster::shared() else {
        return;
    };
    let mut place = TestDatabase::on(server).await;
    let url = cluster::url(server, &place.name, server.address().port());
    let opening = [(); 3].map(|()| {
        let url = url.clone();
        tokio::spawn(async move { MySqlStore::open(&url).await })
    });
    for (n, store) in opening.into_iter().enumerate() {
        let store = store.await.expect("no panic").expect("a store");
        let made = store.commit(&insert(&n.to_string())).await;
        made.expect("a commit");
    }
    let count = format!("SELECT count(*) FROM {}.sutler_layout", place.name);
    let row = place.db.fetch_one(sqlx::AssertSqlSafe(count)).await;
    assert_eq!(
        row.expect("a count").get::<i64, _>(0),
        3,
        "each layout once"
    );
}

/// As in a database of the first layout, without the procedures of later ones.
const FIRST_LAYOUT: &str = "
    DELETE FROM sutler_layout WHERE number > 1;
    DROP PROCEDURE sutler_commit_v3";

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_layout_gets_the_procedures_of_later_ones() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    let mut place = candidate.place.lock().await;
    let made = place.db.execute(sqlx::raw_sql(FIRST_LAYOUT)).await;
    made.expect("the first layout");
    let store = super::conformance::open(&candidate.url).await;
    let layout = store.info().await.expect("facts").layout;
    assert_eq!((layout.found, layout.now), (1, 3));
    store.commit(&insert("a")).await.expect("a commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_later_version_are_refused_with_a_sentence() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    let mut place = candidate.place.lock().await;
    let later = "INSERT INTO sutler_layout (number) VALUES (99)";
    place.db.execute(later).await.expect("a row");
    let refused = MySqlStore::open(&candidate.url).await;
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

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let port = sutler_servers::free_port();
    let url = format!("mysql://user:canary-of-a-password@127.0.0.1:{port}/db");
    let refused = MySqlStore::open(&SecretString::from(url)).await;
    let error = refused.expect_err("nobody there");
    let message = format!("{error} {error:?}");
    assert!(message.contains(&port.to_string()), "{message}");
    assert!(!message.contains("canary"), "{message}");
}
