//! `sutler platform` as a command: its help, its configuration, who comes in, and how it stops.
//!
//! What it does with brokers is in `platform_scenarios.rs` and `platform_with_broker.rs`; requests and refusals of the API
//! are tested in `sutler-platform`.

use crate::process::{Broker as Process, folder, run_sutler, sutler};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use sutler_servers::http::{HttpRequest, HttpResponse};

const USERS: &str = "users:\n- {name: ada, password: hush}\n- {name: kube, password: hush}\n";

/// Writes the configuration of a platform whose store is a file in the folder.
fn write_config(folder: &Path, more: &str) {
    let text = format!("{USERS}{more}");
    std::fs::write(folder.join("platform.yaml"), text).expect("it is written");
}

fn start(folder: &Path) -> Process {
    let mut command = sutler(folder);
    command.args(["platform", "--config", "platform.yaml"]);
    Process::of(&mut command)
}

fn send(platform: &Process, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
    let request = HttpRequest::new(method, path).with_basic_auth("ada:hush");
    let request = match body {
        Some(body) => request.with_body("application/json", body.to_string()),
        None => request,
    };
    request.send(platform.address()).expect("it answers")
}

fn json_of(response: &HttpResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap_or(Value::Null)
}

#[test]
fn help_shows_a_first_configuration_and_every_option() {
    let output = run_sutler(folder().path(), &["platform", "--help"]);
    let recorded = include_str!("cli_messages/platform-help.txt");
    if std::env::var_os("SUTLER_TEST_WRITE").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/cli_messages/platform-help.txt"
        );
        std::fs::write(path, &output.stdout).expect("it is written");
        return;
    }
    assert_eq!(output.stdout, recorded);
    assert_eq!(output.code, Some(0));
}

#[test]
fn the_configuration_of_the_help_has_no_fault() {
    let folder = folder();
    let help = run_sutler(folder.path(), &["platform", "--help"]).stdout;
    let (_, example) = help.split_once("platform.yaml:\n").expect("an example");
    let (example, _) = example.split_once("\n\n").expect("its end");
    let lines = example.lines().map(|line| line.strip_prefix("  "));
    let lines: Option<Vec<&str>> = lines.collect();
    let text = lines.expect("all lines are indented").join("\n");
    std::fs::write(folder.path().join("platform.yaml"), text).expect("it is written");
    std::fs::write(folder.path().join("ada.password"), "hush\n").expect("it is written");
    let arguments = ["platform", "--config", "platform.yaml", "--check"];
    let output = run_sutler(folder.path(), &arguments);
    assert_eq!(
        output.stdout, "platform.yaml has no fault\n",
        "{}",
        output.stderr
    );
    assert_eq!(output.code, Some(0));
}

#[test]
fn a_platform_that_nobody_can_use_does_not_start() {
    let folder = folder();
    let output = run_sutler(folder.path(), &["platform", "--in-memory"]);
    let expected = "sutler: the configuration has 1 fault:\n  users must name at least one user, or there \
                    must be `issuers`: every change has an author\n";
    assert_eq!((output.stderr.as_str(), output.code), (expected, Some(1)));
}

#[test]
fn every_fault_of_a_configuration_is_printed_with_its_place() {
    let folder = folder();
    write_config(
        folder.path(),
        "abandon: [eve]\ntls: {certificate: none.pem, key: none.key}\ncluster: x\n",
    );
    let arguments = ["platform", "--config", "platform.yaml"];
    let output = run_sutler(folder.path(), &arguments);
    let unknown = "  platform.yaml:6:1: cluster is not a key";
    assert!(output.stderr.contains(unknown), "{}", output.stderr);
    write_config(folder.path(), "users: []\n");
    let twice = run_sutler(folder.path(), &arguments);
    assert!(
        twice.stderr.contains("platform.yaml:4:1"),
        "{}",
        twice.stderr
    );
    write_config(folder.path(), "abandon: [eve]\n");
    let eve = run_sutler(folder.path(), &arguments).stderr;
    assert!(
        eve.contains("platform.yaml:4:11: abandon[0] is no user"),
        "{eve}"
    );
    write_config(
        folder.path(),
        "tls: {certificate: none.pem, key: none.key}\n",
    );
    let tls = run_sutler(folder.path(), &arguments).stderr;
    assert!(
        tls.contains("tls.certificate is none.pem, which cannot be read"),
        "{tls}"
    );
    assert!(!tls.contains("hush"), "{tls}");
}

#[test]
fn a_platform_serves_probes_to_everybody_and_the_api_to_its_users() {
    let folder = folder();
    write_config(folder.path(), "");
    let platform = start(folder.path());
    let bare = |path: &str| {
        let response = HttpRequest::new("GET", path).send(platform.address());
        response.expect("it answers")
    };
    assert_eq!(bare("/healthz").status, 200);
    assert_eq!(bare("/readyz").status, 200);
    assert_eq!(bare("/metrics").status, 401);
    let stranger = bare("/api/v1/namespaces");
    assert_eq!(stranger.status, 401);
    assert_eq!(json_of(&stranger)["type"], "urn:sutler:unauthenticated");
    let version = json_of(&bare("/api/v1/version"));
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    let list = send(&platform, "GET", "/api/v1/namespaces", None);
    assert_eq!((list.status, json_of(&list)), (200, json!({"items": []})));
    let metrics = send(&platform, "GET", "/metrics", None);
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().contains("route=\"namespace_list\""));
    // Alerts compare counters with their past, so they exist from the start.
    let alerts = "sutler_platform_orphan_alerts_total{reason=\"tries_used_up\"} 0";
    assert!(metrics.text().contains(alerts));
}

#[test]
fn metrics_may_be_for_everybody() {
    let folder = folder();
    write_config(folder.path(), "metrics: {public: true}\n");
    let platform = start(folder.path());
    let response = HttpRequest::new("GET", "/metrics").send(platform.address());
    assert_eq!(response.expect("it answers").status, 200);
}

#[test]
fn what_was_accepted_is_there_after_a_stop_and_a_start() {
    let folder = folder();
    write_config(folder.path(), "operators: [ada]\n");
    let platform = start(folder.path());
    let path = "/api/v1/namespaces/app";
    let created = send(
        &platform,
        "PUT",
        path,
        Some(&json!({"labels": {"team": "x"}})),
    );
    assert_eq!(created.status, 201);
    let secret = json!({"values": {"password": "s3cret-of-ada"}});
    let put = send(
        &platform,
        "PUT",
        &format!("{path}/secrets/init"),
        Some(&secret),
    );
    assert_eq!(put.status, 201);
    platform.signal("TERM");
    let log = platform.until_log_closed();
    assert!(log.iter().any(|line| line.contains("draining")), "{log:#?}");
    assert!(
        !log.iter().any(|line| line.contains("s3cret-of-ada")),
        "{log:#?}"
    );
    let stored = std::fs::read(folder.path().join("platform.db")).expect("a file");
    assert!(!contains(&stored, b"s3cret-of-ada"));
    let ended = platform.until_ended(Duration::from_secs(60));
    assert!(ended.is_some_and(|status| status.success()));
    let again = start(folder.path());
    let shown = json_of(&send(&again, "GET", path, None));
    assert_eq!(shown["labels"], json!({"team": "x"}));
    let shown = json_of(&send(&again, "GET", &format!("{path}/secrets/init"), None));
    assert_eq!(shown["keys"], json!(["password"]));
}

#[test]
fn changes_and_refusals_are_audited_and_secrets_are_not() {
    let folder = folder();
    write_config(
        folder.path(),
        "operators: [ada]\naudit: {file: audit.jsonl}\n",
    );
    let platform = start(folder.path());
    let path = "/api/v1/namespaces/app";
    assert_eq!(send(&platform, "PUT", path, Some(&json!({}))).status, 201);
    let secret = json!({"values": {"password": "s3cret-of-ada"}});
    send(
        &platform,
        "PUT",
        &format!("{path}/secrets/init"),
        Some(&secret),
    );
    assert_eq!(send(&platform, "DELETE", path, None).status, 409);
    platform.ended();
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a file");
    let lines: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let told: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or_default();
            (text("verb"), text("outcome"))
        })
        .collect();
    let expected = [
        ("namespace_put", "succeeded"),
        ("secret_put", "succeeded"),
        ("namespace_delete", "refused"),
    ];
    assert_eq!(told, expected, "{audit}");
    assert!(
        audit.contains("user:ada") && !audit.contains("s3cret-of-ada"),
        "{audit}"
    );
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
