//! A store that is away for a while, a lease that ran out unnoticed: requests and lanes survive it.

use super::{AFTER_THE_LEASE, RestartableBroker};
use crate::fixture::request::Ask;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_broker::prelude::JsonSchema;
use sutler_broker::{Cx, Error, Policy, Provisioned, Result, Service, Update, Updated};
use sutler_journal::conformance::{Call, Intercept};
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::time::Instant;

#[derive(serde::Deserialize, JsonSchema)]
struct Params {
    #[serde(default)]
    size: u32,
}

/// Runs for a while, and fails a given number of times.
#[derive(Clone, Default)]
struct Plain {
    takes: Duration,
    in_vain: u32,
    backoff: Duration,
    provisions: Arc<AtomicUsize>,
}

impl Service for Plain {
    type Params = Params;
    type State = u32;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Params) -> Result<Provisioned<u32>> {
        self.provisions.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.takes).await;
        if cx.attempt() <= self.in_vain && !cx.is_cancelled() {
            return Err(Error::transient("Not yet."));
        }
        Ok(Provisioned::new(params.size))
    }

    async fn update(&self, _: &Cx, _: u32, update: Update<Params>) -> Result<Updated<u32>> {
        tokio::time::sleep(self.takes).await;
        Ok(Provisioned::new(update.params.size))
    }

    async fn deprovision(&self, _: &Cx, _: Option<u32>) -> Result<()> {
        Ok(())
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy {
            backoff: self.backoff,
            ..Policy::default()
        }
    }
}

/// Repeats a request until it is answered otherwise than with 503.
async fn until_answered(ask: impl Fn() -> Ask) -> crate::fixture::request::Reply {
    for _ in 0..100 {
        let reply = ask().send().await;
        if reply.status != 503 {
            return reply;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it is never answered");
}

/// The commit arrived, every answer to it got lost: the operation is claimed by a worker that does
/// not know of it. It must not stay so for as long as that worker lives.
#[tokio::test(start_paused = true)]
async fn a_request_whose_commit_was_never_answered_is_carried_out_all_the_same() {
    let house = RestartableBroker::new();
    let service = Plain::default();
    let room = house.open(service.clone()).await;
    let mut commits = 0;
    house.tap(move |call| match call {
        Call::Commit(_) => {
            commits += 1;
            if commits == 1 {
                Intercept::LoseReply
            } else {
                Intercept::LoseRequest
            }
        }
        _ => Intercept::Pass,
    });
    let ask = || room.provision("i").accepts_incomplete();
    ask().send().await.is(503);
    house.mend();
    let reply = until_answered(ask).await;
    if reply.status == 202 {
        let operation = reply.operation();
        for _ in 0..1000 {
            let polled = room.poll("i").operation(&operation).send().await.is(200);
            if polled.json["state"] == "succeeded" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    ask().send().await.is(200);
    assert_eq!(service.provisions.load(Ordering::Relaxed), 1);
    assert_eq!(house.operations().await.len(), 1);
}

/// "Not written" for a repeat does not apply to the first attempt, whose answer was lost.
#[tokio::test(start_paused = true)]
async fn a_refused_repeat_does_not_settle_what_became_of_the_first_try() {
    let house = RestartableBroker::new();
    let room = house.open(Plain::default()).await;
    let mut fates = vec![Intercept::Refuse, Intercept::Refuse, Intercept::LoseReply];
    house.tap(move |call| match call {
        Call::Commit(_) => fates.pop().unwrap_or(Intercept::Pass),
        _ => Intercept::Pass,
    });
    room.provision("i").send().await.is(201);
    assert_eq!(house.operations().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_is_not_told_of_a_failure_because_a_look_failed() {
    let house = RestartableBroker::new();
    let takes = Duration::from_secs(2);
    let room = house
        .open(Plain {
            takes,
            ..Plain::default()
        })
        .await;
    room.provision("i").send().await.is(201);
    house.tap(|call| match call {
        Call::Read("poll") => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    let update = room.update("i").parameters(json!({ "size": 2 })).start();
    tokio::time::sleep(Duration::from_secs(4)).await;
    house.mend();
    update.await.unwrap().is(200);
    let shown = room.fetch("i").send().await.is(200);
    assert_eq!(shown.json["parameters"], json!({ "size": 2 }));
}

/// The process slept for longer than its lease and does not know it yet.
#[tokio::test(start_paused = true)]
async fn a_request_is_taken_though_the_lease_ran_out_unnoticed() {
    for incomplete in [true, false] {
        let house = RestartableBroker::new();
        let room = house.open(Plain::default()).await;
        house.tap(|call| match call {
            Call::Renew(_) => Intercept::CrashBefore,
            _ => Intercept::Pass,
        });
        tokio::time::sleep(AFTER_THE_LEASE).await;
        let ask = if incomplete {
            room.provision("i").accepts_incomplete()
        } else {
            room.provision("i")
        };
        let other = house.open(Plain::default());
        let (reply, _other) = tokio::join!(ask.send(), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            house.mend();
            other.await
        });
        reply.is(if incomplete { 202 } else { 201 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_does_not_wait_for_the_backoff_of_the_create() {
    let house = RestartableBroker::new();
    let service = Plain {
        in_vain: 5,
        backoff: Duration::from_secs(200),
        ..Plain::default()
    };
    let room = house.open(service.clone()).await;
    let create = room.provision("i").accepts_incomplete().send().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    let reply = room
        .finish("i", room.deprovision("i").accepts_incomplete())
        .await;
    assert_eq!(reply.json["state"], "succeeded", "{}", reply.text);
    assert!(began.elapsed() < Duration::from_secs(10));
    let polled = room.poll("i").operation(&create.operation()).send().await;
    assert_eq!(polled.json["state"], "failed");
    assert_eq!(service.provisions.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_answers_503_and_nothing_is_changed() {
    let house = RestartableBroker::new();
    let room = house.open(Plain::default()).await;
    room.provision("there").send().await.is(201);
    house.tap(|call| match call {
        Call::Read("now") => Intercept::Pass,
        _ => Intercept::Refuse,
    });
    for ask in room.ten_endpoints("there", "b").into_iter().skip(1) {
        let reply = ask.send().await.is(503);
        assert!(!reply.header("Retry-After").is_empty());
        assert!(reply.description().ends_with('.'), "{}", reply.text);
        assert!(!reply.text.contains("tap"), "the cause is for the log");
    }
    room.catalog().send().await.is(200);
    house.mend();
    assert_eq!(house.operations().await.len(), 1);
}
