//! Conditions of changes: entity tags, `If-None-Match`, idempotency keys.

use super::{TestApi, basic, instance};
use serde_json::json;

const DB: &str = "/namespaces/app/instances/db";

#[tokio::test]
async fn replacing_needs_a_condition() {
    let api = TestApi::with_instance().await;
    let reply = api.put(DB, instance("db")).await;
    assert_eq!((reply.status, reply.word()), (428, "precondition_required"));
}

#[tokio::test]
async fn a_change_on_what_was_read_is_accepted_and_one_on_something_older_is_not() {
    let api = TestApi::with_instance().await;
    let shown = api.get(DB).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let tag = shown.header("etag").to_owned();
    let uid = shown.body["uid"].as_str().expect("a uid");
    assert_eq!(tag, format!("\"{uid}.{}\"", shown.body["revision"]));
    let body = || Some(json!({"labels": {"team": "x"}}));
    let headers = [("if-match", tag.as_str())];
    let changed = api.ask(("PATCH", DB), &headers, body()).await;
    assert_eq!(changed.status, 202, "{changed:?}");
    assert_ne!(changed.header("etag"), tag);
    let other = Some(json!({"labels": {"team": "y"}}));
    let late = api.ask(("PATCH", DB), &headers, other).await;
    assert_eq!((late.status, late.word()), (412, "revision_changed"));
}

#[tokio::test]
async fn what_is_shown_can_be_sent_back() {
    let api = TestApi::with_instance().await;
    let shown = api.get(DB).await;
    let headers = [("if-match", shown.header("etag"))];
    let same = Some(shown.body["spec"].clone());
    let reply = api.ask(("PUT", DB), &headers, same).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.body["generation"], shown.body["generation"]);
}

#[tokio::test]
async fn only_the_first_of_two_creates_is_accepted() {
    let api = TestApi::with_broker().await;
    let headers = [("if-none-match", "*")];
    let body = || Some(instance("db"));
    let first = api.ask(("PUT", DB), &headers, body()).await;
    assert_eq!(first.status, 202, "{first:?}");
    let second = api.ask(("PUT", DB), &headers, body()).await;
    assert_eq!((second.status, second.word()), (412, "revision_changed"));
    let other = api.post("/namespaces/app/instances", instance("db")).await;
    assert_eq!((other.status, other.word()), (409, "already_exists"));
}

#[tokio::test]
async fn a_body_may_not_name_another_instance_than_its_path() {
    let api = TestApi::with_broker().await;
    let headers = [("if-none-match", "*")];
    let reply = api
        .ask(("PUT", DB), &headers, Some(instance("other")))
        .await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
    assert_eq!(reply.body["violations"][0]["pointer"], "/name");
}

#[tokio::test]
async fn a_repeated_request_is_accepted_once() {
    let api = TestApi::with_broker().await;
    let headers = [("idempotency-key", "k-1")];
    let body = || Some(instance("db"));
    let path = ("POST", "/namespaces/app/instances");
    let first = api.ask(path, &headers, body()).await;
    let second = api.ask(path, &headers, body()).await;
    assert_eq!((first.status, second.status), (202, 202), "{second:?}");
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("location"), second.header("location"));
}

#[tokio::test]
async fn a_request_that_is_repeated_after_the_end_of_its_intent_names_its_operation() {
    let api = TestApi::with_broker().await;
    let headers = [("idempotency-key", "k-1")];
    let path = ("POST", "/namespaces/app/instances");
    let first = api.ask(path, &headers, Some(instance("db"))).await;
    assert!(first.body["operation"].is_string(), "{first:?}");
    let cancel = format!("{DB}/intents/1:cancel");
    let cancelled = api.post(&cancel, json!({})).await;
    assert!(cancelled.status < 300, "{cancelled:?}");
    let second = api.ask(path, &headers, Some(instance("db"))).await;
    assert_eq!(second.body["operation"], first.body["operation"]);
}

#[tokio::test]
async fn a_condition_that_has_no_meaning_is_refused() {
    let api = TestApi::with_instance().await;
    let headers = [("if-match", "\"1\"")];
    let reply = api.ask(("DELETE", DB), &headers, None).await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
}

#[tokio::test]
async fn a_change_that_is_only_tried_is_shown_and_not_written() {
    let api = TestApi::with_instance().await;
    let path = format!("{DB}?dryRun=true");
    let tried = api.patch(&path, json!({"parameters": {"disk": 50}})).await;
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(tried.body["spec"]["parameters"]["disk"], 50);
    assert_eq!(
        tried.body["pending"][1]["diff"],
        json!({"parameters": {"disk": 50}})
    );
    let shown = api.get(DB).await;
    assert_eq!(shown.body["spec"]["parameters"]["disk"], 10);
    let path = "/namespaces/app/instances?dryRun";
    let tried = api.post(path, instance("other")).await;
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(api.get("/namespaces/app/instances/other").await.status, 404);
}

#[tokio::test]
async fn a_key_belongs_to_its_author() {
    let api = TestApi::with_broker().await;
    let bob = basic("bob");
    let key = [("idempotency-key", "k-1")];
    let of_bob = [("idempotency-key", "k-1"), ("authorization", &bob)];
    let path = ("POST", "/namespaces/app/instances");
    assert_eq!(api.ask(path, &key, Some(instance("db"))).await.status, 202);
    let other = api.ask(path, &of_bob, Some(instance("db"))).await;
    assert_eq!((other.status, other.word()), (409, "already_exists"));
    let path = ("POST", "/namespaces/app/bindings");
    let bind = || Some(json!({"name": "b", "instance": "db"}));
    assert_eq!(api.ask(path, &key, bind()).await.status, 202);
    assert_eq!(api.ask(path, &key, bind()).await.status, 202);
    let other = api.ask(path, &of_bob, bind()).await;
    assert_eq!((other.status, other.word()), (409, "already_exists"));
}

#[tokio::test]
async fn a_key_does_not_stand_for_another_request() {
    let api = TestApi::with_broker().await;
    let key = [("idempotency-key", "k-1")];
    let path = ("POST", "/namespaces/app/instances");
    assert_eq!(api.ask(path, &key, Some(instance("db"))).await.status, 202);
    let mut larger = instance("db");
    larger["plan"] = json!("large");
    let change = Some(json!({"labels": {"team": "x"}}));
    let bind = |name: &str| Some(json!({"name": "b", "instance": "db", "route": name}));
    let bindings = ("POST", "/namespaces/app/bindings");
    assert_eq!(api.ask(bindings, &key, bind("r1")).await.status, 202);
    for (path, body) in [
        (path, Some(larger)),
        (("PATCH", DB), change),
        (("POST", "/namespaces/app/instances/db:touch"), None),
        (bindings, bind("r2")),
    ] {
        let reply = api.ask(path, &key, body).await;
        let found = (reply.status, reply.word());
        assert_eq!(found, (422, "key_reused"), "{path:?}");
    }
}

#[tokio::test]
async fn only_front_ends_name_the_object_that_an_instance_follows() {
    let api = TestApi::with_broker().await;
    let mut body = instance("db");
    body["source"] = json!({"object": "c/app/db", "uid": "u-1", "generation": 1});
    let path = "/namespaces/app/instances";
    let refused = api.post(path, body.clone()).await;
    assert_eq!((refused.status, refused.word()), (403, "not_allowed"));
    let kube = basic("kube");
    let person = r#"{"username": "carol", "uid": "u-1"}"#;
    let headers = [
        ("authorization", kube.as_str()),
        ("sutler-on-behalf-of", person),
    ];
    let taken = api.ask(("POST", path), &headers, Some(body)).await;
    assert_eq!(taken.status, 202, "{taken:?}");
}

#[tokio::test]
async fn a_condition_on_an_instance_does_not_hold_for_the_next_one_of_its_name() {
    let api = TestApi::with_instance().await;
    let tag = api.get(DB).await.header("etag").to_owned();
    let bob = basic("bob");
    let bob = [("authorization", bob.as_str())];
    let reason = Some(json!({"reason": "the end"}));
    let path = format!("{DB}:abandon");
    assert_eq!(api.ask(("POST", &path), &bob, reason).await.status, 200);
    let again = api.post("/namespaces/app/instances", instance("db")).await;
    assert_eq!(again.status, 202);
    let old = [("if-match", tag.as_str())];
    let change = || Some(json!({"labels": {"team": "x"}}));
    let late = api.ask(("PATCH", DB), &old, change()).await;
    assert_eq!((late.status, late.word()), (412, "revision_changed"));
    let late = api.ask(("PUT", DB), &old, Some(instance("db"))).await;
    assert_eq!((late.status, late.word()), (412, "revision_changed"));
    let new = [("if-match", again.header("etag"))];
    assert_eq!(api.ask(("PATCH", DB), &new, change()).await.status, 202);
}
