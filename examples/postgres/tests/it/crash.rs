//! The broker is killed while the server executes a statement, and continues after a restart.
//!
//! The moment is not random: the test holds a lock that the server needs, waits until the server is blocked by it,
//! and kills the broker then.

use crate::broker_process::{LOOK_EVERY, Start, TIMEOUT};
use crate::fixture::{self, Fixture};
use crate::sql::Session;
use std::time::Instant;

/// Waits until a statement of the broker is blocked on the server.
async fn until_it_is_stuck(operator: &mut Session, statement: &str) {
    let stuck = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sutler' \
         AND wait_event_type = 'Lock' AND query LIKE '{statement}%'"
    );
    let began = Instant::now();
    while operator.number(&stuck).await == 0 {
        assert!(began.elapsed() < TIMEOUT, "no {statement}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Fixture {
    fn kill_and_start_again(&mut self) {
        self.broker.kill_and_wait();
        let start = Start::new(&self.server, self.prefix, self.folder.path());
        self.broker = start.run();
    }
}

#[tokio::test]
async fn a_broker_killed_while_the_database_is_created_continues_during_the_unfinished_statement() {
    let Some(server) = fixture::own() else {
        return;
    };
    let mut fixture = Fixture::on(server, "killed");
    let mut operator = fixture.operator().await;
    operator
        .run("BEGIN; COMMENT ON DATABASE template0 IS 'held'")
        .await
        .expect("it may");
    assert_eq!(fixture.broker.start_provision("one").await.0, 202);
    let mut watch = fixture.operator().await;
    until_it_is_stuck(&mut watch, "CREATE DATABASE").await;
    // The role and its memo exist, the database does not.
    assert_eq!(fixture.left().await, (0, 1));
    fixture.kill_and_start_again();
    operator.run("ROLLBACK").await.expect("it may");
    let (_, ended) = fixture.broker.until_it_ends("one").await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(fixture.left().await, (1, 1));
    Session::with(&fixture.bind("one", "app").await).await;
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn a_broker_killed_while_a_login_is_made_hands_out_credentials_that_work() {
    let Some(server) = fixture::own() else {
        return;
    };
    let mut fixture = Fixture::on(server, "login");
    fixture.provision("one").await;
    let mut operator = fixture.operator().await;
    operator
        .run("BEGIN; LOCK TABLE pg_auth_members IN SHARE MODE")
        .await
        .expect("it may");
    let bind = fixture.broker.start_bind("one", "app").await;
    assert_eq!(bind.0, 202, "{}", bind.1);
    let mut watch = fixture.operator().await;
    until_it_is_stuck(&mut watch, "CREATE ROLE").await;
    fixture.kill_and_start_again();
    operator.run("ROLLBACK").await.expect("it may");
    let (_, ended) = fixture
        .broker
        .until_it_ends("one/service_bindings/app")
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let (status, fetched) = fixture.broker.fetch_binding("one", "app").await;
    assert_eq!(status, 200);
    Session::with(&fetched["credentials"]).await;
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn a_delete_during_a_creation_that_was_killed_leaves_nothing() {
    let Some(server) = fixture::own() else {
        return;
    };
    let mut fixture = Fixture::on(server, "undone");
    let mut operator = fixture.operator().await;
    operator
        .run("BEGIN; COMMENT ON DATABASE template0 IS 'held'")
        .await
        .expect("it may");
    assert_eq!(fixture.broker.start_provision("one").await.0, 202);
    let mut watch = fixture.operator().await;
    until_it_is_stuck(&mut watch, "CREATE DATABASE").await;
    assert_eq!(fixture.broker.start_deprovision("one").await.0, 202);
    fixture.kill_and_start_again();
    operator.run("ROLLBACK").await.expect("it may");
    let (_, ended) = fixture.broker.until_it_ends("one").await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(fixture.left().await, (0, 0));
}
