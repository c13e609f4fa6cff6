//! Lifecycle of a database: created, bound, used, rotated, unbound, removed.

use crate::fixture::Fixture;
use crate::sql::Session;
use serde_json::{Value, json};

/// Codes for a wrong password, and for a login that does not exist.
const WRONG_PASSWORD: &str = "28P01";

#[tokio::test]
async fn a_database_is_made_bound_used_and_removed_and_nothing_is_left() {
    let Some(fixture) = Fixture::shared("life") else {
        return;
    };
    assert_eq!(fixture.left().await, (0, 0));
    fixture.provision("one").await;
    assert_eq!(fixture.left().await, (1, 1));
    let credentials = fixture.bind("one", "app").await;
    let mut app = Session::with(&credentials).await;
    app.run("CREATE TABLE notes (text text)")
        .await
        .expect("it may");
    app.run("INSERT INTO notes VALUES ('kept')")
        .await
        .expect("it may");
    assert_eq!(app.text("SELECT text FROM notes").await, "kept");
    assert_eq!(fixture.broker.unbind("one", "app").await, (200, json!({})));
    assert_eq!(fixture.left().await, (1, 1));
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
    assert_eq!(fixture.broker.deprovision("one").await.0, 410);
}

#[tokio::test]
async fn credentials_have_equal_parts_and_uri() {
    let Some(fixture) = Fixture::shared("parts") else {
        return;
    };
    fixture.provision("one").await;
    let it = fixture.bind("one", "app").await;
    let part = |name: &str| it[name].as_str().expect("a text").to_owned();
    let uri = format!(
        "postgres://{}:{}@{}:{}/{}",
        part("username"),
        part("password"),
        part("host"),
        it["port"],
        part("database")
    );
    assert_eq!(it["uri"], json!(uri));
    let mut wrong = it.clone();
    wrong["uri"] = json!(uri.replace(&part("password"), "guess"));
    let database = part("database");
    let refused = Session::elsewhere(&wrong, &database).await.err();
    assert_eq!(refused.as_deref(), Some(WRONG_PASSWORD));
    fixture.deprovision("one").await;
}

#[tokio::test]
async fn a_repeated_bind_gives_the_same_credentials_and_they_still_work() {
    let Some(fixture) = Fixture::shared("again") else {
        return;
    };
    fixture.provision("one").await;
    let first = fixture.bind("one", "app").await;
    let (status, body) = fixture.broker.bind("one", "app").await;
    assert_eq!((status, &body["credentials"]), (200, &first));
    Session::with(&first).await;
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn a_rotated_binding_works_with_and_without_its_predecessor() {
    let Some(fixture) = Fixture::shared("rotate") else {
        return;
    };
    fixture.provision("one").await;
    let old = fixture.bind("one", "old").await;
    let mut before = Session::with(&old).await;
    before
        .run("CREATE TABLE notes (text text)")
        .await
        .expect("it may");
    let (status, body) = fixture.broker.rotate("one", "old", "new").await;
    assert_eq!(status, 201, "{body}");
    let new: Value = body["credentials"].clone();
    assert_ne!(old["username"], new["username"]);
    let mut after = Session::with(&new).await;
    before
        .run("INSERT INTO notes VALUES ('old')")
        .await
        .expect("the old one works");
    after
        .run("INSERT INTO notes VALUES ('new')")
        .await
        .expect("the new one works");
    assert_eq!(fixture.broker.unbind("one", "old").await, (200, json!({})));
    assert!(
        before.run("SELECT 1").await.is_err(),
        "the old session ended"
    );
    let url = old["uri"].as_str().expect("a URI");
    let refused = Session::open(url).await.err();
    assert_eq!(refused.as_deref(), Some(WRONG_PASSWORD));
    assert_eq!(after.number("SELECT count(*) FROM notes").await, 2);
    after
        .run("ALTER TABLE notes ADD COLUMN n int")
        .await
        .expect("it is its table too");
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn odd_ids_make_plain_names_and_different_ones() {
    let Some(fixture) = Fixture::shared("odd") else {
        return;
    };
    // Path segments with a quote, a statement, a slash, umlauts, capitals, and a long one.
    let long = "x".repeat(512);
    let ids = [
        "a%22b",
        "%27%3BDROP%20ROLE%20postgres%3B--",
        "a%2Fb",
        "%C3%A4",
        "A",
        "a",
        &long,
    ];
    let mut databases = Vec::new();
    for id in ids {
        fixture.provision(id).await;
        let credentials = fixture.bind(id, id).await;
        Session::with(&credentials).await;
        databases.push(credentials["database"].clone());
    }
    databases.sort_by_key(Value::to_string);
    databases.dedup();
    assert_eq!(databases.len(), ids.len());
    for id in ids {
        fixture.deprovision(id).await;
    }
    assert_eq!(fixture.left().await, (0, 0));
}
