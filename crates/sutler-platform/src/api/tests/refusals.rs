//! Requests that are refused before anything is asked: each with its word, and as a problem.

use super::{BODY_BYTES_MAX, TestApi, basic, instance};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;

const INSTANCES: &str = "/namespaces/app/instances";

#[tokio::test]
async fn a_problem_has_the_form_of_the_standard() {
    let api = TestApi::start().await;
    let reply = api.get("/namespaces/none").await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.header("content-type"), "application/problem+json");
    assert_eq!(reply.body["type"], "urn:sutler:not_found");
    assert_eq!(reply.body["status"], 404);
    assert_eq!(
        reply.body["detail"],
        "There is no namespace none; create it first."
    );
    assert!(reply.body["title"].is_string());
}

#[tokio::test]
async fn nobody_comes_in_without_credentials() {
    let api = TestApi::start().await;
    for header in ["Basic YWRhOndyb25n", "Bearer x", "nonsense"] {
        let headers = [("authorization", header)];
        let reply = api.ask(("GET", "/namespaces"), &headers, None).await;
        assert_eq!(
            (reply.status, reply.word()),
            (401, "unauthenticated"),
            "{header}"
        );
        let challenge = reply.header("www-authenticate");
        assert!(
            challenge.starts_with("Basic realm=\"platform\""),
            "{challenge}"
        );
    }
    let bare = Request::builder().uri("/api/v1/namespaces");
    let reply = api.send(bare.body(Body::empty()).expect("a request")).await;
    assert_eq!(reply.status, 401);
}

#[tokio::test]
async fn the_version_and_probes_are_for_everybody() {
    let api = TestApi::start().await;
    for path in ["/api/v1/version", "/healthz", "/readyz"] {
        let request = Request::builder().uri(path).body(Body::empty());
        let reply = api.send(request.expect("a request")).await;
        assert_eq!(reply.status, 200, "{path}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_told_apart() {
    let api = TestApi::start().await;
    let unknown = api.get("/nothing").await;
    assert_eq!((unknown.status, unknown.word()), (404, "not_found"));
    let other = api.ask(("DELETE", "/namespaces"), &[], None).await;
    assert_eq!((other.status, other.word()), (405, "method_not_allowed"));
    assert_eq!(other.header("allow"), "GET");
    let headers = [("authorization", "Basic YWRhOndyb25n")];
    let stranger = api.ask(("DELETE", "/namespaces"), &headers, None).await;
    assert_eq!(stranger.status, 401);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let api = TestApi::with_broker().await;
    for path in [
        "/namespaces/none/instances",
        "/namespaces/none/secrets",
        "/namespaces/app/instances/none",
        "/namespaces/app/instances/none/intents",
        "/namespaces/app/bindings/none",
        "/namespaces/app/secrets/none",
        "/orphans/none",
        "/namespaces/NOT_A_NAME",
        "/marketplace?namespace=none",
    ] {
        let reply = api.get(path).await;
        assert_eq!((reply.status, reply.word()), (404, "not_found"), "{path}");
    }
    let created = api.post("/namespaces/none/instances", instance("db")).await;
    assert_eq!((created.status, created.word()), (404, "not_found"));
}

#[tokio::test]
async fn a_body_of_another_media_type_is_refused() {
    let api = TestApi::with_broker().await;
    let request = Request::builder()
        .method("POST")
        .uri(format!("/api/v1{INSTANCES}"))
        .header("authorization", basic("ada"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("name=db"));
    let reply = api.send(request.expect("a request")).await;
    assert_eq!(
        (reply.status, reply.word()),
        (415, "unsupported_media_type")
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let api = TestApi::with_broker().await;
    let mut body = instance("db");
    body["parameters"]["x"] = json!("x".repeat(BODY_BYTES_MAX));
    let reply = api.post(INSTANCES, body).await;
    assert_eq!((reply.status, reply.word()), (413, "too_large"));
}

#[tokio::test]
async fn a_fault_in_a_body_is_named_by_its_pointer() {
    let api = TestApi::with_broker().await;
    let mut body = instance("db");
    body["parametersFrom"] = json!([{"secret": 7}]);
    let reply = api.post(INSTANCES, body).await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
    assert_eq!(
        reply.body["violations"][0]["pointer"],
        "/parametersFrom/0/secret"
    );
}

#[tokio::test]
async fn rules_that_are_broken_are_listed_and_nothing_is_written() {
    let api = TestApi::with_broker().await;
    let mut body = instance("db");
    body["parameters"]["disk"] = json!("large");
    let reply = api.post(INSTANCES, body).await;
    assert_eq!((reply.status, reply.word()), (422, "rules_broken"));
    assert_eq!(reply.body["violations"][0]["pointer"], "/parameters");
    let mut body = instance("db");
    body["plan"] = json!("huge");
    let reply = api.post(INSTANCES, body).await;
    assert_eq!((reply.status, reply.word()), (422, "rules_broken"));
    assert_eq!(api.get("/namespaces/app/instances/db").await.status, 404);
}

#[tokio::test]
async fn an_unknown_parameter_is_refused() {
    let api = TestApi::with_broker().await;
    let reply = api.get("/namespaces?limmit=1").await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
    let path = format!("{INSTANCES}?wait=1h");
    let reply = api.post(&path, instance("db")).await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
}

#[tokio::test]
async fn an_answer_repeats_the_id_of_its_request() {
    let api = TestApi::start().await;
    let headers = [("x-request-id", "e26cee84")];
    let reply = api.ask(("GET", "/namespaces"), &headers, None).await;
    assert_eq!(reply.header("x-request-id"), "e26cee84");
    assert!(
        !api.get("/namespaces")
            .await
            .header("x-request-id")
            .is_empty()
    );
}

#[tokio::test]
async fn what_cannot_have_a_name_is_not_created() {
    let api = TestApi::start().await;
    let reply = api.put("/namespaces/NOT_A_NAME", json!({})).await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
}
