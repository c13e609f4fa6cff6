//! Ids that brokers know: no two resources of the platform have the same one, whichever namespace they are in.

use super::{TestApi, TestReply, basic, instance};
use serde_json::{Value, json};

const OWN: &str = "/namespaces/app/instances";
const OTHER: &str = "/namespaces/other/instances";

async fn api() -> TestApi {
    let api = TestApi::with_broker().await;
    let created = api.put("/namespaces/other", json!({})).await;
    assert_eq!(created.status, 201, "{created:?}");
    api
}

fn with_id(name: &str, id: &str) -> Value {
    let mut body = instance(name);
    body["externalId"] = json!(id);
    body
}

fn assert_taken(reply: &TestReply) {
    assert_eq!((reply.status, reply.word()), (409, "already_exists"));
    let text = reply.body.to_string();
    assert!(!text.contains("app") && !text.contains("db"), "{text}");
}

#[tokio::test]
async fn the_id_of_an_instance_is_refused_to_another_namespace() {
    let api = api().await;
    let created = api.post(OWN, with_id("db", "victim")).await;
    assert_eq!(created.status, 202, "{created:?}");
    assert_taken(&api.post(OTHER, with_id("mine", "victim")).await);
    let path = format!("{OTHER}:adopt");
    assert_taken(&api.post(&path, with_id("mine", "victim")).await);
    let path = format!("{OTHER}?dryRun");
    assert_taken(&api.post(&path, with_id("mine", "victim")).await);
}

#[tokio::test]
async fn an_id_that_the_platform_made_is_taken_too() {
    let api = api().await;
    assert_eq!(api.post(OWN, instance("db")).await.status, 202);
    let shown = api.get(&format!("{OWN}/db")).await;
    let id = shown.body["externalId"].as_str().expect("an id");
    assert_taken(&api.post(OTHER, with_id("mine", id)).await);
}

#[tokio::test]
async fn an_adopted_instance_is_adopted_once() {
    let api = api().await;
    let path = format!("{OWN}:adopt");
    let adopted = api.post(&path, with_id("db", "victim")).await;
    assert_eq!(adopted.status, 201, "{adopted:?}");
    let path = format!("{OTHER}:adopt");
    assert_taken(&api.post(&path, with_id("mine", "victim")).await);
    assert_taken(&api.post(OTHER, with_id("mine", "victim")).await);
}

#[tokio::test]
async fn what_the_ledger_may_still_delete_is_not_created() {
    let api = api().await;
    let path = format!("{OWN}:adopt");
    assert_eq!(api.post(&path, with_id("db", "victim")).await.status, 201);
    let bob = basic("bob");
    let path = format!("{OWN}/db:abandon");
    let headers = [("authorization", bob.as_str())];
    let reason = Some(json!({"reason": "the broker is gone"}));
    let gone = api.ask(("POST", &path), &headers, reason).await;
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_taken(&api.post(OTHER, with_id("mine", "victim")).await);
    assert_taken(&api.post(OWN, with_id("again", "victim")).await);
}

/// P-007: it may exist at the broker still.
/// Holds: P-007.
#[tokio::test]
async fn the_id_of_an_orphan_that_was_forgotten_is_not_free_and_the_refusal_says_how_it_becomes_so()
{
    let api = api().await;
    let path = format!("{OWN}:adopt");
    assert_eq!(api.post(&path, with_id("db", "victim")).await.status, 201);
    let bob = basic("bob");
    let headers = [("authorization", bob.as_str())];
    let reason = || Some(json!({"reason": "the broker is gone"}));
    let path = format!("{OWN}/db:abandon");
    let gone = api.ask(("POST", &path), &headers, reason()).await;
    assert_eq!(gone.status, 200, "{gone:?}");
    let rows = api.get("/orphans").await;
    let id = rows.body["items"][0]["id"].as_str().expect("an id");
    let path = format!("/orphans/{id}:forget");
    let forgotten = api.ask(("POST", &path), &headers, reason()).await;
    assert_eq!(forgotten.body["state"], "forgotten", "{forgotten:?}");
    for path in [OWN.to_owned(), format!("{OWN}:adopt")] {
        let refused = api.post(&path, with_id("again", "victim")).await;
        assert_taken(&refused);
        let detail = refused.body["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains("forgotten") && detail.contains(":retry"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn an_id_of_which_the_broker_has_nothing_is_free_when_its_instance_is_gone() {
    let api = api().await;
    assert_eq!(api.post(OWN, with_id("db", "mine")).await.status, 202);
    let bob = basic("bob");
    let path = format!("{OWN}/db:abandon");
    let headers = [("authorization", bob.as_str())];
    let reason = Some(json!({"reason": "not needed"}));
    let gone = api.ask(("POST", &path), &headers, reason).await;
    assert_eq!(gone.body["phase"], "gone", "{gone:?}");
    let again = api.post(OWN, with_id("db", "mine")).await;
    assert_eq!(again.status, 202, "{again:?}");
}

#[tokio::test]
async fn the_id_of_a_binding_is_refused_to_another_instance() {
    let api = api().await;
    for (path, name) in [(OWN, "db"), (OTHER, "mine")] {
        let adopt = format!("{path}:adopt");
        assert_eq!(api.post(&adopt, with_id(name, name)).await.status, 201);
    }
    let body = |instance: &str| json!({"name": "b", "instance": instance, "externalId": "victim"});
    let bound = api.post("/namespaces/app/bindings", body("db")).await;
    assert_eq!(bound.status, 202, "{bound:?}");
    let refused = api.post("/namespaces/other/bindings", body("mine")).await;
    assert_taken(&refused);
}
