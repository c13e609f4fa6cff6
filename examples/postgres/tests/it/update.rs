//! Updates of a database in use: plan, limits, extensions; all or nothing.

use crate::broker_process::LARGE;
use crate::fixture::Fixture;
use crate::sql::Session;
use serde_json::json;

#[tokio::test]
async fn a_larger_plan_gives_more_connections_and_longer_statements() {
    let Some(fixture) = Fixture::shared("grow") else {
        return;
    };
    fixture.provision("one").await;
    let credentials = fixture.bind("one", "app").await;
    let mut app = Session::with(&credentials).await;
    assert_eq!(app.text("SHOW statement_timeout").await, "10s");
    let answer = fixture
        .broker
        .update("one", json!({ "plan_id": LARGE }))
        .await;
    assert_eq!(answer, (200, json!({})));
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(Session::with(&credentials).await);
    }
    assert_eq!(sessions[0].text("SHOW statement_timeout").await, "10min");
    let narrower = json!({ "parameters": { "connection_limit": 3 } });
    assert_eq!(fixture.broker.update("one", narrower).await.0, 200);
    let limit = "SELECT datconnlimit::bigint FROM pg_database WHERE datname = current_database()";
    assert_eq!(app.number(limit).await, 3);
    fixture.deprovision("one").await;
}

#[tokio::test]
async fn more_connections_than_the_plan_has_are_refused_and_change_nothing() {
    let Some(fixture) = Fixture::shared("greedy") else {
        return;
    };
    let greedy = json!({ "connection_limit": 6 });
    let (status, body) = fixture.broker.provision("one", greedy.clone()).await;
    assert_eq!(status, 400);
    let description = body["description"].as_str().expect("a sentence");
    assert!(
        description.contains("The plan allows 5 connections"),
        "{description}"
    );
    assert_eq!(fixture.left().await, (0, 0));
    fixture.provision("one").await;
    let (status, _) = fixture
        .broker
        .update("one", json!({ "parameters": greedy }))
        .await;
    assert_eq!(status, 400);
    // The larger plan allows them.
    let both = json!({ "plan_id": LARGE, "parameters": { "connection_limit": 6 } });
    assert_eq!(fixture.broker.update("one", both).await, (200, json!({})));
    fixture.deprovision("one").await;
}

#[tokio::test]
async fn extensions_come_and_go_with_the_parameters() {
    let Some(fixture) = Fixture::shared("extend") else {
        return;
    };
    let citext = json!({ "extensions": ["citext"] });
    assert_eq!(fixture.broker.provision("one", citext).await.0, 201);
    let mut app = Session::with(&fixture.bind("one", "app").await).await;
    let there = "SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension";
    assert_eq!(app.text(there).await, "citext plpgsql");
    let others = json!({ "parameters": { "extensions": ["hstore", "pg_trgm"] } });
    assert_eq!(fixture.broker.update("one", others).await, (200, json!({})));
    assert_eq!(app.text(there).await, "hstore pg_trgm plpgsql");
    let unknown = json!({ "parameters": { "extensions": ["plpython3u"] } });
    assert_eq!(fixture.broker.update("one", unknown).await.0, 400);
    fixture.deprovision("one").await;
}

#[tokio::test]
async fn an_extension_in_use_is_not_removed_and_nothing_else_changes_either() {
    let Some(fixture) = Fixture::shared("needed") else {
        return;
    };
    let citext = json!({ "extensions": ["citext"] });
    assert_eq!(fixture.broker.provision("one", citext).await.0, 201);
    let mut app = Session::with(&fixture.bind("one", "app").await).await;
    app.run("CREATE TABLE people (name citext)")
        .await
        .expect("it may");
    let change = json!({ "plan_id": LARGE, "parameters": { "extensions": ["hstore"] } });
    let (status, body) = fixture.broker.update("one", change.clone()).await;
    assert_eq!(status, 422, "{body}");
    let description = body["description"].as_str().expect("a sentence");
    assert!(description.contains("drop that first"), "{description}");
    let limit = "SELECT datconnlimit::bigint FROM pg_database WHERE datname = current_database()";
    assert_eq!(app.number(limit).await, 5);
    assert_eq!(app.number("SELECT count(*) FROM pg_extension").await, 2);
    app.run("DROP TABLE people").await.expect("it may");
    assert_eq!(fixture.broker.update("one", change).await, (200, json!({})));
    assert_eq!(app.number(limit).await, 50);
    fixture.deprovision("one").await;
}
