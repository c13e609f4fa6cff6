//! What is accepted: intents with their place, answers to those who wait, orders about intents.

use super::{TestApi, basic, instance};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::{HoldReason, IntentState};
use crate::records::Record;
use serde_json::json;
use sutler_journal::Commit;

const DB: &str = "/namespaces/app/instances/db";

#[tokio::test]
async fn a_namespace_is_created_changed_and_deleted_when_it_is_empty() {
    let api = TestApi::start().await;
    let created = api
        .put("/namespaces/app", json!({"labels": {"team": "x"}}))
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.body["clusterId"], "here");
    let changed = api.put("/namespaces/app", json!({})).await;
    assert_eq!(changed.status, 200);
    assert_eq!(changed.body["uid"], created.body["uid"]);
    let values = json!({"values": {"password": "s3cret"}});
    let secret = api.put("/namespaces/app/secrets/init", values).await;
    assert_eq!(secret.status, 201, "{secret:?}");
    let refused = api.delete("/namespaces/app").await;
    assert_eq!((refused.status, refused.word()), (409, "in_use"));
    assert_eq!(api.delete("/namespaces/app/secrets/init").await.status, 204);
    assert_eq!(api.delete("/namespaces/app").await.status, 204);
    assert_eq!(api.get("/namespaces/app").await.status, 404);
}

#[tokio::test]
async fn a_secret_is_never_answered() {
    let api = TestApi::with_broker().await;
    let path = "/namespaces/app/secrets/init";
    let values = json!({"values": {"password": "s3cret"}});
    for reply in [
        api.put(path, values.clone()).await,
        api.put(path, values).await,
        api.get(path).await,
        api.get("/namespaces/app/secrets").await,
    ] {
        assert!(reply.status < 300, "{reply:?}");
        assert!(!reply.body.to_string().contains("s3cret"), "{reply:?}");
    }
    let shown = api.get(path).await;
    assert_eq!(shown.body["keys"], json!(["password"]));
    assert_eq!(shown.header("etag"), "\"1\"");
}

#[tokio::test]
async fn an_accepted_change_has_a_place_where_it_is_shown() {
    let api = TestApi::with_broker().await;
    let created = api.post("/namespaces/app/instances", instance("db")).await;
    assert_eq!(created.status, 202, "{created:?}");
    let location = created.header("location").to_owned();
    assert_eq!(location, format!("/api/v1{DB}/intents/1"));
    assert_eq!(created.body["verb"], "provision");
    assert_eq!(created.body["state"], "queued");
    let path = location.strip_prefix("/api/v1").expect("a path");
    let shown = api.get(path).await;
    assert_eq!(shown.status, 200);
    assert_eq!(shown.body["number"], 1);
    assert_eq!(shown.body["author"]["username"], "ada");
    assert_eq!(api.get(&format!("{DB}/intents/2")).await.status, 404);
    assert_eq!(api.get(&format!("{DB}/intents/0")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn who_waits_longer_than_it_takes_gets_the_intent() {
    let api = TestApi::with_broker().await;
    let began = tokio::time::Instant::now();
    let path = "/namespaces/app/instances?wait=30s";
    let created = api.post(path, instance("db")).await;
    assert_eq!(created.status, 202, "{created:?}");
    assert!(began.elapsed().as_secs() >= 30);
}

/// Cancels the create as soon as the instance is there.
async fn until_cancelled(api: &TestApi) {
    while api.get(DB).await.status != 200 {
        tokio::task::yield_now().await;
    }
    let path = format!("{DB}/intents/1:cancel");
    assert_eq!(api.post(&path, json!({})).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_how_the_intent_ended() {
    let api = TestApi::with_broker().await;
    let began = tokio::time::Instant::now();
    let path = "/namespaces/app/instances?wait=120s";
    let create = api.post(path, instance("db"));
    let (created, ()) = tokio::join!(create, until_cancelled(&api));
    assert_eq!((created.status, created.word()), (409, "cancelled"));
    assert_eq!(created.body["intent"], 1);
    assert_eq!(created.body["detail"], "It was cancelled by ada.");
    assert!(began.elapsed().as_secs() < 60);
}

#[tokio::test]
async fn an_intent_is_cancelled_once() {
    let api = TestApi::with_instance().await;
    let path = format!("{DB}/intents/1:cancel");
    let done = api.post(&path, json!({"reason": "not needed"})).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["ended"][0]["state"], "cancelled");
    let again = api.post(&path, json!({})).await;
    assert_eq!((again.status, again.word()), (409, "wrong_intent"));
    assert_eq!(again.body["intent"], 1);
}

#[tokio::test]
async fn a_protected_instance_is_not_deleted() {
    let api = TestApi::with_instance().await;
    let protected = api.post(&format!("{DB}:protect"), json!({})).await;
    assert_eq!(protected.status, 200, "{protected:?}");
    assert_eq!(protected.body["protected"], true);
    let refused = api.delete(DB).await;
    assert_eq!((refused.status, refused.word()), (409, "protected"));
    let path = format!("{DB}:protect");
    let free = api.post(&path, json!({"protected": false})).await;
    assert_eq!(free.body["protected"], false);
    let deleted = api.delete(DB).await;
    assert_eq!(deleted.status, 202, "{deleted:?}");
    assert_eq!(deleted.body["verb"], "delete");
    let changed = api.patch(DB, json!({"plan": "large"})).await;
    assert_eq!((changed.status, changed.word()), (409, "deleting"));
}

#[tokio::test]
async fn a_delete_can_be_taken_back() {
    let api = TestApi::with_instance().await;
    let refused = api.post(&format!("{DB}:undelete"), json!({})).await;
    assert_eq!((refused.status, refused.word()), (409, "wrong_state"));
    assert_eq!(api.delete(DB).await.status, 202);
    let back = api.post(&format!("{DB}:undelete"), json!({})).await;
    assert_eq!(back.status, 200, "{back:?}");
    assert!(back.body["deletion"].is_null());
}

#[tokio::test]
async fn a_binding_waits_for_its_instance() {
    let api = TestApi::with_instance().await;
    let body = json!({"name": "db-app", "instance": "db", "parameters": {}});
    let created = api.post("/namespaces/app/bindings", body).await;
    assert_eq!(created.status, 202, "{created:?}");
    let location = "/api/v1/namespaces/app/bindings/db-app/intents/1";
    assert_eq!(created.header("location"), location);
    let shown = api.get("/namespaces/app/bindings/db-app").await;
    assert_eq!(shown.status, 200, "{shown:?}");
    assert_eq!(shown.body["instance"]["name"], "db");
    let intents = api.get("/namespaces/app/bindings/db-app/intents").await;
    assert_eq!(intents.body["items"][0]["verb"], "bind");
    let refused = api.delete(DB).await;
    assert_eq!((refused.status, refused.word()), (409, "has_bindings"));
    assert!(
        refused.body["detail"]
            .as_str()
            .expect("a sentence")
            .contains("db-app")
    );
}

#[tokio::test]
async fn a_namespace_with_its_own_broker_is_not_deleted() {
    let api = TestApi::start().await;
    assert_eq!(api.put("/namespaces/app", json!({})).await.status, 201);
    let own = "/namespaces/app/brokers/own";
    let body = json!({"url": "https://broker.example"});
    assert_eq!(api.put(own, body).await.status, 201);
    let refused = api.delete("/namespaces/app").await;
    assert_eq!((refused.status, refused.word()), (409, "in_use"));
    assert_eq!(api.delete(own).await.status, 204);
    assert_eq!(api.delete("/namespaces/app").await.status, 204);
}

#[tokio::test]
async fn the_next_namespace_of_a_name_does_not_see_what_is_gone() {
    let api = TestApi::with_instance().await;
    let body = json!({"name": "db-app", "instance": "db"});
    let bound = api.post("/namespaces/app/bindings", body).await;
    assert_eq!(bound.status, 202, "{bound:?}");
    let uid = api.get(DB).await.body["uid"].clone();
    let uid = uid.as_str().expect("a uid");
    let bob = basic("bob");
    let bob = [("authorization", bob.as_str())];
    let path = format!("{DB}:abandon");
    let reason = Some(json!({"reason": "the end"}));
    assert_eq!(api.ask(("POST", &path), &bob, reason).await.status, 200);
    let lists = [
        "/namespaces/app/instances?state=gone",
        "/namespaces/app/bindings?state=gone",
    ];
    let path = format!("/namespaces/app/instances/{uid}");
    let intents = format!("{path}/intents");
    for list in lists {
        let list = api.get(list).await;
        assert_eq!(list.body["items"].as_array().map(Vec::len), Some(1));
    }
    assert_eq!(api.get(&path).await.status, 200);
    assert_eq!(api.get(&intents).await.status, 200);
    assert_eq!(api.delete("/namespaces/app").await.status, 204);
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.put("/namespaces/app", json!({})).await.status, 201);
    for list in lists {
        let list = api.get(list).await;
        assert_eq!(list.body["items"], json!([]), "{list:?}");
    }
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.get(&intents).await.status, 404);
}

/// Puts the create of `db` on hold, as after a rejected one.
async fn hold_create(api: &TestApi) {
    let shown = api.get(DB).await;
    let uid = shown.body["uid"].as_str().and_then(|it| it.parse().ok());
    let records = api.0.platform.records();
    let key = records.keys.instance("app", uid.expect("a uid"));
    let was = records.load::<Instance>(&key).await.expect("it is read");
    let mut next = was.state.get().expect("an instance").clone();
    next.pending[0].state = IntentState::OnHold(HoldReason::Interrupted);
    let documents = &records.documents;
    let commit = documents.put(Commit::new(), &key, &was, &Record::of(next));
    let written = documents.store.commit(&commit).await;
    written.expect("it is written");
}

#[tokio::test]
async fn an_intent_that_is_only_tried_again_is_shown_and_not_written() {
    let api = TestApi::with_instance().await;
    hold_create(&api).await;
    let path = format!("{DB}/intents/1:resume?dryRun=true");
    let tried = api.post(&path, json!({})).await;
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(tried.body["pending"][0]["number"], 2);
    let shown = api.get(DB).await;
    assert_eq!(shown.body["pending"][0]["number"], 1);
}

/// All names and uses of secrets are freed in the one commit in which an instance ends, and a commit has a bound.
#[tokio::test]
async fn an_instance_has_a_few_names_and_secrets_at_a_time() {
    let api = TestApi::with_instance().await;
    let (ada, bob) = (basic("ada"), basic("bob"));
    for number in 1..=8 {
        let name = json!({"name": format!("n{number}")});
        let author = if number % 2 == 0 { &ada } else { &bob };
        let headers = [("authorization", author.as_str())];
        let reply = api.ask(("PATCH", DB), &headers, Some(name)).await;
        let expected = if number < 8 { 202 } else { 429 };
        assert_eq!(reply.status, expected, "{number}: {reply:?}");
    }
    let source = |number: u32| json!({"secret": format!("s{number}")});
    let many = |name: &str, count: u32| {
        let sources: Vec<_> = (0..count).map(source).collect();
        json!({"name": name, "class": "postgresql", "plan": "small", "parametersFrom": sources})
    };
    let path = "/namespaces/app/instances";
    let refused = api.post(path, many("other", 17)).await;
    assert_eq!((refused.status, refused.word()), (429, "too_many_pending"));
    assert_eq!(api.post(path, many("other", 16)).await.status, 202);
}
