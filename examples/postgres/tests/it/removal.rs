//! Removal of objects in use: a deletion always ends, and leaves nothing.

use crate::broker_process::{Start, TIMEOUT};
use crate::fixture::Fixture;
use crate::sql::Session;
use serde_json::json;
use tokio::time::timeout;

#[tokio::test]
async fn a_database_is_removed_although_sessions_are_open_and_busy() {
    let Some(fixture) = Fixture::shared("busy") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    let mut idle = Session::with(&credentials).await;
    idle.run("CREATE TABLE t (n int); CREATE TEMP TABLE mine (n int)")
        .await
        .expect("it may");
    idle.run("BEGIN; LOCK TABLE t").await.expect("it may");
    let mut busy = Session::with(&credentials).await;
    // It may be terminated last, and have its lock by then: it stays busy.
    let busy_for_long = "SELECT * FROM t; SELECT pg_sleep(3600)";
    let waiting = tokio::spawn(async move { busy.run(busy_for_long).await });
    let deprovision = timeout(TIMEOUT, fixture.broker.deprovision("one")).await;
    assert_eq!(deprovision.expect("it ends"), (200, json!({})));
    let thrown_out = waiting.await.expect("it ends");
    assert!(thrown_out.is_err(), "{thrown_out:?}");
    assert!(idle.run("SELECT 1").await.is_err());
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn objects_of_a_login_in_other_databases_do_not_prevent_its_removal() {
    let Some(fixture) = Fixture::shared("strewn") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    let login = credentials["username"].as_str().expect("a name");
    let owner = credentials["database"].as_str().expect("a name");
    let mut operator = fixture.operator().await;
    // Before version 15, any role could create objects there.
    operator
        .run(&format!(
            "CREATE TABLE strewn_login (n int); ALTER TABLE strewn_login OWNER TO {login}; \
             CREATE TABLE strewn_owner (n int); ALTER TABLE strewn_owner OWNER TO {owner}; \
             GRANT SELECT ON pg_catalog.pg_authid TO {login}; \
             GRANT CONNECT ON DATABASE postgres TO {login}"
        ))
        .await
        .expect("it may");
    assert_eq!(fixture.broker.unbind("one", "app").await, (200, json!({})));
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
    let strewn = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'strewn%'";
    assert_eq!(operator.number(strewn).await, 0);
}

#[tokio::test]
async fn objects_that_are_already_gone_do_not_fail_a_removal() {
    let Some(fixture) = Fixture::shared("missing") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    let (login, database) = (&credentials["username"], &credentials["database"]);
    let (login, database) = (login.as_str(), database.as_str());
    let (login, database) = (login.expect("a name"), database.expect("a name"));
    let mut operator = fixture.operator().await;
    operator
        .run(&format!("DROP DATABASE {database}"))
        .await
        .expect("it may");
    operator
        .run(&format!("DROP ROLE {login}"))
        .await
        .expect("it may");
    assert_eq!(fixture.broker.unbind("one", "app").await, (200, json!({})));
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn another_prefix_later_orphans_nothing() {
    let Some(mut fixture) = Fixture::shared("before") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    fixture.broker.kill_and_wait();
    let start = Start::new(&fixture.server, "after", fixture.folder.path());
    fixture.broker = start.run();
    Session::with(&credentials).await;
    assert_eq!(fixture.left().await, (1, 2));
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}
