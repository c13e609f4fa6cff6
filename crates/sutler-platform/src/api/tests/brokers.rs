//! Brokers: registered, changed, operated, deregistered.

use super::{BROKER, TestApi, basic, instance};
use crate::author::Author;
use crate::lifecycle::intent::Abandonment;
use bytes::Bytes;
use serde_json::{Value, json};
use sutler_journal::{Commit, Write};

const PATH: &str = "/brokers/other";

fn body() -> Value {
    json!({
        "url": "https://broker.example",
        "auth": {"basic": {"username": "platform", "password": "s3cret"}},
        "limits": {"maxInFlight": 4},
    })
}

#[tokio::test]
async fn a_broker_is_registered_shown_changed_and_deregistered() {
    let api = TestApi::start().await;
    let created = api.put(PATH, body()).await;
    assert_eq!(created.status, 201, "{created:?}");
    let uid = created.body["uid"].as_str().expect("a uid");
    assert_eq!(created.header("etag"), format!("\"{uid}.1\""));
    let shown = api.get(PATH).await;
    assert_eq!(shown.status, 200);
    assert_eq!(
        shown.body["auth"],
        json!({"basic": {"username": "platform"}})
    );
    assert_eq!(shown.body["limits"]["maxInFlight"], 4);
    assert_eq!(shown.body["createdBy"]["username"], "ada");
    let change = json!({"limits": {"answerWithin": "5s"}});
    let changed = api.patch(PATH, change).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.body["limits"]["answerWithin"], "5s");
    assert_eq!(changed.body["limits"]["maxInFlight"], 4);
    assert_eq!(changed.header("etag"), format!("\"{uid}.2\""));
    let list = api.get("/brokers").await;
    assert_eq!(list.body["items"][0]["name"], "other");
    for reply in [created, shown, changed, list] {
        assert!(!reply.body.to_string().contains("s3cret"), "{reply:?}");
    }
    assert_eq!(api.delete(PATH).await.status, 204);
    assert_eq!(api.get(PATH).await.status, 404);
}

#[tokio::test]
async fn changes_of_registrations_can_have_conditions() {
    let api = TestApi::start().await;
    let absent = [("if-none-match", "*")];
    let first = api.ask(("PUT", PATH), &absent, Some(body())).await;
    assert_eq!(first.status, 201, "{first:?}");
    let second = api.ask(("PUT", PATH), &absent, Some(body())).await;
    assert_eq!((second.status, second.word()), (412, "revision_changed"));
    let uid = first.body["uid"].as_str().expect("a uid");
    let tag = format!("\"{uid}.7\"");
    let old = [("if-match", tag.as_str())];
    let late = api.ask(("PATCH", PATH), &old, Some(json!({}))).await;
    assert_eq!((late.status, late.word()), (412, "revision_changed"));
    let other = format!("\"{}.1\"", uuid::Uuid::nil());
    let other = [("if-match", other.as_str())];
    let late = api.ask(("PATCH", PATH), &other, Some(json!({}))).await;
    assert_eq!((late.status, late.word()), (412, "revision_changed"));
    let none = api.ask(("PUT", "/brokers/none"), &old, Some(body())).await;
    assert_eq!((none.status, none.word()), (404, "not_found"));
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_not_registered() {
    let api = TestApi::start().await;
    for url in [
        "nowhere",
        "ftp://x",
        "http://u:s3cret@x",
        "http://127.0.0.1:1",
    ] {
        let reply = api.put(PATH, json!({"url": url})).await;
        assert_eq!(
            (reply.status, reply.word()),
            (400, "invalid"),
            "{url}: {reply:?}"
        );
        assert!(!reply.body.to_string().contains("s3cret"), "{reply:?}");
    }
    let mut body = body();
    body["limits"] = json!({"answerWithin": "1ms"});
    let reply = api.put(PATH, body).await;
    assert_eq!(
        reply.body["violations"][0]["pointer"],
        "/limits/answerWithin"
    );
}

#[tokio::test]
async fn a_broker_of_a_namespace_is_apart_from_that_of_all() {
    let api = TestApi::start().await;
    let own = "/namespaces/app/brokers/other";
    let early = api.put(own, body()).await;
    assert_eq!((early.status, early.word()), (404, "not_found"));
    assert_eq!(api.put("/namespaces/app", json!({})).await.status, 201);
    let created = api.put(own, body()).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.body["namespace"], "app");
    assert_eq!(api.get(PATH).await.status, 404);
    let list = api.get("/namespaces/app/brokers").await;
    assert_eq!(list.body["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_broker_is_paused_and_resumed() {
    let api = TestApi::start().await;
    assert_eq!(api.put(PATH, body()).await.status, 201);
    let paused = api
        .post(&format!("{PATH}:pause"), json!({"reason": "moves"}))
        .await;
    assert_eq!(paused.status, 202, "{paused:?}");
    assert_eq!(paused.body["breaker"]["state"], "paused");
    assert_eq!(paused.body["breaker"]["by"]["username"], "ada");
    let probe = api.post(&format!("{PATH}:probe"), json!({})).await;
    assert_eq!((probe.status, probe.word()), (409, "wrong_state"));
    let resumed = api.post(&format!("{PATH}:resume"), json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
    assert_eq!(resumed.body["breaker"]["state"], "closed");
    let again = api.post(&format!("{PATH}:resume"), json!({})).await;
    assert_eq!(again.status, 200, "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sync_is_requested_and_may_be_waited_for() {
    let api = TestApi::start().await;
    assert_eq!(api.put(PATH, body()).await.status, 201);
    let asked = api.post(&format!("{PATH}:sync?wait=2s"), json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    assert_eq!(asked.body["sync"]["requested"], true);
}

#[tokio::test]
async fn a_broker_with_instances_is_not_deregistered() {
    let api = TestApi::with_instance().await;
    let reply = api.delete("/brokers/databases").await;
    assert_eq!((reply.status, reply.word()), (409, "has_instances"));
    assert!(
        reply.body["detail"]
            .as_str()
            .expect("a sentence")
            .contains("app/db")
    );
}

/// A change of where secrets are sent, with and without the secret itself.
#[tokio::test]
async fn a_secret_is_not_sent_to_another_place_than_it_was_registered_for() {
    let api = TestApi::start().await;
    assert_eq!(api.put(PATH, body()).await.status, 201);
    for patch in [
        json!({"url": "https://elsewhere.example"}),
        json!({"url": "https://broker.example:8443"}),
        json!({"tls": {"insecureSkipVerify": true}}),
        json!({"auth": {"basic": {"username": "root"}}, "url": "https://elsewhere.example"}),
    ] {
        let reply = api.patch(PATH, patch.clone()).await;
        assert_eq!(
            (reply.status, reply.word()),
            (422, "rules_broken"),
            "{patch}: {reply:?}"
        );
        let pointer = &reply.body["violations"][0]["pointer"];
        assert_eq!(pointer, "/auth/basic/password");
    }
    let within = api
        .patch(PATH, json!({"url": "https://broker.example/osb"}))
        .await;
    assert_eq!(within.status, 200, "{within:?}");
    let named = json!({"url": "https://elsewhere.example", "auth": {"basic": {"password": "new"}}});
    assert_eq!(api.patch(PATH, named).await.status, 200);
    let moved = json!({"url": "https://third.example", "auth": {"bearer": {"token": "new"}}});
    assert_eq!(api.patch(PATH, moved).await.status, 200);
}

#[tokio::test]
async fn the_secret_of_a_client_is_not_sent_to_another_issuer() {
    let api = TestApi::start().await;
    let body = json!({"url": "https://broker.example", "auth": {"oauth2": {
        "tokenUrl": "https://issuer.example/token", "clientId": "platform", "clientSecret": "s3cret"}}});
    assert_eq!(api.put(PATH, body).await.status, 201);
    let auth = |token_url: &str| json!({"auth": {"oauth2": {"tokenUrl": token_url}}});
    let refused = api.patch(PATH, auth("https://elsewhere.example/t")).await;
    assert_eq!((refused.status, refused.word()), (422, "rules_broken"));
    let pointer = &refused.body["violations"][0]["pointer"];
    assert_eq!(pointer, "/auth/oauth2/clientSecret");
    let within = api.patch(PATH, auth("https://issuer.example/v2")).await;
    assert_eq!(within.status, 200, "{within:?}");
}

/// Source: T-92.
#[tokio::test]
async fn a_broker_is_deregistered_with_everything_by_who_may_give_that_up() {
    let api = TestApi::with_instance().await;
    let body = json!({"name": "db-app", "instance": "db"});
    assert_eq!(api.post("/namespaces/app/bindings", body).await.status, 202);
    let path = ("DELETE", "/brokers/databases?abandon");
    let reason = json!({"reason": "the data centre is closed"});
    let by = |name: &str, body: Value| {
        let user = basic(name);
        let api = &api;
        async move {
            let headers = [("authorization", user.as_str())];
            api.ask(path, &headers, Some(body)).await
        }
    };
    for (name, lacks) in [("ada", "abandon"), ("bob", "broker.manage")] {
        let refused = by(name, reason.clone()).await;
        assert_eq!((refused.status, refused.word()), (403, "not_allowed"));
        assert!(refused.body.to_string().contains(lacks), "{refused:?}");
    }
    let refused = by("dora", json!({})).await;
    assert_eq!((refused.status, refused.word()), (400, "invalid"));
    let shown = api.get("/namespaces/app/instances/db").await;
    let uid = shown.body["uid"].as_str().expect("a uid").to_owned();
    let removed = by("dora", reason.clone()).await;
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(api.get("/brokers/databases").await.status, 404);
    for path in ["instances/db", "bindings/db-app"] {
        let gone = api.get(&format!("/namespaces/app/{path}")).await;
        assert_eq!(gone.status, 404, "{gone:?}");
    }
    let gone = api.get("/namespaces/app/instances?state=gone").await;
    assert_eq!(gone.body["items"][0]["uid"], uid.as_str());
    assert_eq!(
        gone.body["items"][0]["abandoned"]["reason"],
        "the data centre is closed"
    );
    let tombstone = api.get(&format!("/namespaces/app/instances/{uid}")).await;
    assert_eq!(tombstone.status, 200, "{tombstone:?}");
    let again = by("dora", reason).await;
    assert_eq!((again.status, again.word()), (404, "not_found"));
}

/// What has no instance any more could not be unbound.
#[tokio::test]
async fn nothing_is_bound_at_a_broker_that_is_being_deregistered() {
    let api = TestApi::with_instance().await;
    let abandonment = Abandonment {
        by: Author {
            username: "olga".to_owned(),
            uid: "olga".to_owned(),
            groups: Vec::new(),
            extra: Default::default(),
            impersonated_by: None,
        },
        reason: None,
    };
    let brokers = api.0.platform.brokers();
    let marked = brokers.mark_abandoned(BROKER, &abandonment).await;
    marked.expect("it is marked");
    let body = json!({"name": "db-app", "instance": "db"});
    let refused = api.post("/namespaces/app/bindings", body).await;
    assert_eq!(refused.status, 409, "{refused:?}");
}

/// Nothing is read of other brokers, however many there are.
#[tokio::test]
async fn a_registration_that_cannot_be_opened_harms_no_create_through_another_broker() {
    let api = TestApi::with_broker().await;
    let records = api.0.platform.records();
    let name = "unreadable".try_into().expect("a name");
    let broken = Write::Put {
        key: records.keys.broker(None, &name),
        terms: Vec::new(),
        body: Bytes::from_static(b"sealed by nobody"),
    };
    let commit = Commit::new().write(broken);
    let written = records.documents.store.commit(&commit).await;
    written.expect("it is written");
    let mut body = instance("db");
    body["broker"] = json!("databases");
    let created = api.post("/namespaces/app/instances", body).await;
    assert_eq!(created.status, 202, "{created:?}");
}
