//! Permissions: a binding may do everything in its own database, and nothing elsewhere.

use crate::broker_process::Start;
use crate::fixture::{self, Fixture};
use crate::sql::Session;

/// Code for insufficient privileges.
const FORBIDDEN: &str = "42501";

#[tokio::test]
async fn a_binding_cannot_touch_another_instance() {
    let Some(fixture) = Fixture::shared("apart") else {
        return;
    };
    fixture.provision("mine").await;
    fixture.provision("theirs").await;
    let mine = fixture.bind("mine", "app").await;
    let theirs = fixture.bind("theirs", "app").await;
    let database = theirs["database"].as_str().expect("a name");
    let refused = Session::elsewhere(&mine, database).await.err();
    assert_eq!(refused.as_deref(), Some(FORBIDDEN));
    let mut app = Session::with(&mine).await;
    let login = theirs["username"].as_str().expect("a name");
    for attempt in [
        format!("SET ROLE {database}"),
        format!("SET ROLE {login}"),
        format!("GRANT {database} TO CURRENT_USER"),
        format!("ALTER ROLE {login} PASSWORD 'mine'"),
        format!("DROP ROLE {login}"),
        "CREATE ROLE another".to_owned(),
        "CREATE DATABASE another".to_owned(),
        "SELECT * FROM pg_authid".to_owned(),
    ] {
        let refused = app.run(&attempt).await.err();
        assert_eq!(refused.as_deref(), Some(FORBIDDEN), "{attempt}");
    }
    // Not its owner: the server has another code for that.
    assert!(app.run(&format!("DROP DATABASE {database}")).await.is_err());
    fixture.deprovision("mine").await;
    fixture.deprovision("theirs").await;
}

#[tokio::test]
async fn a_binding_cannot_lift_the_limits_of_its_plan() {
    let Some(fixture) = Fixture::shared("limits") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    let database = credentials["database"].as_str().expect("a name");
    let mut app = Session::with(&credentials).await;
    for attempt in [
        format!("ALTER DATABASE {database} CONNECTION LIMIT -1"),
        format!("ALTER DATABASE {database} SET statement_timeout TO 0"),
        format!("ALTER DATABASE {database} RENAME TO hidden"),
        format!("SET ROLE NONE; ALTER DATABASE {database} CONNECTION LIMIT -1"),
    ] {
        let refused = app.run(&attempt).await.err();
        assert_eq!(refused.as_deref(), Some(FORBIDDEN), "{attempt}");
    }
    let mut others = Vec::new();
    let url = credentials["uri"].as_str().expect("a URI");
    let refused = loop {
        match Session::open(url).await {
            Ok(session) => others.push(session),
            Err(refused) => break refused,
        }
    };
    // Code for too many connections.
    assert_eq!((others.len(), refused.as_str()), (4, "53300"));
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn objects_of_one_binding_can_be_used_and_changed_by_the_others() {
    let Some(fixture) = Fixture::shared("together") else {
        return;
    };
    fixture.provision("one").await;
    let mut first = Session::with(&fixture.bind("one", "first").await).await;
    let mut second = Session::with(&fixture.bind("one", "second").await).await;
    first
        .run("CREATE SCHEMA s; CREATE TABLE s.t (n int)")
        .await
        .expect("it may");
    second
        .run("ALTER TABLE s.t ADD COLUMN m int")
        .await
        .expect("it may");
    // Objects that a session created under its own name also survive its binding.
    first
        .run("SET ROLE NONE; CREATE TABLE public.own (n int)")
        .await
        .expect("it may");
    assert_eq!(fixture.broker.unbind("one", "first").await.0, 200);
    second
        .run("DROP TABLE s.t; DROP TABLE public.own")
        .await
        .expect("it may");
    fixture.deprovision("one").await;
}

#[tokio::test]
async fn the_broker_needs_no_superuser() {
    let Some(server) = fixture::shared() else {
        return;
    };
    let mut operator = Session::open(&server.admin_url().url())
        .await
        .expect("the operator");
    let role = "CREATE ROLE plain_admin LOGIN CREATEDB CREATEROLE PASSWORD 'modest'";
    operator.run(role).await.expect("it may");
    let mut fixture = Fixture::on(server, "modest");
    let url = fixture.server.admin_url().url();
    let (_, place) = url.rsplit_once('@').expect("a login and a place");
    let mut start = Start::new(&fixture.server, "modest", fixture.folder.path());
    start.url = format!("postgres://plain_admin:modest@{place}");
    fixture.broker.kill_and_wait();
    fixture.broker = start.run();
    let parameters = serde_json::json!({ "extensions": ["pgcrypto"] });
    let (status, body) = fixture.broker.provision("one", parameters).await;
    assert_eq!(status, 201, "{body}");
    let mut first = Session::with(&fixture.bind("one", "first").await).await;
    first
        .run("SET ROLE NONE; CREATE TABLE public.own (n int)")
        .await
        .expect("it may");
    let mut second = Session::with(&fixture.bind("one", "second").await).await;
    second
        .run("SELECT gen_random_bytes(1)")
        .await
        .expect("the extension is there");
    let (status, body) = fixture.broker.unbind("one", "first").await;
    assert_eq!(status, 200, "{body}");
    second.run("DROP TABLE own").await.expect("it inherited it");
    let (status, body) = fixture.broker.deprovision("one").await;
    assert_eq!(status, 200, "{body}");
    operator
        .run("DROP ROLE plain_admin")
        .await
        .expect("it owns nothing");
    assert_eq!(fixture.left().await, (0, 0));
}
