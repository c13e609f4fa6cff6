//! The context of a hook: steps, attempts, progress, state, time, cancellation.

mod deadlines;

use super::{AFTER_THE_LEASE, HookFixture, RestartableBroker};
use crate::fixture::request::Reply;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{Cx, Error, Policy, Provisioned, Result, Service};
use sutler_journal::conformance::{Call, Intercept};
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Actions of hooks, in order.
#[derive(Clone, Default)]
struct HookLog(Arc<Mutex<Vec<String>>>);

impl HookLog {
    fn record(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Behaviour of a provision after its first step.
#[derive(Clone)]
enum Behaviour {
    Ends,
    /// Every attempt up to this one fails with a transient error.
    TransientUntil(u32),
    /// Every attempt fails with a transient error after this time.
    TransientAfter(Duration),
    /// The same, and every attempt stores a memo of its own.
    TransientWithMemo(Duration),
    Fails,
    Panics,
    /// Reports progress this number of times, at this interval.
    Tells(u32, Duration),
    /// Waits until it is released, even if it is cancelled.
    Waits(Arc<Notify>),
    /// Stops when it is cancelled, and fails.
    Stops,
    Never,
}

/// A service whose provision follows a behaviour.
struct ScriptedProvision {
    behaviour: Behaviour,
    log: HookLog,
    policy: Policy,
}

impl ScriptedProvision {
    fn new(behaviour: Behaviour) -> (Self, HookLog) {
        let log = HookLog::default();
        let policy = Policy {
            attempts_max: 4,
            backoff: Duration::from_secs(2),
            ..Policy::default()
        };
        let service = Self {
            behaviour,
            log: log.clone(),
            policy,
        };
        (service, log)
    }

    fn as_before(log: &HookLog, behaviour: Behaviour) -> Self {
        let (service, _) = Self::new(behaviour);
        Self {
            log: log.clone(),
            ..service
        }
    }
}

impl Service for ScriptedProvision {
    type Params = serde_json::Map<String, serde_json::Value>;
    type State = String;

    async fn provision(&self, cx: &Cx, _: Self::Params) -> Result<Provisioned<String>> {
        let log = &self.log;
        log.record(format!("attempt {}", cx.attempt()));
        log.record(format!("claim {}", cx.fence()));
        let key = cx.idempotency_key("found");
        let found = || async {
            log.record(format!("found {key}"));
            Ok(cx.attempt())
        };
        let founded_in = cx.step("found", found).await?;
        cx.save_state(&format!("founded in {founded_in}")).await?;
        match &self.behaviour {
            Behaviour::Ends => {}
            Behaviour::TransientUntil(last) if cx.attempt() <= *last => {
                return Err(Error::transient("It rains.").because("clouds"));
            }
            Behaviour::TransientUntil(_) => {}
            Behaviour::TransientAfter(time) => {
                tokio::time::sleep(*time).await;
                return Err(Error::transient("It rains."));
            }
            Behaviour::TransientWithMemo(time) => {
                let name = format!("attempt {}", cx.attempt());
                cx.step(&name, || async { Ok(()) }).await?;
                tokio::time::sleep(*time).await;
                return Err(Error::transient("It rains."));
            }
            Behaviour::Fails => return Err(Error::failed("It fell over.")),
            Behaviour::Panics => panic!("a panic that a test wants"),
            Behaviour::Tells(times, apart) => {
                for n in 1..=*times {
                    cx.progress(format!("{n} of {times}")).await?;
                    tokio::time::sleep(*apart).await;
                }
            }
            Behaviour::Waits(gate) => gate.notified().await,
            Behaviour::Stops => {
                cx.cancellation().cancelled().await;
                log.record("stopped");
                return Err(Error::failed("Stopped."));
            }
            Behaviour::Never => std::future::pending().await,
        }
        let done = || async {
            log.record(format!("done {}", cx.idempotency_key("done")));
            Ok(())
        };
        cx.step("done", done).await?;
        Ok(Provisioned::new("whole".to_owned()))
    }

    async fn deprovision(&self, cx: &Cx, state: Option<String>) -> Result<()> {
        self.log.record(format!("raze {state:?}"));
        self.log
            .record(format!("key {}", cx.idempotency_key("found")));
        Ok(())
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        self.policy.clone()
    }
}

async fn provisioned(fixture: &HookFixture, id: &str) -> Reply {
    let request = fixture.provision(id).accepts_incomplete();
    let operation = request.send().await.operation();
    ended(fixture, id, &operation).await
}

/// Polls slowly until an operation has ended: the number of requests is limited.
async fn ended(fixture: &HookFixture, id: &str, operation: &str) -> Reply {
    for _ in 0..100_000 {
        let reply = fixture.poll(id).operation(operation).send().await.is(200);
        if reply.json["state"] != "in progress" {
            return reply;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not end");
}

fn begins(entries: &[String], word: &str) -> Vec<String> {
    entries
        .iter()
        .filter(|entry| entry.starts_with(word))
        .cloned()
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_step_is_done_once_over_all_attempts_and_attempts_back_off() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::TransientUntil(3));
    let fixture = brokers.open(service).await;
    let began = Instant::now();
    let reply = provisioned(&fixture, "i").await;
    assert_eq!(reply.json["state"], "succeeded");
    let entries = log.entries();
    let attempts = ["attempt 1", "attempt 2", "attempt 3", "attempt 4"];
    assert_eq!(begins(&entries, "attempt"), attempts);
    assert_eq!(begins(&entries, "found").len(), 1);
    // 2 + 4 + 8 seconds, and the time of the polls.
    let took = began.elapsed().as_secs();
    assert!((14..=16).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_fails_after_the_last_attempt_with_the_message_for_the_caller() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::TransientUntil(9));
    let fixture = brokers.open(service).await;
    let reply = provisioned(&fixture, "i").await;
    assert_eq!(reply.json["state"], "failed");
    assert_eq!(reply.description(), "It rains.");
    assert_eq!(begins(&log.entries(), "attempt").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_step_is_done_once_over_a_crash() {
    let brokers = RestartableBroker::new();
    let gate = Arc::new(Notify::new());
    let (service, log) = ScriptedProvision::new(Behaviour::Waits(gate));
    let fixture = brokers.open(service).await;
    let accepted = fixture.provision("i").accepts_incomplete().send().await;
    while begins(&log.entries(), "found").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.crash();
    let fixture = brokers
        .open(ScriptedProvision::as_before(&log, Behaviour::Ends))
        .await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let poll = fixture.poll("i").operation(&accepted.operation());
    assert_eq!(
        fixture.poll_until_done(poll).await.json["state"],
        "succeeded"
    );
    let entries = log.entries();
    assert_eq!(
        begins(&entries, "attempt"),
        ["attempt 1", "attempt 1"],
        "a takeover"
    );
    assert_eq!(begins(&entries, "claim"), ["claim 1", "claim 2"]);
    assert_eq!(begins(&entries, "found").len(), 1, "the memo was found");
    assert_eq!(begins(&entries, "done").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_is_done_once_over_an_orderly_restart() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::Never);
    let fixture = brokers
        .open_with(service, |broker| {
            broker.settings(|settings| settings.drain = Duration::from_secs(1))
        })
        .await;
    let accepted = fixture.provision("i").accepts_incomplete().send().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.running.shut_down().await;
    let fixture = brokers
        .open(ScriptedProvision::as_before(&log, Behaviour::Ends))
        .await;
    let poll = fixture.poll("i").operation(&accepted.operation());
    assert_eq!(
        fixture.poll_until_done(poll).await.json["state"],
        "succeeded"
    );
    assert_eq!(begins(&log.entries(), "found").len(), 1);
    assert_eq!(brokers.operations().await[0].takeovers, 0);
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_is_the_same_for_every_attempt_and_differs_by_step_and_operation() {
    let brokers = RestartableBroker::new();
    let log = HookLog::default();
    // The memo of the first step is refused twice, with the process killed in between.
    for _ in 0..2 {
        let fixture = brokers
            .open(ScriptedProvision::as_before(&log, Behaviour::Ends))
            .await;
        brokers.inject(|call| match call {
            Call::Commit(commit) if commit.writes().len() == 1 => Intercept::CrashBefore,
            _ => Intercept::Pass,
        });
        let _ = tokio::time::timeout(Duration::from_secs(2), fixture.provision("i").send()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        fixture.crash();
        brokers.stop_faults();
        tokio::time::sleep(AFTER_THE_LEASE).await;
    }
    let fixture = brokers
        .open(ScriptedProvision::as_before(&log, Behaviour::Ends))
        .await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    fixture.provision("i").send().await.is(200);
    fixture.deprovision("i").send().await.is(200);
    let entries = log.entries();
    let founds = begins(&entries, "found");
    assert!(
        founds.len() >= 2,
        "at least once until the memo is written: {entries:?}"
    );
    assert!(founds.iter().all(|it| *it == founds[0]), "{founds:?}");
    let key = |entry: &str| entry.split(' ').nth(1).unwrap().to_owned();
    let keys = [
        key(&founds[0]),
        key(&begins(&entries, "done")[0]),
        key(&begins(&entries, "key")[0]),
    ];
    assert!(keys[0] != keys[1] && keys[0] != keys[2], "{keys:?}");
    assert!(keys.iter().all(|key| key.len() == 32));
}

#[tokio::test(start_paused = true)]
async fn progress_is_written_at_most_twice_a_second_and_polls_see_it() {
    let brokers = RestartableBroker::new();
    let (service, _) = ScriptedProvision::new(Behaviour::Tells(1000, Duration::from_millis(5)));
    let fixture = brokers.open(service).await;
    let commits = Arc::new(Mutex::new(0));
    let counted = commits.clone();
    brokers.inject(move |call| {
        if matches!(call, Call::Commit(_)) {
            *counted.lock().unwrap() += 1;
        }
        Intercept::Pass
    });
    let operation = fixture
        .provision("i")
        .accepts_incomplete()
        .send()
        .await
        .operation();
    tokio::time::sleep(Duration::from_millis(2700)).await;
    let poll = || fixture.poll("i").operation(&operation);
    let polled = poll().send().await.is(200);
    let number: u32 = polled
        .description()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    // 540 were sent by then; the polled one is at most half a second old.
    assert!((440..=540).contains(&number), "{}", polled.text);
    fixture.poll_until_done(poll()).await;
    // Accept, two steps, one saved state, the end, and two texts a second for five seconds.
    let commits = *commits.lock().unwrap();
    assert!((12..=18).contains(&commits), "{commits} commits");
}

#[tokio::test(start_paused = true)]
async fn state_saved_by_a_failed_provision_is_passed_to_the_deprovision() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::Fails);
    let fixture = brokers.open(service).await;
    fixture.provision("i").send().await.is(500);
    fixture.deprovision("i").send().await.is(200);
    let removed = begins(&log.entries(), "raze");
    assert_eq!(removed, ["raze Some(\"founded in 1\")"]);
}

#[tokio::test(start_paused = true)]
async fn state_saved_by_a_crashed_provision_is_passed_to_the_deprovision() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::Never);
    let fixture = brokers.open(service).await;
    fixture
        .provision("i")
        .accepts_incomplete()
        .send()
        .await
        .is(202);
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.crash();
    let fixture = brokers
        .open(ScriptedProvision::as_before(&log, Behaviour::Stops))
        .await;
    let reply = fixture.finish("i", fixture.deprovision("i").accepts_incomplete());
    tokio::time::sleep(AFTER_THE_LEASE).await;
    assert_eq!(reply.await.json["state"], "succeeded");
    let entries = log.entries();
    assert_eq!(begins(&entries, "stopped").len(), 1, "it was told at once");
    assert_eq!(begins(&entries, "raze"), ["raze Some(\"founded in 1\")"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_create_is_cancelled_and_the_delete_waits_for_its_end() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::Stops);
    let fixture = brokers.open(service).await;
    let create = fixture
        .provision("i")
        .accepts_incomplete()
        .send()
        .await
        .operation();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let reply = fixture
        .finish("i", fixture.deprovision("i").accepts_incomplete())
        .await;
    assert_eq!(reply.json["state"], "succeeded");
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "the hint is not late"
    );
    let entries = log.entries();
    assert_eq!(entries[3..5], ["stopped", "raze Some(\"founded in 1\")"]);
    let polled = fixture.poll("i").operation(&create).send().await.is(200);
    assert_eq!(polled.json["state"], "failed", "halted, whatever it says");
}

#[tokio::test(start_paused = true)]
async fn a_result_after_the_delete_is_passed_to_the_delete_and_makes_no_instance() {
    let brokers = RestartableBroker::new();
    let gate = Arc::new(Notify::new());
    let (service, log) = ScriptedProvision::new(Behaviour::Waits(gate.clone()));
    let fixture = brokers.open(service).await;
    fixture
        .provision("i")
        .accepts_incomplete()
        .send()
        .await
        .is(202);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let deleted = fixture
        .deprovision("i")
        .accepts_incomplete()
        .send()
        .await
        .operation();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        begins(&log.entries(), "raze").is_empty(),
        "the create still runs"
    );
    fixture.fetch("i").send().await.is(404);
    gate.notify_one();
    let poll = fixture.poll("i").operation(&deleted);
    assert_eq!(
        fixture.poll_until_done(poll).await.json["state"],
        "succeeded"
    );
    assert_eq!(begins(&log.entries(), "raze"), ["raze Some(\"whole\")"]);
    fixture.fetch("i").send().await.is(404);
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_operation_and_the_broker_continues() {
    let brokers = RestartableBroker::new();
    let (service, log) = ScriptedProvision::new(Behaviour::Panics);
    let fixture = brokers.open(service).await;
    let reply = fixture.provision("i").send().await.is(500);
    assert!(!reply.text.contains("panic that"), "{}", reply.text);
    assert_eq!(
        begins(&log.entries(), "attempt").len(),
        1,
        "not tried again"
    );
    fixture.catalog().send().await.is(200);
    fixture.deprovision("i").send().await.is(200);
    let removed = begins(&log.entries(), "raze");
    assert_eq!(removed, ["raze Some(\"founded in 1\")"]);
}

#[tokio::test(start_paused = true)]
async fn a_broker_on_a_busy_store_reports_its_running_operations() {
    let brokers = RestartableBroker::new();
    let (service, _) = ScriptedProvision::new(Behaviour::Stops);
    let fixture = brokers.open(service).await;
    for id in ["a", "b", "c"] {
        let request = fixture.provision(id).parameters(json!({}));
        request.accepts_incomplete().send().await.is(202);
    }
    assert_eq!(fixture.running.operations_running(), 3);
    for id in ["a", "b", "c"] {
        let request = fixture.deprovision(id).accepts_incomplete();
        assert_eq!(fixture.finish(id, request).await.json["state"], "succeeded");
    }
    assert_eq!(fixture.running.operations_running(), 0);
}
