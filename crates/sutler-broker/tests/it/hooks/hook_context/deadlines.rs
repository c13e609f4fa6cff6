//! Deadlines of hooks: one for all attempts from the first call.
//!
//! Not here: the time that a delete waits for others (`deadlines_and_purges.rs`).

use super::{Behaviour, HookFixture, ScriptedProvision, begins, ended, provisioned};
use crate::hooks::{AFTER_THE_LEASE, RestartableBroker};
use serde_json::{Map, Value};
use std::time::Duration;
use sutler_broker::{Cx, Error, Policy, Provisioned, Result, Service};
use sutler_journal::Fence;
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::time::Instant;

fn retried_within_a_minute() -> Policy {
    Policy {
        attempts_max: 1000,
        backoff: Duration::from_secs(10),
        ..Policy::default().within(Duration::from_secs(60))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_has_until_its_deadline_over_all_attempts() {
    let brokers = RestartableBroker::new();
    let (mut service, log) = ScriptedProvision::new(Behaviour::TransientUntil(9));
    service.policy = Policy {
        attempts_max: 100,
        backoff: Duration::from_secs(10),
        ..Policy::default().within(Duration::from_secs(60))
    };
    let fixture = brokers.open(service).await;
    let began = Instant::now();
    let reply = provisioned(&fixture, "retried").await;
    assert_eq!(reply.json["state"], "failed");
    // Attempts at 0, 10, 30 and 70 seconds; the last has no time left.
    let took = began.elapsed().as_secs();
    assert!((60..=75).contains(&took), "{took}");
    let attempts = begins(&log.entries(), "attempt").len();
    assert!((3..=4).contains(&attempts), "{attempts}");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_first_attempt_counts_for_the_deadline() {
    let brokers = RestartableBroker::new();
    let time = Duration::from_secs(45);
    let (mut service, log) = ScriptedProvision::new(Behaviour::TransientAfter(time));
    service.policy = retried_within_a_minute();
    let fixture = brokers.open(service).await;
    let began = Instant::now();
    let reply = provisioned(&fixture, "i").await;
    assert_eq!(reply.json["state"], "failed");
    let took = began.elapsed().as_secs();
    assert!((60..=61).contains(&took), "{took}");
    assert_eq!(begins(&log.entries(), "attempt").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn attempts_after_a_takeover_share_one_deadline() {
    let behaviour = Behaviour::TransientAfter(Duration::from_secs(45));
    assert_fails_within_a_minute_of_a_takeover(behaviour).await;
}

/// A memo sets the number of takeovers back.
#[tokio::test(start_paused = true)]
async fn attempts_that_store_memos_after_a_takeover_share_one_deadline() {
    let behaviour = Behaviour::TransientWithMemo(Duration::from_secs(45));
    assert_fails_within_a_minute_of_a_takeover(behaviour).await;
}

async fn assert_fails_within_a_minute_of_a_takeover(behaviour: Behaviour) {
    let brokers = RestartableBroker::new();
    let (mut service, log) = ScriptedProvision::new(Behaviour::Never);
    service.policy = retried_within_a_minute();
    let fixture = brokers.open(service).await;
    let request = fixture.provision("i").accepts_incomplete();
    let operation = request.send().await.operation();
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.crash();
    let mut service = ScriptedProvision::as_before(&log, behaviour);
    service.policy = retried_within_a_minute();
    let fixture = brokers.open(service).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let began = Instant::now();
    let reply = ended(&fixture, "i", &operation).await;
    assert_eq!(reply.json["state"], "failed");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(62), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_for_which_an_attempt_was_due_and_did_not_run_is_not_its_hooks() {
    let brokers = RestartableBroker::new();
    let (mut service, log) =
        ScriptedProvision::new(Behaviour::TransientAfter(Duration::from_secs(45)));
    service.policy = retried_within_a_minute();
    let fixture = brokers.open(service).await;
    let request = fixture.provision("i").accepts_incomplete();
    let operation = request.send().await.operation();
    // The first attempt has ended, and the next one is due in five seconds.
    tokio::time::sleep(Duration::from_secs(50)).await;
    fixture.crash();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let mut service = ScriptedProvision::as_before(&log, Behaviour::Ends);
    service.policy = retried_within_a_minute();
    let fixture = brokers.open(service).await;
    let reply = ended(&fixture, "i", &operation).await;
    assert_eq!(reply.json["state"], "succeeded", "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_attempt_that_a_restart_ended_counts_for_the_deadline() {
    let brokers = RestartableBroker::new();
    let (mut service, log) =
        ScriptedProvision::new(Behaviour::TransientAfter(Duration::from_secs(1)));
    service.policy = retried_within_a_minute();
    let mut fixture = brokers.open(service).await;
    let began = Instant::now();
    let request = fixture.provision("i").accepts_incomplete();
    let operation = request.send().await.operation();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The first restart is between two attempts, the second one ends the second attempt.
    for attempts in [1, 2] {
        assert_eq!(begins(&log.entries(), "attempt").len(), attempts);
        fixture.running.shut_down().await;
        let mut service = ScriptedProvision::as_before(&log, Behaviour::Never);
        service.policy = retried_within_a_minute();
        fixture = brokers.open(service).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    let reply = ended(&fixture, "i", &operation).await;
    assert_eq!(reply.json["state"], "failed", "{}", reply.text);
    let took = began.elapsed().as_secs();
    assert!((60..=70).contains(&took), "{took}");
}

/// Creates `short`, whose first attempts fail at once, and `long`.
struct ShortAndLong {
    /// Attempts of `short` that fail.
    fails: u32,
    short: Duration,
    long: Duration,
}

impl Service for ShortAndLong {
    type Params = Map<String, Value>;
    type State = ();

    async fn provision(&self, cx: &Cx, _: Self::Params) -> Result<Provisioned<()>> {
        let takes = match cx.instance_id().as_str() {
            "short" if cx.attempt() <= self.fails => return Err(Error::transient("Not yet.")),
            "short" => self.short,
            _ => self.long,
        };
        tokio::time::sleep(takes).await;
        Ok(Provisioned::new(()))
    }

    async fn deprovision(&self, _: &Cx, _: Option<()>) -> Result<()> {
        Ok(())
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy {
            backoff: Duration::from_secs(5),
            ..retried_within_a_minute()
        }
    }
}

/// Two suspects: while one waits for its next attempt, the other begins.
#[tokio::test(start_paused = true)]
async fn the_time_for_which_a_suspect_is_put_back_is_not_its_hooks() {
    let brokers = RestartableBroker::new();
    let never = Duration::from_secs(3600);
    let hangs = || ShortAndLong {
        fails: 2,
        short: never,
        long: never,
    };
    let fixture = brokers.open(hangs()).await;
    let create = async |fixture: &HookFixture, id| {
        let request = fixture.provision(id).accepts_incomplete();
        request.send().await.operation()
    };
    let long = create(&fixture, "long").await;
    fixture.crash();
    let fixture = brokers.open(hangs()).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let short = create(&fixture, "short").await;
    // Its third attempt, and so its third claim, has begun: it will be the first that starts.
    tokio::time::sleep(Duration::from_secs(16)).await;
    fixture.crash();
    let fixture = brokers.open(hangs()).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    fixture.crash();
    // From here on `short` has been taken over twice and `long` three times.
    let last = ShortAndLong {
        fails: 3,
        short: Duration::from_secs(1),
        long: Duration::from_secs(55),
    };
    let fixture = brokers.open(last).await;
    for (id, operation) in [("long", &long), ("short", &short)] {
        let reply = ended(&fixture, id, operation).await;
        assert_eq!(reply.json["state"], "succeeded", "{}", reply.text);
    }
    let operations = brokers.operations().await;
    let takeovers: Vec<u32> = operations.iter().map(|row| row.takeovers).collect();
    assert_eq!(takeovers, [2, 3]);
    // Four attempts and two takeovers.
    assert!(
        operations[0].fence > Fence(7),
        "it was put back again and again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_never_ends_fails_at_its_deadline_with_a_message() {
    let brokers = RestartableBroker::new();
    let (mut service, _) = ScriptedProvision::new(Behaviour::Never);
    service.policy = Policy::default().within(Duration::from_secs(90));
    let fixture = brokers.open(service).await;
    let began = Instant::now();
    let reply = provisioned(&fixture, "i").await;
    assert_eq!(reply.json["state"], "failed");
    assert!(reply.description().contains("90 seconds"), "{}", reply.text);
    assert_eq!(began.elapsed().as_secs(), 90);
}
