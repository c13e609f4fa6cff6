//! Keys of an SQLite store: the whole rotation as an operator does it, and its refusals.

use super::fixture::Source;
use super::{store, tidied};
use crate::process::{Broker, folder, sutler};
use serde_json::Value;
use std::path::Path;
use sutler_journal::{
    Commit, Key, KeyRing, Kind, OperationFilter, OperationList, Realm, SealContext, Store as _,
};
use sutler_store_sqlite::SqliteStore;

const STORE: [&str; 4] = ["--url", "sqlite:one.db", "--key-file", "one.key"];

/// Runs a command on the store, and returns what it prints with its exit code, as on a terminal.
fn shown(folder: &Path, arguments: &[&str]) -> String {
    let all = [arguments, &STORE].concat();
    let output = store(folder, &all);
    let code = output.code.expect("it was not killed");
    let text = without_counts(&tidied(&output, folder));
    format!("$ sutler store {}\n{text}[{code}]\n", arguments.join(" "))
}

/// The text with `N` in place of every number of records, which depends on tasks in the background.
fn without_counts(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let counted = |n: usize| {
            let next = words.get(n + 1).copied().unwrap_or_default();
            let next = next.trim_end_matches(',');
            ["document", "documents", "operation", "operations", "log"].contains(&next)
        };
        let words = words.iter().enumerate().map(|(n, word)| {
            let number = word.parse::<u64>().is_ok() && counted(n);
            if number { "N" } else { word }
        });
        words.collect::<Vec<_>>().join(" ") + "\n"
    });
    lines.collect()
}

/// Writes a log for an operation, as a run of a bundle does.
async fn write_log(folder: &Path) {
    let store = SqliteStore::open(folder.join("one.db")).await.unwrap();
    let keys = KeyRing::existing_file(folder.join("one.key")).unwrap();
    let list = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 1,
    };
    let id = store.operations(&list).await.unwrap()[0].id;
    for n in 0..3 {
        let text = keys.seal(SealContext::Log(id), format!("line {n}").as_bytes());
        store.append_log(id, text).await.unwrap();
    }
    store.close().await;
}

fn records(folder: &Path) -> Value {
    let all = [&["keys", "list", "--records", "-o", "json"][..], &STORE].concat();
    let output = store(folder, &all);
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[tokio::test]
async fn a_key_of_a_file_is_rotated_and_everything_opens_without_the_old_one() {
    let folder = folder();
    let path = folder.path();
    let source = Source::start(path, "sqlite:one.db");
    let mut accepted = source.fill(4);
    let mut transcript = shown(path, &["keys", "make"]);
    source.reload_keys();
    transcript += &shown(path, &["keys", "use", "k2"]);
    source.reload_keys();
    let operation = source.provision("newer", 0).expect("it is taken");
    accepted.push(("newer".to_owned(), operation));
    transcript += &shown(path, &["rekey"]);
    for (id, operation) in &accepted {
        assert_eq!(source.until_ended(id, operation).1, "succeeded");
    }
    source.stop();
    write_log(path).await;
    let before = records(path);
    assert_eq!(before["current"], "k2", "{before}");
    assert_eq!(before["keys"][1]["id"], "k1", "{before}");
    assert!(before["keys"][0]["records"]["documents"].as_u64() > Some(0));
    assert!(before["keys"][1]["records"]["documents"].as_u64() > Some(0));
    transcript += &shown(path, &["keys", "retire", "k2"]);
    transcript += &shown(path, &["keys", "retire", "k3"]);
    transcript += &shown(path, &["keys", "retire", "k1"]);
    transcript += &shown(path, &["rekey"]);
    let after = records(path);
    assert_eq!(after["keys"][1]["records"]["documents"], 0, "{after}");
    assert_eq!(after["keys"][0]["records"]["log_chunks"], 3, "{after}");
    transcript += &shown(path, &["rekey"]);
    transcript += &shown(path, &["keys", "retire", "k1"]);
    transcript += &shown(path, &["keys", "list"]);
    transcript += &shown(path, &["keys", "make", "--id", "k1"]);
    assert_eq!(
        transcript,
        include_str!("../cli_messages/store-key-rotation.txt")
    );
    let source = Source::start(path, "sqlite:one.db");
    for (id, operation) in &accepted {
        assert_eq!(source.poll(id, operation), (200, "succeeded".to_owned()));
        assert_eq!(source.fetch(id), 200);
    }
    assert!(source.bind("i0", "later").is_some());
    source.stop();
    let checked = store(path, &[&["check"][..], &STORE].concat());
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
}

#[test]
fn help_of_keys_and_rekey_has_every_exit_code() {
    let folder = folder();
    let mut text = String::new();
    for arguments in [
        &["keys"][..],
        &["keys", "make"],
        &["keys", "list"],
        &["keys", "use"],
        &["keys", "retire"],
        &["rekey"],
    ] {
        let output = store(folder.path(), &[arguments, &["--help"]].concat());
        text += &format!(
            "$ sutler store {} --help\n{}\n",
            arguments.join(" "),
            output.stdout
        );
    }
    assert_eq!(text, include_str!("../cli_messages/store-keys-help.txt"));
}

#[test]
fn a_key_file_is_made_once_and_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path();
    let made = store(
        path,
        &["keys", "make", "--key-file", "a.key", "--id", "first"],
    );
    assert_eq!(
        made.stdout,
        "a.key: did not exist; made with the key first, which seals\nIt opens nothing that was sealed before. Back it up, apart from the store.\n"
    );
    let second = store(path, &["keys", "make", "--key-file", "a.key", "--current"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let listed = store(path, &["keys", "list", "--key-file", "a.key", "-o", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed["current"], "k1", "{listed}");
    assert_eq!(listed["keys"][1]["id"], "first", "{listed}");
    let mode = std::fs::metadata(path.join("a.key")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let none = store(path, &["keys", "use", "k1", "--key-file", "none.key"]);
    assert_eq!(
        none.stderr,
        "sutler: the key file none.key does not exist; name it with --key-file\n"
    );
    let nameless = store(path, &["keys", "list"]);
    assert_eq!(
        nameless.stderr,
        "sutler: name the key file with --key-file, or use --config or an sqlite: URL\n"
    );
}

#[test]
fn a_reload_refuses_another_key_of_the_same_id() {
    let folder = folder();
    let path = folder.path();
    let mut command = sutler(path);
    command.args(["broker", "--no-auth", "--db", "one.db"]);
    let broker = Broker::of(&mut command);
    let other = KeyRing::fresh_line("k1");
    std::fs::write(path.join("one.key"), other.as_bytes()).expect("a file");
    broker.signal("HUP");
    let lines = broker.until_logged("keys of the store: not reloaded");
    let last = lines.last().expect("a line");
    assert!(last.contains("is not the one that is in use"), "{last}");
}

#[test]
fn a_reload_refuses_a_key_file_without_the_key_that_seals() {
    let folder = folder();
    let path = folder.path();
    let mut command = sutler(path);
    command.args(["broker", "--no-auth", "--db", "one.db"]);
    let broker = Broker::of(&mut command);
    let other = KeyRing::fresh_line("k2");
    std::fs::write(path.join("one.key"), other.as_bytes()).expect("a file");
    broker.signal("HUP");
    let lines = broker.until_logged("keys of the store: not reloaded");
    let last = lines.last().expect("a line");
    assert!(last.contains("which seals now"), "{last}");
}

/// Writes documents into a file: each one sealed with a ring, or as plain text.
async fn write_documents(path: &Path, rings: &[Option<&KeyRing>]) {
    let store = SqliteStore::open(path).await.expect("a store");
    let realm = Realm::new("r").expect("a realm");
    for (n, ring) in rings.iter().enumerate() {
        let key = Key::new(&realm, Kind::new("thing"), &[&n.to_string()]).expect("a key");
        let place = SealContext::Document(&key);
        let body = ring.map_or_else(|| "text".into(), |ring| ring.seal(place, b"text"));
        let commit = Commit::new().insert(key, Vec::new(), body);
        store.commit(&commit).await.expect("a commit");
    }
    store.close().await;
}

/// A key file `one.key` in which k2 seals, and k1 opens.
fn two_keys(path: &Path) -> KeyRing {
    for arguments in [&["make"][..], &["make"], &["use", "k2"]] {
        let all = [&["keys"][..], arguments, &["--key-file", "one.key"]].concat();
        let output = store(path, &all);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    KeyRing::existing_file(path.join("one.key")).expect("a key ring")
}

#[tokio::test]
async fn a_key_is_retired_only_by_the_store_of_its_file_and_kept_aside() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path();
    let ring = two_keys(path);
    let same_id = KeyRing::parse(&KeyRing::fresh_line("k2")).expect("a key ring");
    write_documents(&path.join("empty.db"), &[]).await;
    write_documents(&path.join("foreign.db"), &[Some(&same_id)]).await;
    write_documents(&path.join("damaged.db"), &[Some(&ring), None]).await;
    write_documents(&path.join("one.db"), &[Some(&ring)]).await;
    write_documents(&path.join("moved.db"), &[Some(&ring)]).await;
    let copy = ["copy", "--from", "sqlite:moved.db", "--to", "sqlite:to.db"];
    let moved = store(path, &[&copy[..], &["--finish"]].concat());
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
    let retire = |name: &str| {
        let url = format!("sqlite:{name}.db");
        let store_args = ["--url", &url, "--key-file", "one.key"];
        store(path, &[&["keys", "retire", "k1"][..], &store_args].concat())
    };
    let before = std::fs::read_to_string(path.join("one.key")).expect("a file");
    for (name, sentence) in [
        ("empty", "is it the store of this key file?"),
        ("foreign", "is it the store of this key file?"),
        ("moved", "this store was moved to sqlite:"),
        (
            "damaged",
            "whose key is not known: 1. Run `sutler store check`",
        ),
    ] {
        let refused = retire(name);
        assert_eq!(refused.code, Some(1), "{name}: {}", refused.stdout);
        assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
        let after = std::fs::read_to_string(path.join("one.key")).expect("a file");
        assert_eq!(before, after, "{name}");
    }
    let done = retire("one");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let text = tidied(&done, path);
    assert!(text.contains("The key is in one.key.retired now"), "{text}");
    let kept = path.join("one.key.retired");
    let mode = std::fs::metadata(&kept).expect("a file").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(kept).expect("a file");
    assert!(
        kept.starts_with("k1:") && before.contains(&kept),
        "the line"
    );
}

#[test]
fn a_store_that_a_configuration_names_is_never_created_by_key_commands() {
    let folder = folder();
    let path = folder.path();
    two_keys(path);
    let config = "auth: none\nstore: {url: 'sqlite:none.db', key_file: one.key}\n";
    std::fs::write(path.join("sutler.yaml"), config).expect("a file");
    for arguments in [
        &["keys", "retire", "k1"][..],
        &["keys", "list", "--records"],
        &["rekey"],
    ] {
        let refused = store(path, &[arguments, &["--config", "sutler.yaml"]].concat());
        assert_eq!(
            refused.stderr,
            "sutler: none.db does not exist; name the file of a store\n"
        );
        assert_eq!(refused.code, Some(1));
        assert!(!path.join("none.db").exists(), "{arguments:?}");
    }
}

#[test]
fn a_broker_never_makes_a_key_for_a_store_with_records() {
    let folder = folder();
    let path = folder.path();
    let source = Source::start(path, "sqlite:one.db");
    source.fill(1);
    source.stop();
    let keys = path.join("one.key");
    std::fs::rename(&keys, path.join("kept")).expect("it moves");
    let mut command = sutler(path);
    command.args([
        "broker",
        "--no-auth",
        "--db",
        "one.db",
        "--listen",
        "127.0.0.1:0",
    ]);
    let output = command.output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let sentence =
        "the key file one.key does not exist, and the store has records that only its keys open";
    assert!(text.contains(sentence), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!keys.exists(), "no key was made");
}
