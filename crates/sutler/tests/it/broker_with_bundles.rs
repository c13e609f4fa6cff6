//! Bundles in the executable: offered by `sutler broker`, and run and tested without a broker.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, run_sutler, sutler};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

const MANIFEST: &str = r"
version: 1.0
name: greetings
id: greetings-id
description: Greets.
bindable: true
on_lost: rerun
plans:
  - name: small
    id: small-id
    description: One greeting.
    parameters:
      - {name: greeting, type: string, default: Hello, updatable: true}
examples:
  - {name: plain, plan: small}
  - name: changed
    plan: small
    parameters: {greeting: Moin}
    update: {parameters: {greeting: Servus}}
";

/// Writes a bundle whose scripts are in plain shell.
fn write_bundle(at: &Path) {
    fs::create_dir_all(at.join("actions")).expect("a folder");
    fs::write(at.join("bundle.yml"), MANIFEST).expect("a manifest");
    let give = "\"$SUTLER_RESULT_DIR\"";
    for (action, text) in [
        (
            "provision",
            format!("echo greeting nobody\nprintf '{{\"name\":\"n1\"}}' > {give}/state.json"),
        ),
        ("update", "grep -q state_name \"${3#@}\"".to_owned()),
        (
            "bind",
            format!("printf '{{\"user\":\"u1\"}}' > {give}/credentials.json"),
        ),
        ("unbind", "grep -q u1 \"${3#@}\"".to_owned()),
        ("deprovision", "grep -q _apb_plan_id \"${3#@}\"".to_owned()),
    ] {
        let path = at.join("actions").join(action);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
}

fn open_to_runs(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn body(answer: &str) -> Value {
    let text = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(text).unwrap_or_default()
}

/// Waits until a condition is true.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn a_folder_of_bundles_is_a_broker_and_changes_without_a_restart() {
    let folder = folder();
    open_to_runs(folder.path());
    let bundle = folder.path().join("bundles/greetings");
    write_bundle(&bundle);
    let config = "auth: none\nstore: {url: 'memory:'}\nadmin: {users: [{name: root, password: t0ps3cret}]}\nbundles: {folder: bundles, work: work, look_every: 100ms}\n";
    fs::write(folder.path().join("sutler.yaml"), config).expect("a file");
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    let put = BrokerRequest::new("PUT", "/v2/service_instances/i").json(&json!({
        "service_id": "greetings-id", "plan_id": "small-id",
        "organization_guid": "o", "space_guid": "s",
    }));
    let made = put.send(broker.address());
    assert_eq!(made.status, 201, "{}", made.text);
    let path = "/v2/service_instances/i/service_bindings/b";
    let ids = json!({ "service_id": "greetings-id", "plan_id": "small-id" });
    let bound = BrokerRequest::new("PUT", path)
        .json(&ids)
        .send(broker.address());
    assert_eq!(body(&bound.text)["credentials"], json!({ "user": "u1" }));

    let changed = MANIFEST.replace("Greets.", "Greets politely.");
    fs::write(bundle.join("bundle.yml"), changed).expect("a change");
    until("the change is offered", || {
        let catalog = BrokerRequest::get("/v2/catalog").send(broker.address());
        catalog.text.contains("Greets politely.")
    });
    fs::write(bundle.join("bundle.yml"), "name: [").expect("a slip");
    broker.until_logged("last good version");
    let catalog = BrokerRequest::get("/v2/catalog").send(broker.address());
    assert!(catalog.text.contains("Greets politely."));

    let shown = admin(folder.path(), broker.address(), &["bundles"]);
    assert!(shown.starts_with("BUNDLE"), "{shown}");
    assert!(shown.contains("greetings-id"), "{shown}");
    let fault = "\nfault: ";
    assert!(
        shown.contains(fault) && shown.contains("bundle.yml:1"),
        "{shown}"
    );

    let query = "service_id=greetings-id&plan_id=small-id";
    let gone = BrokerRequest::new("DELETE", &format!("{path}?{query}")).send(broker.address());
    assert_eq!(gone.status, 200, "{}", gone.text);
    let path = format!("/v2/service_instances/i?{query}");
    let gone = BrokerRequest::new("DELETE", &path).send(broker.address());
    assert_eq!(gone.status, 200, "{}", gone.text);
    shows_the_log(folder.path(), broker.address());
}

fn admin(folder: &Path, address: &str, words: &[&str]) -> String {
    let url = format!("http://{address}/admin");
    let mut command = sutler(folder);
    command.env("SUTLER_ADMIN_PASSWORD", "t0ps3cret");
    command.args(["admin", "--url", &url, "--user", "root"]);
    let output = command.args(words).output().expect("the program runs");
    String::from_utf8(output.stdout).expect("text")
}

fn shows_the_log(folder: &Path, address: &str) {
    let admin = |words: &[&str]| admin(folder, address, words);
    let listed = admin(&["operations", "list", "--verb", "provision", "-o", "name"]);
    let log = admin(&["logs", listed.trim(), "-f"]);
    assert_eq!(log, "greeting nobody\n");
}

#[test]
fn an_author_runs_and_tests_a_bundle_without_a_broker() {
    let folder = folder();
    write_bundle(&folder.path().join("greetings"));
    let run = |words: &[&str]| run_sutler(folder.path(), &[&["bundle"], words].concat());
    let made = run(&["run", "provision", "greetings"]);
    assert_eq!(made.stdout, "provision done\n", "{}", made.stderr);
    assert_eq!(made.stderr, "greeting nobody\n");
    let bound = run(&["run", "bind", "greetings"]);
    let expected = "credentials: user (--show-credentials prints them)\nbind done\n";
    assert_eq!(bound.stdout, expected, "{}", bound.stderr);
    for action in ["unbind", "deprovision"] {
        let done = run(&["run", action, "greetings"]);
        assert_eq!(done.stdout, format!("{action} done\n"), "{}", done.stderr);
    }
    let tested = run(&["test", "greetings"]);
    assert!(
        tested.stdout.ends_with("29 steps, all done\n"),
        "{}{}",
        tested.stdout,
        tested.stderr
    );
    assert_eq!(tested.code, Some(0));
    fs::write(
        folder.path().join("greetings/actions/bind"),
        "#!/bin/sh\nexit 3\n",
    )
    .expect("a slip");
    let tested = run(&["test", "greetings", "--example", "plain", "--no-crash"]);
    assert!(
        tested
            .stdout
            .contains("FAILED: The bind failed with exit code 3"),
        "{}",
        tested.stdout
    );
    assert_eq!(tested.code, Some(1));
}
