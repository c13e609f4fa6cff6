//! Secrets do not leak into the store, logs or errors; and keys can be rotated.

use super::{AFTER_THE_LEASE, Log, RestartableBroker};
use crate::fixture::request::Reply;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use sutler_broker::{AuthorState, Bound, Cx, Error, Provisioned, Result, Service, Update, Updated};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{KeyRing, List, Store};

/// Texts that must not leak.
const CANARIES: [&str; 11] = [
    "canary-in-parameters",
    "canary-in-bind-parameters",
    "canary-in-update",
    "canary-in-context",
    "canary-in-credentials",
    "canary-in-state",
    "canary-in-binding-state",
    "canary-in-progress",
    "canary-in-identity",
    "canary-in-memo",
    "canary-in-password",
];

/// A service whose inputs and outputs are all secrets.
struct SecretService {
    fails: bool,
}

type Free = serde_json::Map<String, Value>;

impl SecretService {
    async fn work(&self, cx: &Cx) -> Result<()> {
        let memo = || async { Ok("canary-in-memo".to_owned()) };
        let _: String = cx.step("memo", memo).await?;
        cx.progress("canary-in-progress").await?;
        if self.fails {
            return Err(Error::failed("The vault is shut.").because("a cause without secrets"));
        }
        Ok(())
    }
}

impl Service for SecretService {
    type Params = Free;
    type State = String;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, _: Free) -> Result<Provisioned<String>> {
        cx.save_state(&"canary-in-state").await?;
        self.work(cx).await?;
        Ok(Provisioned::new("canary-in-state".to_owned()))
    }

    async fn update(&self, cx: &Cx, state: String, _: Update<Free>) -> Result<Updated<String>> {
        self.work(cx).await?;
        Ok(Provisioned::new(state))
    }

    async fn deprovision(&self, cx: &Cx, _: Option<String>) -> Result<()> {
        self.work(cx).await
    }

    async fn bind(&self, cx: &Cx, _: &String) -> Result<Bound> {
        self.work(cx).await?;
        let bound = Bound::credentials(json!({ "password": "canary-in-credentials" }));
        bound.state(&"canary-in-binding-state")
    }

    async fn unbind(&self, cx: &Cx, _: &String) -> Result<()> {
        self.work(cx).await
    }
}

/// All contents of the store, as bytes.
async fn dump(brokers: &RestartableBroker) -> Vec<u8> {
    let mut all = Vec::new();
    let everything = List::Prefix(Vec::new());
    let page = brokers
        .memory
        .list(&everything, None, 10_000)
        .await
        .unwrap();
    for document in page.documents {
        all.extend_from_slice(document.key.as_bytes());
        all.extend_from_slice(&document.body);
    }
    for row in brokers.operations().await {
        let operation = brokers.memory.operation(row.id).await.unwrap().unwrap();
        all.extend_from_slice(operation.row.lane.as_bytes());
        all.extend_from_slice(&operation.row.detail);
        all.extend_from_slice(&operation.request);
        all.extend_from_slice(&operation.progress);
    }
    all
}

/// The canaries in some bytes: plain, or in base64 at any offset of a longer text.
fn found_in(bytes: &[u8]) -> Vec<&'static str> {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let found = |canary: &&str| {
        let plain = canary.as_bytes();
        let coded = |shift: usize| {
            let text = STANDARD.encode([&b"  "[..shift], plain].concat());
            // Text before and after the canary does not affect these characters.
            text.as_bytes()[4..16].to_vec()
        };
        has(plain) || (0..3).any(|shift| has(&coded(shift)))
    };
    CANARIES.iter().copied().filter(found).collect()
}

#[test]
fn canaries_are_found_in_any_encoding() {
    for before in ["", "a", "ab", "abc"] {
        let encoded = STANDARD.encode(format!("{before}canary-in-identity and more"));
        assert!(found_in(encoded.as_bytes()).contains(&"canary-in-identity"));
    }
    assert_eq!(found_in(b"the canary-in-state"), ["canary-in-state"]);
    assert!(found_in(b"no bird at all").is_empty());
}

/// Runs a lifecycle that succeeds and one that fails. Returns the answers to refused and failed requests.
async fn run_with_secrets(brokers: &RestartableBroker) -> Vec<Reply> {
    let identity = STANDARD.encode(json!({ "user_id": "canary-in-identity" }).to_string());
    let identity = format!("cloudfoundry {identity}");
    let secret = json!({ "secret": "canary-in-parameters" });
    let context = json!({ "platform": "cloudfoundry", "secret": "canary-in-context" });
    let mut errors = Vec::new();
    for fails in [false, true] {
        let fixture = brokers.open(SecretService { fails }).await;
        let id = if fails { "bad" } else { "good" };
        let provision = fixture
            .provision(id)
            .parameters(secret.clone())
            .with("context", context.clone())
            .header("X-Broker-API-Originating-Identity", &identity);
        errors.push(provision.clone().send().await);
        let other = provision.parameters(json!({ "other": "canary-in-parameters" }));
        errors.push(other.send().await);
        let bound = json!({ "secret": "canary-in-bind-parameters" });
        let bind = fixture
            .bind("good", id)
            .parameters(bound)
            .with("context", context.clone());
        errors.push(bind.clone().send().await);
        let changed = json!({ "secret": "canary-in-update" });
        let update = fixture.update("good").parameters(changed.clone());
        errors.push(update.send().await);
        let bad = fixture
            .update("good")
            .with("parameters", "canary-in-update");
        errors.push(bad.send().await);
        let bad = fixture
            .provision("x")
            .bytes("{ \"parameters\": canary-in-parameters");
        errors.push(bad.send().await);
        let header = "cloudfoundry canary-in-identity!";
        let bad = fixture
            .fetch("good")
            .header("X-Broker-API-Originating-Identity", header);
        errors.push(bad.send().await);
        let password = STANDARD.encode("user:canary-in-password");
        let bad = fixture
            .catalog()
            .header("Authorization", &format!("Basic {password}"));
        errors.push(bad.send().await);
        errors.push(fixture.unbind("good", id).send().await);
        // The store is unavailable in between.
        brokers.inject(|call| match call {
            Call::Commit(_) => Intercept::Refuse,
            _ => Intercept::Pass,
        });
        let update = fixture
            .update("good")
            .parameters(json!({ "more": "canary-in-update" }));
        errors.push(update.send().await);
        brokers.stop_faults();
        fixture.running.shut_down().await;
    }
    errors.retain(|reply| reply.status >= 400);
    errors
}

/// The predecessor wrote whole requests, credentials and tokens to its log at debug level.
#[tokio::test(start_paused = true)]
async fn r40_no_secret_is_in_a_log_at_any_level_in_an_error_or_in_the_store() {
    let (log, _guard) = Log::capture();
    let brokers = RestartableBroker::new();
    let errors = run_with_secrets(&brokers).await;
    assert!(errors.len() >= 12, "only {} requests failed", errors.len());
    for reply in errors {
        let found = found_in(reply.text.as_bytes());
        assert!(found.is_empty(), "{found:?} in {}", reply.text);
    }
    let text = log.text();
    assert!(
        text.contains("a cause without secrets"),
        "the log was heard"
    );
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !found_in(line.as_bytes()).is_empty())
        .collect();
    assert!(lines.is_empty(), "{lines:#?}");
    let found = found_in(&dump(&brokers).await);
    assert!(found.is_empty(), "{found:?} in the store");
}

#[tokio::test(start_paused = true)]
async fn sealed_values_are_not_printed() {
    let state = AuthorState(json!("canary-in-state"));
    assert!(found_in(format!("{state:?}").as_bytes()).is_empty());
    let bound = Bound::credentials(json!({ "password": "canary-in-credentials" }));
    assert!(found_in(format!("{bound:?}").as_bytes()).is_empty());
}

/// A sealed text starts with the id of its key.
fn key_of(sealed: &[u8]) -> String {
    let len = usize::from(sealed[1]);
    String::from_utf8_lossy(&sealed[2..2 + len]).into_owned()
}

async fn keys_of(brokers: &RestartableBroker, kind: &str) -> Vec<String> {
    let everything = List::Prefix(Vec::new());
    let page = brokers
        .memory
        .list(&everything, None, 10_000)
        .await
        .unwrap();
    let of_kind = page.documents.iter().filter(|it| it.key.kind() == kind);
    of_kind.map(|document| key_of(&document.body)).collect()
}

fn put_in_front(brokers: &mut RestartableBroker, id: &str) {
    brokers.ring = format!("{}{}", *KeyRing::fresh_line(id), brokers.ring);
}

#[tokio::test(start_paused = true)]
async fn a_rotated_out_key_still_reads_and_its_records_are_resealed_when_used() {
    let mut brokers = RestartableBroker::new();
    let fixture = brokers.open(SecretService { fails: false }).await;
    fixture.provision("read").send().await.is(201);
    fixture.provision("changed").send().await.is(201);
    fixture.bind("read", "b").send().await.is(201);
    fixture.running.shut_down().await;
    put_in_front(&mut brokers, "second");
    let fixture = brokers.open(SecretService { fails: false }).await;
    assert_eq!(keys_of(&brokers, "instance").await, ["first", "first"]);
    fixture.fetch("read").send().await.is(200);
    assert_eq!(keys_of(&brokers, "instance").await, ["first", "second"]);
    let update = fixture.update("changed").parameters(json!({ "a": 1 }));
    update.send().await.is(200);
    assert_eq!(keys_of(&brokers, "instance").await, ["second", "second"]);
    let shown = fixture.fetch_binding("read", "b").send().await.is(200);
    assert_eq!(
        shown.json["credentials"]["password"],
        "canary-in-credentials"
    );
    assert_eq!(keys_of(&brokers, "binding").await, ["second"]);
    fixture.deprovision("read").send().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn an_operation_sealed_with_an_older_key_continues() {
    let mut brokers = RestartableBroker::new();
    let fixture = brokers.open(SecretService { fails: false }).await;
    let commits = Arc::new(Mutex::new(0));
    brokers.inject(move |call| {
        let mut commits = commits.lock().unwrap();
        *commits += usize::from(matches!(call, Call::Commit(_)));
        // Only the commit of the acceptance succeeds.
        if *commits > 1 {
            Intercept::CrashBefore
        } else {
            Intercept::Pass
        }
    });
    let accepted = fixture.provision("i").accepts_incomplete().send().await;
    fixture.crash();
    brokers.stop_faults();
    put_in_front(&mut brokers, "second");
    let fixture = brokers.open(SecretService { fails: false }).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let poll = fixture.poll("i").operation(&accepted.operation());
    assert_eq!(
        fixture.poll_until_done(poll).await.json["state"],
        "succeeded"
    );
}

/// Error of a broker that does not start with the fixture's key ring.
async fn refusal(brokers: &RestartableBroker) -> Option<String> {
    let opened = brokers
        .try_open(SecretService { fails: false }, |broker| broker)
        .await;
    opened.err().map(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_ring_is_refused_at_the_start_with_a_sentence() {
    let mut brokers = RestartableBroker::new();
    let right = brokers.ring.clone();
    brokers
        .open(SecretService { fails: false })
        .await
        .running
        .shut_down()
        .await;
    brokers.ring = KeyRing::fresh_line("other").to_string();
    let message = refusal(&brokers)
        .await
        .expect("another key does not open it");
    assert!(
        message.contains("\"first\"") && message.contains("add it back"),
        "{message}"
    );
    brokers.ring = KeyRing::fresh_line("first").to_string();
    let message = refusal(&brokers)
        .await
        .expect("a key of that name does not either");
    assert!(message.contains("does not open"), "{message}");
    brokers.ring = right;
    assert_eq!(refusal(&brokers).await, None);
}
