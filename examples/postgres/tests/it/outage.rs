//! The server is down: operations wait for it, fail visibly if it does not return, and never lose started work.

use crate::broker_process::{LOOK_EVERY, Start, TIMEOUT};
use crate::fixture::{self, Fixture};
use crate::sql::Session;
use serde_json::json;
use std::time::Instant;

const NO_ANSWER: &str = "does not answer";

async fn until_it_was_tried(fixture: &Fixture) {
    let began = Instant::now();
    while !fixture.broker.log().contains(NO_ANSWER) {
        assert!(began.elapsed() < TIMEOUT, "it was not tried");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test]
async fn operations_wait_for_a_server_that_comes_back() {
    let Some(server) = fixture::own() else {
        return;
    };
    let fixture = Fixture::on(server, "wait");
    fixture.server.kill();
    assert_eq!(fixture.broker.start_provision("one").await.0, 202);
    until_it_was_tried(&fixture).await;
    fixture.server.start();
    let (_, ended) = fixture.broker.until_it_ends("one").await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    Session::with(&fixture.bind("one", "app").await).await;
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn a_server_that_stays_away_fails_the_operation_with_a_sentence_and_a_way_on() {
    let Some(server) = fixture::own() else {
        return;
    };
    let mut fixture = Fixture::on(server, "away");
    let mut start = Start::new(&fixture.server, "away", fixture.folder.path());
    start.attempts = 2;
    fixture.broker.kill_and_wait();
    fixture.broker = start.run();
    fixture.provision("there").await;
    fixture.server.kill();
    // One instance to create, and one to remove.
    let (status, body) = fixture.broker.provision("one", json!({})).await;
    assert_eq!(status, 500);
    let description = body["description"].as_str().expect("a sentence");
    assert!(description.contains(NO_ANSWER), "{description}");
    let (status, body) = fixture.broker.deprovision("there").await;
    assert_eq!(status, 500);
    let description = body["description"].as_str().expect("a sentence");
    assert!(description.contains(NO_ANSWER), "{description}");
    fixture.server.start();
    // The remedy: delete the failed instance, or request it again.
    fixture.deprovision("there").await;
    assert_eq!(fixture.broker.provision("one", json!({})).await.0, 201);
    fixture.deprovision("one").await;
    assert_eq!(fixture.left().await, (0, 0));
}
