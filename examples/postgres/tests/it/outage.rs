//! The server is down: operations wait for it, fail visibly if it does not return, and never lose started work.

use crate::broker_process::{LOOK_EVERY, PATIENCE, Start};
use crate::fixture::{self, Fixture};
use crate::sql::Session;
use serde_json::json;
use std::time::Instant;

const NO_ANSWER: &str = "does not answer";

async fn until_it_was_tried(estate: &Fixture) {
    let began = Instant::now();
    while !estate.broker.log().contains(NO_ANSWER) {
        assert!(began.elapsed() < PATIENCE, "it was not tried");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test]
async fn operations_wait_for_a_server_that_comes_back() {
    let Some(server) = fixture::own() else {
        return;
    };
    let estate = Fixture::on(server, "wait");
    estate.server.kill();
    assert_eq!(estate.broker.start_provision("one").await.0, 202);
    until_it_was_tried(&estate).await;
    estate.server.start();
    let (_, ended) = estate.broker.until_it_ends("one").await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    Session::with(&estate.bind("one", "app").await).await;
    estate.deprovision("one").await;
    assert_eq!(estate.left().await, (0, 0));
}

#[tokio::test]
async fn a_server_that_stays_away_fails_the_operation_with_a_sentence_and_a_way_on() {
    let Some(server) = fixture::own() else {
        return;
    };
    let mut estate = Fixture::on(server, "away");
    let mut start = Start::new(&estate.server, "away", estate.folder.path());
    start.attempts = 2;
    estate.broker.kill_and_wait();
    estate.broker = start.run();
    estate.provision("there").await;
    estate.server.kill();
    // One instance to create, and one to remove.
    let (status, body) = estate.broker.provision("one", json!({})).await;
    assert_eq!(status, 500);
    let said = body["description"].as_str().expect("a sentence");
    assert!(said.contains(NO_ANSWER), "{said}");
    let (status, body) = estate.broker.deprovision("there").await;
    assert_eq!(status, 500);
    let said = body["description"].as_str().expect("a sentence");
    assert!(said.contains(NO_ANSWER), "{said}");
    estate.server.start();
    // The remedy: delete the failed instance, or request it again.
    estate.deprovision("there").await;
    assert_eq!(estate.broker.provision("one", json!({})).await.0, 201);
    estate.deprovision("one").await;
    assert_eq!(estate.left().await, (0, 0));
}
