//! Logs, the audit and the probes of a running broker.

use super::{ObservedBroker, until};
use serde_json::{Value, json};

/// Texts of a request that must not be in any line.
const SECRETS: [&str; 2] = ["canary-in-query", "canary-in-identity"];

/// `{"username": "duke", "extra": "canary-in-identity"}` of Kubernetes.
fn identity() -> String {
    "kubernetes eyJ1c2VybmFtZSI6ICJkdWtlIiwgImV4dHJhIjogImNhbmFyeS1pbi1pZGVudGl0eSJ9".to_owned()
}

#[tokio::test]
async fn a_request_and_its_operation_are_found_by_the_same_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = ObservedBroker::start(folder.path(), &["--in-memory"], &[]).await;
    let identity = identity();
    let headers = [
        ("X-Broker-API-Request-Identity", "request-one"),
        ("X-Broker-API-Originating-Identity", identity.as_str()),
    ];
    let status = broker
        .put(
            "one",
            json!({"fail": "As it was asked to."}),
            &headers,
            "?unknown=canary-in-query",
        )
        .await;
    assert_eq!(status, 500);
    let ended = broker.line(|it| it["message"] == "ended").await;
    assert_eq!(ended["request.id"], "request-one");
    assert_eq!(ended["kind"], "provision");
    assert_eq!(ended["outcome"], "failed");
    assert_eq!(ended["attempt"], 1);
    assert_eq!(ended["instance.id"], "one");
    let answered = broker
        .line(|it| it["http.response.status_code"] == 500)
        .await;
    assert_eq!(answered["request.id"], "request-one");
    assert_eq!(answered["http.request.method"], "PUT");
    assert_eq!(
        answered["http.route"],
        "/v2/service_instances/{instance_id}"
    );
    assert_eq!(answered["operation.id"], ended["operation.id"]);
    assert!(answered["duration_ms"].is_number());
    // A warning from inside the hook has the ids too.
    let inside = broker
        .line(|it| it["message"] == "a hook did not succeed")
        .await;
    assert_eq!(inside["request.id"], "request-one");
    let all = Value::Array(broker.lines()).to_string();
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn an_operation_that_runs_after_a_restart_still_names_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--db", "restart.db"];
    let first = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let headers = [("X-Broker-API-Request-Identity", "before-the-crash")];
    let query = "?accepts_incomplete=true";
    let status = first
        .put("one", json!({"delay_ms": 500}), &headers, query)
        .await;
    assert_eq!(status, 202);
    drop(first);
    let second = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let ended = second.line(|it| it["message"] == "ended").await;
    assert_eq!(ended["request.id"], "before-the-crash");
    assert_eq!(ended["outcome"], "succeeded");
}

#[tokio::test]
async fn the_audit_names_actors_and_actions_in_a_file_that_can_be_rotated() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--in-memory", "--audit-file", "audit.jsonl"];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    let identity = identity();
    let headers = [("X-Broker-API-Originating-Identity", identity.as_str())];
    let parameters = json!({"delay_ms": 0});
    assert_eq!(
        broker.provision("one", parameters.clone(), &headers).await,
        201
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let entries: Vec<Value> = read("audit.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let outcomes: Vec<_> = entries.iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["accepted", "succeeded"]);
    for entry in &entries {
        assert_eq!(entry["verb"], "provision");
        assert_eq!(entry["instance.id"], "one");
        assert_eq!(entry["platform"], "kubernetes");
        assert_eq!(entry["user_digest"], "f6804460f509a765");
        assert!(entry["operation.id"].is_string() && entry["request.id"].is_string());
    }
    assert!(!read("audit.jsonl").contains("canary"));
    let moved = folder.path().join("audit.1");
    std::fs::rename(folder.path().join("audit.jsonl"), moved).expect("it can be moved");
    broker.signal("-HUP");
    let there = async || folder.path().join("audit.jsonl").exists().then_some(());
    until(there, || "the file was not opened again".to_owned()).await;
    assert_eq!(broker.provision("two", parameters, &headers).await, 201);
    assert_eq!(read("audit.1").lines().count(), 2);
    assert!(read("audit.jsonl").contains("\"two\""));
}

#[tokio::test]
async fn an_audit_line_that_cannot_be_written_is_counted_and_kept_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "--in-memory",
        "--public-metrics",
        "--audit-file",
        "/dev/full",
    ];
    let broker = ObservedBroker::start(folder.path(), &arguments, &[]).await;
    assert_eq!(broker.provision("one", json!({}), &[]).await, 201);
    let kept = broker.line(|it| it["entry"].is_string()).await;
    assert_eq!(kept["level"], "ERROR");
    let entry: Value = serde_json::from_str(kept["entry"].as_str().expect("text")).expect("JSON");
    assert_eq!(entry["instance.id"], "one");
    let (_, page) = broker.get("/metrics").await;
    assert!(
        page.contains("sutler_audit_records_total{result=\"failed\"} 2"),
        "{page}"
    );
}

#[tokio::test]
async fn probes_need_no_credentials() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = ObservedBroker::start(folder.path(), &["--in-memory"], &[]).await;
    assert_eq!(
        broker.get("/healthz").await,
        (200, "The broker lives.\n".to_owned())
    );
    assert_eq!(
        broker.get("/readyz").await,
        (200, "The broker is ready.\n".to_owned())
    );
    // The metrics page is not public by default.
    assert_eq!(broker.get("/metrics").await.0, 404);
}
