//! Export and import: everything is transferred and continues, nothing is overwritten, nothing is in plain text.

use super::{command, get};
use crate::fixture::scripted_service::Script;
use crate::fixture::{Fixture, catalog_of, test_catalog};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use sutler_broker::{Admin, Backup, Broker};
use sutler_journal::{KeyRing, MemoryStore, OperationId};
use sutler_osb::OperationKind::Provision;

/// A broker with an empty store and these keys, and its service.
async fn empty(keys: &str) -> (Fixture, Arc<Script>) {
    let script = Arc::new(Script::default());
    let catalog = catalog_of(test_catalog::catalog());
    let ids = catalog
        .services()
        .iter()
        .map(|it| it.id.as_str().to_owned());
    let ids: Vec<String> = ids.collect();
    let keys = KeyRing::parse(keys).expect("a key ring");
    let broker = Broker::new(catalog)
        .basic_auth("user", "s3cret")
        .admin(Admin::at("/admin").basic_auth("root", "t0ps3cret"))
        .store(MemoryStore::new(), keys);
    let broker = ids.iter().fold(broker, |broker, id| {
        broker.untyped_service(id, script.clone())
    });
    let running = broker.start().await.expect("the broker starts");
    (Fixture::around(running), script)
}

async fn exported(kit: &Fixture) -> String {
    get(kit, "export").send().await.is(200).text
}

#[tokio::test]
async fn exported_operations_continue_where_they_are_imported() {
    let keys = KeyRing::fresh_line("one");
    let (old, script) = empty(&keys).await;
    let secret = "c4n4ry-in-a-parameter";
    let made = old.provision("i").parameters(json!({ "password": secret }));
    made.send().await.is(201);
    old.has_binding("i", "b").await;
    old.has_instance("gone").await;
    old.deprovision("gone").send().await.is(200);
    let gate = script.hold_uncancellable(Provision);
    let accepted = old.provision("x").accepts_incomplete().send().await;
    gate.reached().await;
    command(&old, "drain").send().await.is(200);
    let file = exported(&old).await;
    assert!(!file.contains(secret), "an export is sealed");
    script.open_all();
    old.running.shut_down().await;

    let (new, script) = empty(&keys).await;
    let refused = command(&new, "import").bytes(file.clone());
    let refused = refused.send().await.is(409);
    assert!(refused.description().contains("had not ended"));
    new.fetch("i").send().await.is(404);
    new.poll("x").send().await.is(404);
    let import = || {
        command(&new, "import")
            .query("unfinished", "run")
            .bytes(file.clone())
    };
    let done = import().send().await.is(200);
    assert!(done.json["documents"].as_u64() >= Some(4), "{}", done.text);
    let fetched = new.fetch("i").send().await.is(200);
    assert_eq!(fetched.json["parameters"]["password"], secret);
    new.fetch_binding("i", "b").send().await.is(200);
    new.poll("gone").send().await.is(410);
    let poll = new.poll("x").operation(&accepted.operation());
    let ended = new.poll_until_done(poll).await;
    assert_eq!(ended.json["state"], "succeeded");
    assert_eq!(script.calls(Provision).len(), 1, "what ran goes on here");
    new.unbind("i", "b").send().await.is(200);
    new.deprovision("i").send().await.is(200);
    new.running.shut_down().await;
}

/// An older export does not count them in its first line.
#[tokio::test]
async fn an_unfinished_operation_is_refused_where_its_broker_may_run_it() {
    let keys = KeyRing::fresh_line("one");
    let (old, script) = empty(&keys).await;
    let gate = script.hold(Provision);
    old.provision("x").accepts_incomplete().send().await.is(202);
    gate.reached().await;
    let file = exported(&old).await;
    let (new, at_new) = empty(&keys).await;
    let uncounted = file.replacen(r#","unfinished":1"#, "", 1);
    assert_ne!(uncounted, file);
    for file in [&file, &uncounted] {
        let refused = command(&new, "import").bytes(file.clone()).send().await;
        assert!(refused.is(409).description().contains("had not ended"));
        new.poll("x").send().await.is(404);
    }
    gate.open();
    old.poll_until_done(old.poll("x")).await;
    let file = exported(&old).await;
    command(&new, "import").bytes(file).send().await.is(200);
    new.fetch("x").send().await.is(200);
    assert_eq!(at_new.calls(Provision).len(), 0, "it ran in the other");
    let unknown = command(&new, "import")
        .query("unfinished", "held")
        .send()
        .await;
    unknown.is(400);
}

#[tokio::test]
async fn an_import_is_repeated_without_harm_and_overwrites_nothing() {
    let keys = KeyRing::fresh_line("one");
    let (old, _) = empty(&keys).await;
    old.has_instance("a").await;
    old.has_instance("b").await;
    let file = exported(&old).await;
    let (new, _) = empty(&keys).await;
    let half: Vec<&str> = file.lines().take(file.lines().count() - 2).collect();
    let cut = command(&new, "import")
        .bytes(half.join("\n"))
        .send()
        .await
        .is(400);
    assert!(
        cut.description().contains("cut off"),
        "{}",
        cut.description()
    );
    let done = command(&new, "import")
        .bytes(file.clone())
        .send()
        .await
        .is(200);
    assert!(
        done.json["already_there"].as_u64() >= Some(1),
        "{}",
        done.text
    );
    new.fetch("b").send().await.is(200);
    let again = command(&new, "import")
        .bytes(file.clone())
        .send()
        .await
        .is(200);
    assert_eq!(again.json["documents"], 0);

    let (taken, _) = empty(&keys).await;
    taken.has_instance("a").await;
    let refused = command(&taken, "import")
        .bytes(file.clone())
        .send()
        .await
        .is(409);
    assert!(refused.description().contains("nothing is overwritten"));
    let (stranger, _) = empty(&KeyRing::fresh_line("other")).await;
    let refused = command(&stranger, "import")
        .bytes(file)
        .send()
        .await
        .is(400);
    assert!(
        refused.description().contains("key ring"),
        "{}",
        refused.description()
    );
    let nonsense = command(&stranger, "import")
        .bytes("{}\n")
        .send()
        .await
        .is(400);
    assert!(nonsense.description().contains("Line 1"));
}

/// Outcomes and messages of the imports in the audit trail, the newest first.
async fn audited(kit: &Fixture) -> Vec<(String, String)> {
    let reply = get(kit, "audit").send().await.is(200);
    let items = reply.json["items"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let imports = items.iter().filter(|it| it["verb"] == "import");
    imports
        .map(|it| (text(&it["outcome"]), text(&it["message"])))
        .collect()
}

#[tokio::test]
async fn an_import_is_audited_before_its_first_commit_and_at_its_end_also_if_it_fails() {
    let keys = KeyRing::fresh_line("one");
    let (old, _) = empty(&keys).await;
    old.has_instance("a").await;
    old.has_instance("b").await;
    let file = exported(&old).await;
    let (new, _) = empty(&keys).await;
    let half: Vec<&str> = file.lines().take(file.lines().count() - 2).collect();
    let cut = command(&new, "import").bytes(half.join("\n"));
    cut.send().await.is(400);
    let entries = audited(&new).await;
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert_eq!(entries[1], ("started".to_owned(), String::new()));
    assert_eq!(entries[0].0, "refused");
    assert!(entries[0].1.contains("were added before"), "{entries:?}");
    let whole = command(&new, "import").query("unfinished", "run");
    whole.bytes(file).send().await.is(200);
    let entries = audited(&new).await;
    assert_eq!(entries.len(), 4, "{entries:?}");
    let begun = ("started".to_owned(), "unfinished=run".to_owned());
    assert_eq!(entries[1], begun);
    assert_eq!(entries[0].0, "done");
    assert!(entries[0].1.ends_with("documents added"), "{entries:?}");
}

#[tokio::test]
async fn a_backup_of_a_store_that_cannot_be_copied_is_refused() {
    let (kit, _) = empty(&KeyRing::fresh_line("one")).await;
    let refused = command(&kit, "backup").send().await.is(409);
    assert!(refused.description().contains("export"));
}

/// A store that cannot be copied now.
struct Uncopyable;

#[async_trait]
impl Backup for Uncopyable {
    async fn copy_to(&self, _: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err("not now".into())
    }
}

#[tokio::test]
async fn incomplete_backups_of_a_crash_are_removed_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let partial = || format!("backup-{}.partial", OperationId::fresh());
    let (left, busy, link, linked) = (partial(), partial(), partial(), "theirs".to_owned());
    let journal = format!("{left}-journal");
    let named = "backup-of-monday.partial".to_owned();
    let whole = format!("backup-{}", OperationId::fresh());
    let path = |name: &String| folder.path().join(name);
    for name in [&left, &busy, &linked, &journal, &named, &whole] {
        std::fs::write(path(name), "pages").expect("a file");
    }
    std::os::unix::fs::symlink(path(&linked), path(&link)).expect("a link");
    let in_use = std::fs::File::open(path(&busy)).expect("a file");
    in_use.lock().expect("a lock");
    let kit =
        crate::fixture::in_memory(|broker| broker.backup(Arc::new(Uncopyable), folder.path()));
    kit.await.running.shut_down().await;
    for gone in [&left, &journal] {
        assert!(!path(gone).exists(), "{gone}");
    }
    for stays in [&busy, &link, &linked, &named, &whole] {
        assert!(path(stays).exists(), "{stays}");
    }
}
