//! The store of a running broker is sealed with another key: who may do it, its progress, its end, and its audit.

use super::{OPERATOR, administered, command, get, on_each};
use crate::fixture::{FIRST_KEY, Fixture, first_keys, in_memory};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use sutler_broker::Broker;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{KeyRing, MemoryStore};
use tokio::sync::Notify;

/// Lets a broker seal with a fresh key `k2`; returns the line of the key.
fn use_new_key(kit: &Fixture) -> String {
    let line = KeyRing::fresh_line("k2").to_string();
    let ring = KeyRing::parse(&format!("{line}{FIRST_KEY}")).expect("a ring");
    kit.running.replace_keys(&ring).expect("keys are added");
    line
}

async fn state(kit: &Fixture) -> Value {
    get(kit, "rekey").send().await.is(200).json
}

/// Waits until no rekey runs, and returns the state of the last one.
async fn until_ended(kit: &Fixture) -> Value {
    let ended = async || state(kit).await["state"] != "running";
    kit.until("the rekey has ended", ended).await;
    state(kit).await
}

/// The records of a key.
async fn records_of(kit: &Fixture, key: &str) -> u64 {
    let keys = get(kit, "keys").send().await.is(200).json;
    let items = keys["items"].as_array().expect("a list").iter();
    let found = items.into_iter().find(|it| it["id"] == key);
    let records = found.expect("the key is listed")["records"].as_object();
    let counts = records.expect("counts").values();
    counts.map(|it| it.as_u64().expect("a number")).sum()
}

/// Outcomes of the audit entries about rekeys, the newest first.
async fn audited(kit: &Fixture) -> Vec<Value> {
    let reply = get(kit, "audit")
        .query("verb", "rekey")
        .send()
        .await
        .is(200);
    let items = reply.json["items"].as_array().cloned().expect("a list");
    items.iter().map(|it| it["outcome"].clone()).collect()
}

#[tokio::test]
async fn a_running_broker_seals_everything_with_its_current_key() {
    on_each(async |kit| {
        assert_eq!(state(kit).await["state"], "none");
        for instance in ["a", "b", "c"] {
            kit.has_instance(instance).await;
            kit.has_binding(instance, "b").await;
        }
        let line = use_new_key(kit);
        assert!(records_of(kit, "k1").await > 6);
        command(kit, "rekey").send().await.is(202);
        kit.has_instance("meanwhile").await;
        let ended = until_ended(kit).await;
        assert_eq!(ended["state"], "complete", "{ended}");
        assert_eq!(ended["key"], "k2", "{ended}");
        assert!(ended["resealed"]["documents"].as_u64() > Some(6), "{ended}");
        assert!(ended["expected"].as_u64() > Some(6), "{ended}");
        assert_eq!(records_of(kit, "k1").await, 0);
        assert_eq!(audited(kit).await, ["done", "started"]);
        for instance in ["a", "b", "c", "meanwhile"] {
            kit.fetch(instance).send().await.is(200);
        }
        kit.unbind("a", "b").send().await.is(200);
        let keys = get(kit, "keys").send().await.is(200);
        assert_eq!(
            (&keys.json["current"], &keys.json["opens"]),
            (&json!("k2"), &json!(true))
        );
        for line in [line.as_str(), FIRST_KEY] {
            let (_, secret) = line.trim().split_once(':').expect("a key");
            assert!(!keys.text.contains(secret), "no key is shown");
        }
    })
    .await;
}

#[tokio::test]
async fn only_operators_rekey_and_read_keys() {
    on_each(async |kit| {
        use_new_key(kit);
        for (method, path) in [("POST", "rekey"), ("GET", "rekey"), ("GET", "keys")] {
            let request = kit.request(method, format!("/admin/v1/{path}"));
            request.clone().send().await.is(401);
            request.without_header("Authorization").send().await.is(401);
        }
        assert_eq!(state(kit).await["state"], "none", "nothing was started");
        let wrong = kit.request("DELETE", "/admin/v1/rekey");
        let wrong = wrong.header("Authorization", OPERATOR).send().await.is(405);
        assert_eq!(wrong.header("Allow"), "POST");
    })
    .await;
}

/// Calls of the store that are held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeldCalls {
    /// The reads of a rekey.
    Scans,
    /// All commits; the first of a rekey is its audit entry.
    Commits,
}

/// A broker whose store holds calls until the test lets them pass.
struct HeldBroker {
    kit: Fixture,
    holds: Arc<AtomicBool>,
    go_on: Arc<Notify>,
}

impl HeldBroker {
    async fn start(held: HeldCalls) -> Self {
        let (holds, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let hook = {
            let (holds, go_on) = (holds.clone(), go_on.clone());
            move |call: &Call<'_>| {
                let is_held = match held {
                    HeldCalls::Scans => matches!(call, Call::Read("scan_documents")),
                    HeldCalls::Commits => matches!(call, Call::Commit(_)),
                };
                match is_held && holds.load(Ordering::SeqCst) {
                    true => Intercept::Hold(go_on.clone()),
                    false => Intercept::Pass,
                }
            }
        };
        let store = InterceptingStore::new(Arc::new(MemoryStore::new()), hook);
        let store = Arc::new(store);
        let set_up =
            |broker: Broker| administered(broker.shared_store(store.clone(), first_keys()));
        let kit = in_memory(set_up).await;
        kit.has_instance("i").await;
        use_new_key(&kit);
        holds.store(true, Ordering::SeqCst);
        Self { kit, holds, go_on }
    }

    fn release(&self) {
        self.holds.store(false, Ordering::SeqCst);
        self.go_on.notify_waiters();
    }
}

#[tokio::test]
async fn a_second_request_joins_the_run_and_requests_of_platforms_continue() {
    let held = HeldBroker::start(HeldCalls::Scans).await;
    let kit = &held.kit;
    command(kit, "rekey").send().await.is(202);
    let joined = command(kit, "rekey").send().await.is(202);
    assert_eq!(joined.json["state"], "running", "{}", joined.text);
    kit.has_instance("meanwhile").await;
    held.release();
    let ended = until_ended(kit).await;
    assert_eq!(ended["state"], "complete", "{ended}");
    assert_eq!(audited(kit).await, ["done", "nothing_to_do", "started"]);
    command(kit, "rekey").send().await.is(202);
    let again = until_ended(kit).await;
    assert_eq!(again["resealed"]["documents"], 0, "{again}");
}

#[tokio::test]
async fn a_rekey_continues_if_its_client_disconnects() {
    let held = HeldBroker::start(HeldCalls::Commits).await;
    let kit = &held.kit;
    let client = tokio::spawn(command(kit, "rekey").send());
    let runs = async || state(kit).await["state"] == "running";
    kit.until("the rekey runs", runs).await;
    // The client waits for the audit entry.
    client.abort();
    assert!(client.await.is_err(), "it was not answered");
    held.release();
    let ended = until_ended(kit).await;
    assert_eq!(ended["state"], "complete", "{ended}");
    assert_eq!(records_of(kit, "k1").await, 0);
}

#[tokio::test]
async fn a_rekey_ends_at_the_shut_down() {
    let held = HeldBroker::start(HeldCalls::Scans).await;
    let kit = &held.kit;
    command(kit, "rekey").send().await.is(202);
    kit.running.shut_down().await;
    let ended = until_ended(kit).await;
    assert_eq!(ended["state"], "interrupted", "{ended}");
    let description = ended["description"].as_str().unwrap_or_default();
    assert!(description.contains("run the rekey again"), "{description}");
}

#[tokio::test]
async fn a_rekey_that_the_store_breaks_off_is_continued_by_the_next_one() {
    let refuses = Arc::new(AtomicBool::new(false));
    let hook = {
        let refuses = refuses.clone();
        move |call: &Call<'_>| match call {
            Call::Read("scan_documents") if refuses.load(Ordering::SeqCst) => Intercept::Refuse,
            _ => Intercept::Pass,
        }
    };
    let store = Arc::new(InterceptingStore::new(Arc::new(MemoryStore::new()), hook));
    let set_up = |broker: Broker| administered(broker.shared_store(store.clone(), first_keys()));
    let kit = in_memory(set_up).await;
    kit.has_instance("i").await;
    use_new_key(&kit);
    refuses.store(true, Ordering::SeqCst);
    command(&kit, "rekey").send().await.is(202);
    let failed = until_ended(&kit).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    get(&kit, "keys").send().await.is(503);
    kit.fetch("i").send().await.is(200);
    refuses.store(false, Ordering::SeqCst);
    command(&kit, "rekey").send().await.is(202);
    let ended = until_ended(&kit).await;
    assert_eq!(ended["state"], "complete", "{ended}");
    assert_eq!(
        audited(&kit).await,
        ["done", "started", "refused", "started"]
    );
}
