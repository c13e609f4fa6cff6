//! `sutler admin` against a real broker: tables, errors, exit codes, and confirmations.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, ProgramOutput, folder, run_sutler, sutler};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

const PASSWORD: &str = "t0ps3cret";

const CONFIG: &str = "\
auth: none
store: {url: 'memory:'}
catalog: {file: catalog.yaml}
admin: {users: [{name: root, password: t0ps3cret}]}
";

const CATALOG: &str = "services: [{id: database, name: database, description: d, bindable: true, plans: [{id: small, name: small, description: d}, {id: large, name: large, description: d}]}]\n";

fn started(folder: &Path) -> Broker {
    std::fs::write(folder.join("catalog.yaml"), CATALOG).expect("a file");
    std::fs::write(folder.join("sutler.yaml"), CONFIG).expect("a file");
    Broker::start(folder, &["broker", "--config", "sutler.yaml"])
}

fn provision(broker: &Broker, id: &str, plan: &str) {
    let body = json!({ "service_id": "database", "plan_id": plan, "organization_guid": "o", "space_guid": "s" });
    let made = BrokerRequest::new("PUT", &format!("/v2/service_instances/{id}")).json(&body);
    assert_eq!(made.send(broker.address()).status, 201);
}

fn admin(folder: &Path, broker: &Broker, arguments: &[&str]) -> ProgramOutput {
    let url = format!("http://{}/admin", broker.address());
    let output = sutler(folder)
        .args(["admin", "--url", &url, "--user", "root"])
        .args(arguments)
        .env("SUTLER_ADMIN_PASSWORD", PASSWORD)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    ProgramOutput {
        stdout: String::from_utf8(output.stdout).expect("it prints text"),
        stderr: String::from_utf8(output.stderr).expect("it prints text"),
        code: output.status.code(),
    }
}

/// Replaces ids and times by letters of the same length, so that columns stay aligned.
fn normal(text: &str) -> String {
    let word = |word: &str| {
        let dashes = word.matches('-').count();
        if word.len() == 36 && dashes == 4 {
            "O".repeat(36)
        } else if word.len() == 20 && word.ends_with('Z') && dashes == 2 {
            "T".repeat(20)
        } else {
            word.to_owned()
        }
    };
    let lines = text.lines().map(|line| {
        let words: Vec<String> = line.split(' ').map(word).collect();
        words.join(" ") + "\n"
    });
    lines.collect()
}

#[test]
fn lists_are_tables_that_align_and_json_and_names() {
    let folder = folder();
    let broker = started(folder.path());
    provision(&broker, "a", "small");
    provision(&broker, "a-much-longer-id", "large");
    let listed = admin(folder.path(), &broker, &["instances", "list"]);
    assert_eq!(
        normal(&listed.stdout),
        include_str!("cli_messages/admin-instances.txt")
    );
    assert_eq!((listed.stderr.as_str(), listed.code), ("", Some(0)));
    let names = admin(
        folder.path(),
        &broker,
        &["instances", "list", "-o", "name", "--plan", "large"],
    );
    assert_eq!(names.stdout, "a-much-longer-id\n");
    let as_json = admin(
        folder.path(),
        &broker,
        &["operations", "list", "-o", "json", "--verb", "provision"],
    );
    let value: Value = serde_json::from_str(&as_json.stdout).expect("it is JSON");
    assert_eq!(value["items"].as_array().map(Vec::len), Some(2));
    let page = admin(
        folder.path(),
        &broker,
        &["instances", "list", "--limit", "1"],
    );
    assert!(page.stderr.contains("--all"), "{}", page.stderr);
    let all = admin(
        folder.path(),
        &broker,
        &[
            "instances",
            "list",
            "--limit",
            "1",
            "--all",
            "--sort",
            "-id",
            "-o",
            "name",
        ],
    );
    assert_eq!(all.stdout, "a-much-longer-id\na\n");
    let shown = admin(folder.path(), &broker, &["instances", "show", "a"]);
    assert!(shown.stdout.contains("last.verb"), "{}", shown.stdout);
    let stats = admin(folder.path(), &broker, &["stats"]);
    assert!(stats.stdout.contains("draining"), "{}", stats.stdout);
}

#[test]
fn a_purge_asks_for_confirmation_and_is_audited() {
    let folder = folder();
    let broker = started(folder.path());
    provision(&broker, "i", "small");
    let unasked = admin(folder.path(), &broker, &["instances", "purge", "i"]);
    assert_eq!(unasked.code, Some(5));
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let order = [
        "instances",
        "purge",
        "i",
        "--yes",
        "--reason",
        "lost its server",
    ];
    let purged = admin(folder.path(), &broker, &order);
    assert_eq!(purged.stderr, "purge i: done; it is gone now.\n");
    assert_eq!(purged.code, Some(0));
    let audit = admin(folder.path(), &broker, &["audit", "list"]);
    assert_eq!(
        normal(&audit.stdout),
        include_str!("cli_messages/admin-audit.txt")
    );
}

#[test]
fn every_failure_has_an_exit_code_and_a_suggestion() {
    let folder = folder();
    let broker = started(folder.path());
    provision(&broker, "i", "small");
    let missing = admin(folder.path(), &broker, &["instances", "show", "none"]);
    assert_eq!(
        missing.stderr,
        "sutler: There is no service instance with this id.\n"
    );
    assert_eq!(missing.code, Some(3));
    let refused = admin(folder.path(), &broker, &["instances", "cancel", "i"]);
    assert!(refused.stderr.contains("use retry"), "{}", refused.stderr);
    assert_eq!(refused.code, Some(4));
    let wrong = admin(
        folder.path(),
        &broker,
        &["instances", "list", "--lifecycle", "alive"],
    );
    assert!(wrong.stderr.contains("create_failed"), "{}", wrong.stderr);
    assert_eq!(wrong.code, Some(2));
    let stranger = admin(folder.path(), &broker, &["stats", "--user", "nobody"]);
    assert!(
        stranger.stderr.contains("--password-file"),
        "{}",
        stranger.stderr
    );
    assert_eq!(stranger.code, Some(1));
    assert!(!stranger.stderr.contains(PASSWORD));
    let nowhere = run_sutler(
        folder.path(),
        &["admin", "--url", "http://127.0.0.1:1/admin", "stats"],
    );
    assert!(
        nowhere.stderr.contains("is it running"),
        "{}",
        nowhere.stderr
    );
    assert_eq!(nowhere.code, Some(1));
    let half = run_sutler(folder.path(), &["admin", "--user", "root", "stats"]);
    assert!(
        half.stderr.contains("SUTLER_ADMIN_PASSWORD"),
        "{}",
        half.stderr
    );
    assert_eq!(half.code, Some(2));
}

#[test]
fn a_drained_broker_refuses_changes_until_it_is_resumed() {
    let folder = folder();
    let broker = started(folder.path());
    assert_eq!(
        admin(folder.path(), &broker, &["drain", "--reason", "upgrade"]).code,
        Some(0)
    );
    let body = json!({ "service_id": "database", "plan_id": "small", "organization_guid": "o", "space_guid": "s" });
    let put = BrokerRequest::new("PUT", "/v2/service_instances/i").json(&body);
    assert_eq!(put.send(broker.address()).status, 503);
    assert_eq!(
        BrokerRequest::get("/v2/catalog")
            .send(broker.address())
            .status,
        200
    );
    assert_eq!(admin(folder.path(), &broker, &["resume"]).code, Some(0));
    provision(&broker, "i", "small");
}

#[test]
fn a_running_database_is_copied_and_a_realm_is_written_to_a_file() {
    let folder = folder();
    std::fs::write(folder.path().join("catalog.yaml"), CATALOG).expect("a file");
    let config = CONFIG.replace("memory:", "sqlite:one.db");
    std::fs::write(folder.path().join("sutler.yaml"), config).expect("a file");
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    provision(&broker, "i", "small");
    let copied = admin(folder.path(), &broker, &["backup", "copy.db"]);
    assert!(
        copied.stderr.starts_with("wrote copy.db"),
        "{}",
        copied.stderr
    );
    let copy = rusqlite::Connection::open(folder.path().join("copy.db")).expect("it opens");
    let whole: String = copy
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it is a database");
    assert_eq!(whole, "ok");
    let again = admin(folder.path(), &broker, &["backup", "copy.db"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    let exported = admin(folder.path(), &broker, &["export", "all.jsonl"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let imported = admin(
        folder.path(),
        &broker,
        &["import", "all.jsonl", "-o", "json"],
    );
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let done: Value = serde_json::from_str(&imported.stdout).expect("it is JSON");
    assert_eq!(done["documents"], 0, "all was there");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .filter_map(|it| it.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("backup-") || name.ends_with("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn help_of_administration_names_every_command() {
    let output = run_sutler(folder().path(), &["admin", "--help"]);
    let lines = output
        .stdout
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n");
    let text: String = lines.collect();
    assert_eq!(text, include_str!("cli_messages/admin-help.txt"));
}
