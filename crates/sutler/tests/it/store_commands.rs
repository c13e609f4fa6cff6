//! `sutler store`: counts, checks and copies stores as an operator does. Copies between servers are in
//! `store_commands/copies_between_servers.rs`, keys in `store_commands/key_rotation.rs` and
//! `store_commands/online_key_rotation.rs`.

mod copies_between_servers;
mod fixture;
mod key_rotation;
mod online_key_rotation;

use crate::process::{ProgramOutput, folder, run_sutler, sutler};
use fixture::Source;
use std::path::Path;
use sutler_journal::{Commit, Key, Kind, OperationFilter, OperationList, Realm, Store as _, Write};
use sutler_store_sqlite::SqliteStore;

/// The output without the name of the folder.
fn tidied(output: &ProgramOutput, folder: &Path) -> String {
    let folder = format!("{}/", folder.display());
    format!("{}{}", output.stdout, output.stderr).replace(&folder, "")
}

fn store(folder: &Path, arguments: &[&str]) -> ProgramOutput {
    let all: Vec<&str> = ["store"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    run_sutler(folder, &all)
}

#[test]
fn help_of_the_copy_warns_of_passwords_and_lists_every_exit_code() {
    let output = store(folder().path(), &["copy", "--help"]);
    assert_eq!(
        output.stdout,
        include_str!("cli_messages/store-copy-help.txt")
    );
}

#[test]
fn a_layout_is_created_once() {
    let folder = folder();
    let migrate = || {
        let output = store(folder.path(), &["migrate", "--url", "sqlite:one.db"]);
        assert_eq!(output.code, Some(0));
        tidied(&output, folder.path())
    };
    assert_eq!(migrate(), "sqlite:one.db: was empty, made with layout 1\n");
    let nothing = "sqlite:one.db: has layout 1, the newest one; nothing to do\n";
    assert_eq!(migrate(), nothing);
}

#[test]
fn a_layout_of_a_newer_program_is_refused_with_a_description() {
    let folder = folder();
    store(folder.path(), &["migrate", "--url", "sqlite:one.db"]);
    let db = rusqlite::Connection::open(folder.path().join("one.db")).unwrap();
    db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(db);
    let output = store(folder.path(), &["migrate", "--url", "sqlite:one.db"]);
    assert_eq!(
        output.stderr,
        "sutler: one.db has layout 99, this program knows layouts up to 1: use the newer program, or a backup made before it was upgraded\n"
    );
    assert_eq!(output.code, Some(1));
}

#[test]
fn refusals_suggest_a_fix() {
    let folder = folder();
    for (arguments, code, sentence) in [
        (
            &["stats"][..],
            1,
            "sutler: name the store: with --url, SUTLER_STORE__URL or --config\n",
        ),
        (
            &["check", "--url", "sqlite:none.db"],
            2,
            "sutler: none.db does not exist; name the file of a store\n",
        ),
        (
            &["copy", "--from", "sqlite:none.db", "--to", "sqlite:two.db"],
            1,
            "sutler: none.db does not exist; name the file of a store\n",
        ),
        (
            &["migrate", "--url", "memory:"],
            1,
            "sutler: memory: ends with its process; name a persistent store\n",
        ),
    ] {
        let output = store(folder.path(), arguments);
        assert_eq!(
            (output.stderr.as_str(), output.code),
            (sentence, Some(code))
        );
    }
    let wrong = store(folder.path(), &["stats", "--url", "redis://me:canary@host"]);
    assert_eq!(wrong.code, Some(2), "wrong usage");
    store(folder.path(), &["migrate", "--url", "sqlite:one.db"]);
    let same = ["copy", "--from", "sqlite:one.db", "--to", "sqlite:./one.db"];
    let output = store(folder.path(), &same);
    assert!(output.stderr.contains("in use"), "{}", output.stderr);
}

#[test]
fn contents_of_a_store_are_counted() {
    let folder = folder();
    let source = Source::start(folder.path(), "sqlite:one.db");
    source.fill(7);
    source.kill();
    let output = store(
        folder.path(),
        &["stats", "--url", "sqlite:one.db", "-o", "json"],
    );
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let count = |kind: &str| {
        let all = report["documents"].as_array().unwrap().iter();
        let mut of_kind = all.filter(|it| it["kind"] == kind);
        of_kind.next().map(|it| it["documents"].clone())
    };
    assert_eq!(count("instance"), Some(8.into()), "{report:#}");
    assert_eq!(count("binding"), Some(3.into()), "{report:#}");
    assert_eq!(report["operations"]["running"], 1, "{report:#}");
    assert_eq!(report["running_without_lease"], 1, "{report:#}");
    assert_eq!(report["leases"], 0, "{report:#}");
    assert!(report["bytes"].as_u64() > Some(10_000), "{report:#}");
    let table = store(folder.path(), &["stats", "--url", "sqlite:one.db"]).stdout;
    let lines: Vec<&str> = table.lines().collect();
    let row = ["broker", "instance", "8"];
    let found = lines.iter().any(|line| line.split_whitespace().eq(row));
    assert!(found, "{table}");
    assert!(table.contains("oldest unfinished"), "{table}");
}

#[tokio::test]
async fn only_inconsistencies_are_reported() {
    let folder = folder();
    let source = Source::start(folder.path(), "sqlite:one.db");
    source.fill(3);
    source.kill();
    let check = ["check", "--url", "sqlite:one.db"];
    let output = store(folder.path(), &check);
    let text = tidied(&output, folder.path());
    let notice = "notice: 1 operations run under leases that ran out: a broker takes them over\n";
    assert!(text.contains(notice), "{text}");
    assert!(text.ends_with("everything holds\n"), "{text}");
    assert_eq!(output.code, Some(0));
    break_it(&folder.path().join("one.db")).await;
    let output = store(folder.path(), &check);
    let text = tidied(&output, folder.path());
    assert_eq!(output.code, Some(1), "{text}");
    for part in [
        "fault: instance i0 of realm broker is not listed under what it is: ",
        "fault: instance i1 of realm broker cannot be opened: it was changed, or another key",
        " has not ended, and instance i2 of realm broker does not point to it: abandon it\n",
        "faults\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::remove_file(folder.path().join("one.key")).unwrap();
    let output = store(folder.path(), &check);
    let sentence = "sutler: the key file one.key does not exist; name it with --key-file\n";
    assert_eq!((output.stderr.as_str(), output.code), (sentence, Some(2)));
    let sealed = ["check", "--url", "sqlite:one.db", "--sealed", "-o", "json"];
    let output = store(folder.path(), &sealed);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["holds"], true, "{report:#}");
    assert_eq!(report["findings"][0]["finding"], "lease_over", "{report:#}");
}

/// Source and target hold the same unfinished operation: brokers on both would execute it twice.
#[test]
fn a_broker_refuses_the_source_of_a_finished_copy_until_it_is_reopened() {
    let folder = folder();
    let source = Source::start(folder.path(), "sqlite:one.db");
    source.fill(1);
    source.kill();
    let copy = ["copy", "--from", "sqlite:one.db", "--to", "sqlite:two.db"];
    let output = store(folder.path(), &copy);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let broker = ["broker", "--no-auth", "--key-file", "one.key", "--listen"];
    let broker: Vec<&str> = broker.into_iter().chain(["127.0.0.1:0"]).collect();
    let refused = sutler(folder.path())
        .args(&broker)
        .env("SUTLER_STORE__URL", "sqlite:one.db")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let two = folder.path().join("two.db");
    let sentence = format!(
        "this store was moved to sqlite:{}: use that one",
        two.display()
    );
    assert!(text.contains(&sentence), "{text}");
    assert_eq!(refused.status.code(), Some(1), "{text}");
    let output = store(folder.path(), &["check", "--url", "sqlite:one.db"]);
    let text = tidied(&output, folder.path());
    let notice = "notice: this store was moved to sqlite:two.db: brokers refuse it";
    assert!(text.contains(notice), "{text}");
    let reopen = || {
        let output = store(folder.path(), &["reopen", "--url", "sqlite:one.db"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        tidied(&output, folder.path())
    };
    assert_eq!(
        reopen(),
        "sqlite:one.db can be used again.\nStart no broker on sqlite:two.db, which holds a copy: it would run the same operations.\n"
    );
    assert_eq!(reopen(), "sqlite:one.db: was not moved; nothing to do\n");
    Source::start(folder.path(), "sqlite:one.db").stop();
}

/// Makes three instances inconsistent.
async fn break_it(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    let realm = Realm::new("broker").unwrap();
    let key = |id: &str| Key::new(&realm, Kind::new("instance"), &[id]).unwrap();
    let body = async |id: &str| store.get(&key(id)).await.unwrap().unwrap().body;
    let mut broken = body("i1").await.to_vec();
    *broken.last_mut().unwrap() ^= 1;
    let list = OperationList {
        filter: OperationFilter::Lane(key("i2")),
        before: None,
        limit: 1,
    };
    let of_two = store.operations(&list).await.unwrap();
    let mut another = store.operation(of_two[0].id).await.unwrap().unwrap();
    another.row.id = sutler_journal::OperationId::fresh();
    another.row.state = sutler_journal::State::Waiting;
    another.row.finished = None;
    let put = |key: Key, body| Write::Put {
        key,
        terms: Vec::new(),
        body,
    };
    let commit = Commit::new()
        .write(put(key("i0"), body("i0").await))
        .write(put(key("i1"), broken.into()))
        .write(Write::Import(Box::new(another)));
    store.commit(&commit).await.unwrap();
    store.close().await;
}
