//! A key of an SQLite store is rotated while its broker runs and serves requests, by `sutler admin`.

use super::fixture::{Source, admin};
use super::store;
use crate::process::{ProgramOutput, folder};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const KEY_FILE: [&str; 2] = ["--key-file", "one.key"];

#[track_caller]
fn done(output: &ProgramOutput) -> &str {
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    &output.stdout
}

/// Changes the key file, and lets the broker read it.
fn change_keys(folder: &Path, source: &Source, arguments: &[&str]) {
    let all = [&["keys"][..], arguments, &KEY_FILE].concat();
    done(&store(folder, &all));
    source.reload_keys();
}

/// Documents, operations and log chunks of a key.
fn records(folder: &Path, source: &Source, key: &str) -> u64 {
    let listed = source.admin(folder, &["keys", "list", "-o", "json"]);
    let listed: Value = serde_json::from_str(done(&listed)).expect("JSON");
    let keys = listed["items"].as_array().expect("a list");
    let found = keys.iter().find(|it| it["id"] == key);
    let counts = found.expect("the key")["records"].as_object();
    let counts = counts.expect("counts").values();
    counts.map(|it| it.as_u64().expect("a number")).sum()
}

/// Ids of the keys in the file.
fn ids(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("one.key")).expect("a file");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split(':').next().map(str::to_owned))
        .collect()
}

#[test]
fn a_key_is_rotated_to_the_end_while_the_broker_of_a_file_runs() {
    let folder = folder();
    let path = folder.path();
    let source = Source::start_administered(path);
    let filled = source.fill(6);
    let mut accepted = filled.clone();
    let retire = || source.admin(path, &["keys", "retire", "k1", "--config", "sutler.yaml"]);
    change_keys(path, &source, &["make"]);
    change_keys(path, &source, &["use", "k2"]);
    assert!(records(path, &source, "k1") > 0);
    let refused = retire();
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("run `sutler admin rekey --wait`"),
        "{}",
        refused.stderr
    );
    assert_eq!(ids(path), ["k2", "k1"], "nothing was changed");

    let (stop, address) = (AtomicBool::new(false), source.address().to_owned());
    std::thread::scope(|scope| {
        let rekey = scope.spawn(|| {
            let ended = admin(&address, path, &["rekey", "--wait", "--reason", "yearly"]);
            stop.store(true, Ordering::SeqCst);
            ended
        });
        accepted.extend(source.load(&stop));
        let ended = rekey.join().expect("the command ends");
        let text = done(&ended);
        assert!(text.contains("nothing needs another key"), "{text}");
    });
    assert_eq!(records(path, &source, "k1"), 0);
    let again = source.admin(path, &["rekey", "--status", "-o", "json"]);
    let again: Value = serde_json::from_str(done(&again)).expect("JSON");
    assert_eq!(again["state"], "complete", "{again}");
    let retired = retire();
    assert!(
        done(&retired).contains("k1 is retired"),
        "{}",
        retired.stdout
    );
    assert_eq!(ids(path), ["k2"]);
    std::fs::remove_file(path.join("one.key.retired")).expect("the key is gone");
    source.reload_keys();

    for (id, operation) in &accepted {
        assert_eq!(source.until_ended(id, operation).1, "succeeded", "{id}");
    }
    source.stop();
    let source = Source::start_administered(path);
    for (id, operation) in &accepted {
        assert_eq!(source.poll(id, operation), (200, "succeeded".to_owned()));
    }
    for (id, _) in &filled {
        assert_eq!(source.fetch(id), 200, "{id}");
    }
    for binding in ["i1/service_bindings/b", "i2/service_bindings/b"] {
        assert_eq!(source.fetch(binding), 200, "{binding}");
    }
    assert!(source.bind("i0", "later").is_some());
    let audit = source.admin(path, &["audit", "list", "--verb", "rekey", "-o", "json"]);
    let audit: Value = serde_json::from_str(done(&audit)).expect("JSON");
    let outcomes = audit["items"].as_array().expect("a list").iter();
    let outcomes: Vec<&Value> = outcomes.map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["done", "started"]);
    source.stop();
    let all = [&["check", "--url", "sqlite:one.db"][..], &KEY_FILE].concat();
    done(&store(path, &all));
}

#[test]
fn commands_that_need_the_file_of_a_running_broker_name_those_that_ask_it() {
    let folder = folder();
    let path = folder.path();
    let source = Source::start_administered(path);
    change_keys(path, &source, &["make", "--current"]);
    for (arguments, online) in [
        (&["rekey"][..], "`sutler admin rekey --wait`"),
        (&["keys", "list", "--records"], "`sutler admin keys list`"),
        (&["keys", "retire", "k1"], "`sutler admin keys retire k1`"),
    ] {
        let refused = store(path, &[arguments, &["--config", "sutler.yaml"]].concat());
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains(online), "{}", refused.stderr);
    }
}

#[test]
fn a_key_is_not_retired_by_a_broker_of_other_keys() {
    let folder = folder();
    let path = folder.path();
    let source = Source::start_administered(path);
    for arguments in [&["make"][..], &["make"], &["use", "k2"]] {
        let all = [&["keys"][..], arguments, &["--key-file", "other.key"]].concat();
        done(&store(path, &all));
    }
    let retire = ["keys", "retire", "k1", "--key-file", "other.key"];
    let refused = source.admin(path, &retire);
    assert!(
        refused.stderr.contains("the broker seals with k1"),
        "{}",
        refused.stderr
    );
    change_keys(path, &source, &["make", "--current"]);
    let refused = source.admin(path, &retire);
    assert!(
        refused
            .stderr
            .contains("is it the broker of this key file?"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.code, Some(1));
}
