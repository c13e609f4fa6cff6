//! The HTTP protocol, byte for byte: every endpoint, every usual refusal, and malformed requests.
//!
//! `recorded_conversation/requests.txt` lists the requests, `recorded_conversation/replies.txt` the replies
//! of the real executable: status line, headers and body as they were sent. Only new ids, times and sealed
//! bytes are replaced (`normalise.rs`). After an intended change, record the replies again with
//! `SUTLER_TEST_WRITE=1` and read the difference before you commit it. The meaning of a reply is tested in
//! `sutler-broker`.

mod normalise;
mod script;

use crate::process::{Broker, sutler};
use normalise::Normaliser;
use script::{Exchange, Step};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const REQUESTS: &str = include_str!("recorded_conversation/requests.txt");
const REPLIES: &str = include_str!("recorded_conversation/replies.txt");
const CATALOG: &str = include_str!("recorded_conversation/catalog.yaml");

/// Time limit of one reply, or of an operation.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two polls of an operation.
const POLL_PAUSE: Duration = Duration::from_millis(20);

/// Users, administration and limits that are small enough to be exceeded; `STORE` is replaced.
const CONFIG: &str = "\
users: [{name: platform, password: s3cret}]
admin: {users: [{name: root, password: t0ps3cret}]}
platforms: [{prefix: /other, realm: other, auth: none}]
metrics: {public: true}
limits: {body: 2KiB, uri: 1KiB, header_lines: 20}
timeouts: {body: 1s}
store: {url: 'STORE'}
";

const BUNDLE: &str = "\
version: 1.0
name: recorded
id: recorded-id
description: Is recorded.
bindable: true
async: required
plans: [{name: small, id: small-id, description: A small one.}]
";

/// Starts the broker of a section of the script, in a new folder.
fn started(folder: &Path, section: &str) -> Broker {
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder, open).expect("permissions");
    let (store, more) = match section {
        "catalog file, memory" => ("memory:", "catalog: {file: catalog.yaml}\n"),
        "built-in demo, SQLite" => (
            "sqlite:recorded.db",
            "compat: {missing_version: 412, deleted_poll: gone}\n\
             instances: {force_delete_unknown: true}\nbindings: {force_delete_unknown: true}\n",
        ),
        "bundle folder, memory" => ("memory:", "bundles: {folder: recorded, work: work}\n"),
        other => panic!("the script names no known broker: {other}"),
    };
    fs::write(folder.join("catalog.yaml"), CATALOG).expect("a catalog");
    write_bundle(&folder.join("recorded"));
    let config = CONFIG.replace("STORE", store) + more;
    fs::write(folder.join("sutler.yaml"), config).expect("a configuration");
    Broker::of(sutler(folder).args(["broker", "--config", "sutler.yaml"]))
}

fn write_bundle(at: &Path) {
    fs::create_dir_all(at.join("actions")).expect("a folder");
    fs::write(at.join("bundle.yml"), BUNDLE).expect("a manifest");
    for action in ["provision", "bind", "unbind", "deprovision"] {
        let path = at.join("actions").join(action);
        fs::write(&path, "#!/bin/sh\n").expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
}

/// Sends bytes over a new connection, and reads until the broker closes it.
fn reply(address: &str, request: &[u8], half_close: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the broker listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // A broker that refuses early may close before it has read everything.
    let _ = stream.write_all(request);
    if half_close {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    bytes
}

/// Returns the reply to a step; a poll is repeated until its operation has ended.
fn reply_until_settled(address: &str, step: &Step, request: &[u8]) -> Vec<u8> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let bytes = reply(address, request, step.half_close);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let waits = step.while_has.iter().any(|it| text.contains(it.as_str()));
        if !waits {
            return bytes;
        }
        assert!(Instant::now() < until, "{}: still {text}", step.title);
        std::thread::sleep(POLL_PAUSE);
    }
}

fn record(section: &str, steps: &[Step]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = started(folder.path(), section);
    let mut normaliser = Normaliser::new(REQUESTS);
    let mut saved = Vec::new();
    let mut recorded = format!("=== {section}\n");
    for step in steps {
        let request = step.request(&saved);
        let bytes = reply_until_settled(broker.address(), step, &request);
        let exchange = Exchange::new(&bytes, step.names_only);
        if let Some((name, field)) = &step.save {
            let value = exchange.text_field(field);
            let value = value.unwrap_or_else(|| panic!("{}: no {field}", step.title));
            saved.push((name.clone(), value));
        }
        recorded.push_str(&format!("\n--- {}\n", step.title));
        recorded.push_str(&exchange.written(&mut normaliser));
    }
    recorded
}

/// Compares line by line, so that the message shows the difference.
fn first_difference(recorded: &str, kept: &str) -> Option<String> {
    let mut title = "";
    let mut kept = kept.lines();
    for (number, line) in recorded.lines().enumerate() {
        if line.starts_with("--- ") || line.starts_with("=== ") {
            title = line;
        }
        let expected = kept.next().unwrap_or("(nothing more)");
        if line != expected {
            let number = number + 1;
            return Some(format!(
                "replies.txt:{number}, {title}\nrecorded: {expected}\n     now: {line}"
            ));
        }
    }
    kept.next().map(|line| format!("{title}: missing: {line}"))
}

#[test]
fn every_reply_is_the_recorded_one_byte_for_byte() {
    let sections = script::parse(REQUESTS);
    let parts: Vec<String> = sections
        .iter()
        .map(|(section, steps)| record(section, steps))
        .collect();
    let recorded = parts.join("\n");
    if std::env::var_os("SUTLER_TEST_WRITE").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/recorded_conversation/replies.txt"
        );
        fs::write(path, recorded).expect("the replies are written");
        return;
    }
    if let Some(difference) = first_difference(&recorded, REPLIES) {
        panic!(
            "{difference}\nIf this is meant, run the test with SUTLER_TEST_WRITE=1 and read the difference."
        );
    }
}

#[test]
fn the_script_has_every_method_of_every_path_and_every_usual_status() {
    for wanted in [
        "200", "201", "202", "304", "400", "401", "404", "405", "408", "409", "410", "412", "413",
        "414", "422", "431", "500", "503",
    ] {
        let line = format!("< HTTP/1.1 {wanted} ");
        assert!(REPLIES.contains(&line), "no reply has status {wanted}");
    }
    for wanted in [
        "AsyncRequired",
        "ConcurrencyError",
        "MaintenanceInfoConflict",
    ] {
        assert!(REPLIES.contains(wanted), "no reply has the error {wanted}");
    }
}
