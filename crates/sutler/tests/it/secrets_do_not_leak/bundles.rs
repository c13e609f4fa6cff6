//! Secrets of bundles: searched during a run, and after its end.
//!
//! A real broker at the most detailed log level runs a bundle that gets secrets, prints them and returns
//! some. Root can read them in the files of the run; no other user can read them anywhere.

mod fixture;
mod playbooks;

use super::{Canaries, canary};
use crate::http_request::BrokerRequest;
use fixture::{Fixture, everybody_else_reads_nothing, search_processes, search_tree};
use serde_json::{Value, json};
use std::path::Path;

const MANIFEST: &str = r"
version: 1.0
name: vault
id: vault-id
description: Keeps things.
bindable: true
secrets: [server]
plans:
  - name: small
    id: small-id
    description: A small one.
    parameters:
      - {name: note, type: string, updatable: true}
      - {name: password, type: string, secret: true}
    bind_parameters:
      - {name: role, type: string}
";

/// Prints every secret that it got, in plain text.
const SAYS: &str = r#"
vars=${3#@}
c=canary
grep -o '"password":"[^"]*"' "$vars" || true
grep -o '"_apb_provision_creds":{[^}]*}' "$vars" || true
grep -o '"_apb_bind_creds":{[^}]*}' "$vars" || true
cat "$SUTLER_SECRETS_DIR/apb-server/master"
printf 'x%s' "$(cat "$SUTLER_SECRETS_DIR/apb-server/master")" | base64
printf 'half of it, with %s' "$(cat "$SUTLER_SECRETS_DIR/apb-server/master")" > "$SUTLER_RESULT_DIR/progress"
"#;

/// The result of each action. Values are concatenated, so that no script contains one.
const GIVES: [(&str, &str); 5] = [
    (
        "provision",
        r#"printf '{"kept":"%s.a-state.7f3a9c"}' $c > "$SUTLER_RESULT_DIR/state.json"
printf '{"root":"%s.a-provision-credential.7f3a9c"}' $c > "$SUTLER_RESULT_DIR/credentials.json"
if grep -q fails "$vars"; then
    cat "$SUTLER_SECRETS_DIR/apb-server/master" > "$SUTLER_RESULT_DIR/error"
    exit 3
fi"#,
    ),
    ("update", "true"),
    (
        "bind",
        r#"printf '{"login":"%s.a-binding-state.7f3a9c"}' $c > "$SUTLER_RESULT_DIR/binding_state.json"
printf '{"user":"%s.a-credential.7f3a9c"}' $c > "$SUTLER_RESULT_DIR/credentials.json""#,
    ),
    ("unbind", "true"),
    ("deprovision", "true"),
];

/// Secrets planted by the test or created by the scripts; the last ones are sent to or by platforms.
fn planted() -> Canaries {
    let mut canaries = Canaries {
        planted: Vec::new(),
        hash: String::new(),
    };
    for place in [
        "an operators secret",
        "a state",
        "a provision credential",
        "a binding state",
        "a secret parameter",
        "a parameter",
        "a changed parameter",
        "a bind parameter",
        "a credential",
    ] {
        canaries.plant(place);
    }
    canaries
}

/// Secrets that must not be in any response; the others are sent by the platform, or belong to the binding.
fn never_returned() -> Canaries {
    let mut canaries = planted();
    canaries.planted.truncate(4);
    canaries
}

fn provision(id: &str, more: Value) -> BrokerRequest {
    let mut body = json!({
        "service_id": "vault-id", "plan_id": "small-id",
        "organization_guid": "o", "space_guid": "s",
    });
    body["parameters"] = more;
    let path = format!("/v2/service_instances/{id}?accepts_incomplete=true");
    BrokerRequest::new("PUT", &path).json(&body)
}

/// Checks that apply while a run has secrets.
fn search_under_way(fixture: &Fixture, canaries: &Canaries) {
    search_processes(canaries);
    let there = fixture.grep(canaries, None);
    assert!(
        there.contains("vars.json"),
        "root finds them in the run's own files: {there}"
    );
    everybody_else_reads_nothing(fixture, canaries);
    fixture.search_names_and_modes(canaries);
    fixture.search_store(canaries);
    search_operators_view(fixture, canaries);
}

/// Searches the output of `sutler admin`.
fn search_operators_view(fixture: &Fixture, canaries: &Canaries) {
    let operations = fixture.admin(&["operations", "list", "-o", "name"]);
    let operations: Vec<&str> = operations.lines().collect();
    assert!(!operations.is_empty(), "there is something to see");
    let _before = std::fs::remove_file(fixture.here().join("export.jsonl"));
    let mut commands = vec![
        vec!["instances", "list", "-o", "json"],
        vec!["bindings", "list", "-o", "json"],
        vec!["operations", "list", "-o", "json"],
        vec!["audit", "list", "-o", "json"],
        vec!["stats", "-o", "json"],
        vec!["export", "export.jsonl"],
    ];
    for operation in operations {
        commands.push(vec!["operations", "show", operation, "-o", "json"]);
        commands.push(vec!["logs", operation]);
    }
    for words in commands {
        let shown = fixture.admin(&words);
        canaries.search(shown.as_bytes(), &words.join(" "));
    }
}

/// Runs one lifecycle, with the run held at provision and at bind.
fn run_lifecycle(fixture: &Fixture, canaries: &Canaries) {
    let never = never_returned();
    let parameters = json!({
        "note": canary("a parameter"), "password": canary("a secret parameter"),
    });
    let accepted = fixture.expect_status(provision("i", parameters), 202);
    canaries.search(accepted.as_bytes(), "the answer to a provision");
    fixture.until_held("provision");
    let polled = fixture.until_polled("i", "half of it");
    canaries.search(polled.as_bytes(), "a poll");
    search_under_way(fixture, canaries);
    fixture.release("provision");
    fixture.until_done("i", "succeeded");
    let fetched = fixture.expect_status(BrokerRequest::get("/v2/service_instances/i"), 200);
    never.search(fetched.as_bytes(), "a fetched instance");
    let change = json!({ "service_id": "vault-id",
        "parameters": { "note": canary("a changed parameter") } });
    fixture.release("update");
    let request = BrokerRequest::new("PATCH", "/v2/service_instances/i").json(&change);
    canaries.search(
        fixture.expect_status(request, 200).as_bytes(),
        "the answer to an update",
    );
    bind(fixture, canaries, &never);
    let failing = json!({ "note": "fails", "password": canary("a secret parameter") });
    fixture.expect_status(provision("fails", failing), 202);
    let failed = fixture.until_done("fails", "failed");
    canaries.search(failed.as_bytes(), "a failure");
    search_operators_view(fixture, canaries);
    fixture.release("unbind");
    fixture.release("deprovision");
    let query = "service_id=vault-id&plan_id=small-id";
    for path in ["i/service_bindings/b", "i", "fails"] {
        let path = format!("/v2/service_instances/{path}?{query}");
        let gone = fixture.expect_status(BrokerRequest::new("DELETE", &path), 200);
        canaries.search(gone.as_bytes(), "the answer to a delete");
    }
}

fn bind(fixture: &Fixture, canaries: &Canaries, never: &Canaries) {
    let body = json!({ "service_id": "vault-id", "plan_id": "small-id",
        "parameters": { "role": canary("a bind parameter") } });
    let path = "/v2/service_instances/i/service_bindings/b";
    let bind = BrokerRequest::new("PUT", &format!("{path}?accepts_incomplete=true")).json(&body);
    let accepted = fixture.expect_status(bind, 202);
    canaries.search(accepted.as_bytes(), "the answer to a bind under way");
    fixture.until_held("bind");
    search_under_way(fixture, canaries);
    fixture.release("bind");
    let polled = fixture.until_done("i/service_bindings/b", "succeeded");
    canaries.search(polled.as_bytes(), "a poll");
    // The credentials of the binding belong here, and no other secret.
    let fetched = fixture.expect_status(BrokerRequest::get(path), 200);
    assert!(fetched.contains(&canary("a credential")), "{fetched}");
    never.search(fetched.as_bytes(), "a fetched binding");
}

fn no_secret_is_anywhere(format: &str) {
    let canaries = planted();
    let fixture = Fixture::start("vault", format, write_bundle);
    run_lifecycle(&fixture, &canaries);
    search_processes(&canaries);
    fixture.until_no_run_is_left();
    let here = fixture.here().to_owned();
    let log = fixture.ended();
    assert!(
        log.contains("a bundle is offered") && log.contains("ended"),
        "the log is not whole: {log}"
    );
    canaries.search(log.as_bytes(), "the log");
    let searched = search_tree(&here, &canaries);
    for name in ["sutler.db", "audit.log", "export.jsonl"] {
        assert!(searched.contains(name), "{name} was not searched");
    }
}

fn write_bundle(bundle: &fixture::BundleFolder) {
    bundle.write("bundle.yml", MANIFEST, false);
    for (action, gives) in GIVES {
        let holds = bundle.hold_in_shell(action);
        let text = format!("#!/bin/sh\nset -e\n{SAYS}{gives}\n{holds}\n");
        bundle.write(&format!("actions/{action}"), &text, true);
    }
}

/// Regression: R40.
#[test]
fn no_secret_of_a_bundle_is_anywhere_while_it_runs_and_after_it() {
    no_secret_is_anywhere("text");
}

/// Regression: R40.
#[test]
fn no_secret_of_a_bundle_is_anywhere_where_logs_are_json() {
    no_secret_is_anywhere("json");
}

#[test]
fn a_search_of_files_finds_planted_secrets() {
    let folder = crate::process::folder();
    let mut canaries = planted();
    let value = canaries.plant("a file");
    std::fs::create_dir(folder.path().join("inner")).expect("a folder");
    std::fs::write(folder.path().join("inner/file"), value).expect("a file");
    let at: &Path = folder.path();
    let result = std::panic::catch_unwind(|| search_tree(at, &canaries));
    assert!(result.is_err());
}
