//! An unavailable store and an unnoticed lease expiry: requests and lanes survive both.

use super::{AFTER_THE_LEASE, RestartableBroker};
use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::LARGE;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_broker::prelude::JsonSchema;
use sutler_broker::{
    Bound, BuildError, Cx, Error, Policy, Provisioned, Result, Service, Update, Updated,
};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::copy::{CopyNames, StoreCopy};
use sutler_journal::{MemoryStore, Outcome, State, Store};
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(serde::Deserialize, JsonSchema)]
struct Params {
    #[serde(default)]
    size: u32,
}

/// Runs for some time, and fails a chosen number of times.
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

    async fn bind(&self, _: &Cx, _: &u32) -> Result<Bound> {
        Ok(Bound::credentials(json!({})))
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy {
            backoff: self.backoff,
            ..Policy::default()
        }
    }
}

/// Repeats a request until the answer is not 503.
async fn until_answered(request: impl Fn() -> RequestBuilder) -> crate::fixture::request::Reply {
    for _ in 0..100 {
        let reply = request().send().await;
        if reply.status != 503 {
            return reply;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it is never answered");
}

/// The commit arrived, but every answer to it was lost: the operation is claimed by a worker that does
/// not know it. The claim must not last for the life of that worker.
#[tokio::test(start_paused = true)]
async fn a_request_whose_commit_was_never_answered_is_still_carried_out() {
    let brokers = RestartableBroker::new();
    let service = Plain::default();
    let fixture = brokers.open(service.clone()).await;
    let mut commits = 0;
    brokers.inject(move |call| match call {
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
    let request = || fixture.provision("i").accepts_incomplete();
    request().send().await.is(503);
    brokers.stop_faults();
    let reply = until_answered(request).await;
    if reply.status == 202 {
        let operation = reply.operation();
        for _ in 0..1000 {
            let polled = fixture.poll("i").operation(&operation).send().await.is(200);
            if polled.json["state"] == "succeeded" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    request().send().await.is(200);
    assert_eq!(service.provisions.load(Ordering::Relaxed), 1);
    assert_eq!(brokers.operations().await.len(), 1);
}

/// "Not written" for a repeat does not apply to the first attempt, whose answer was lost.
#[tokio::test(start_paused = true)]
async fn a_refused_repeat_does_not_decide_the_outcome_of_the_first_attempt() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Plain::default()).await;
    let mut fates = vec![Intercept::Refuse, Intercept::Refuse, Intercept::LoseReply];
    brokers.inject(move |call| match call {
        Call::Commit(_) => fates.pop().unwrap_or(Intercept::Pass),
        _ => Intercept::Pass,
    });
    fixture.provision("i").send().await.is(201);
    assert_eq!(brokers.operations().await.len(), 1);
}

/// More reads of documents than there are before a hook.
const READS: usize = 8;

impl RestartableBroker {
    /// Refuses one read of a document after some commits.
    fn refuse_read(&self, nth: usize, mut commits: usize) {
        let mut reads = 0;
        self.inject(move |call| {
            commits -= usize::from(commits > 0 && matches!(call, Call::Commit(_)));
            reads += usize::from(commits == 0 && matches!(call, Call::Read("get")));
            match call {
                Call::Read("get") if reads == nth => {
                    reads += 1;
                    Intercept::Refuse
                }
                _ => Intercept::Pass,
            }
        });
    }

    /// Waits until the newest operation has ended.
    async fn until_newest_ended(&self) -> State {
        for _ in 0..1000 {
            let newest = self.operations().await.swap_remove(0);
            if newest.finished.is_some() {
                return newest.state;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("it does not end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_before_a_rotation_does_not_end_it() {
    for nth in 1..=READS {
        let brokers = RestartableBroker::new();
        let fixture = brokers.open(Plain::default()).await;
        fixture.provision("i").send().await.is(201);
        fixture.bind("i", "old").send().await.is(201);
        brokers.refuse_read(nth, 1);
        let rotation = fixture.bind("i", "new").accepts_incomplete();
        let rotation = rotation.with("predecessor_binding_id", "old");
        rotation.send().await.is(202);
        let end = brokers.until_newest_ended().await;
        assert_eq!(end, State::Done(Outcome::Succeeded), "read {nth}");
    }
}

/// A process that takes it over knows neither plan yet.
#[tokio::test(start_paused = true)]
async fn a_read_that_fails_before_an_update_does_not_end_it() {
    for nth in 1..=READS {
        let brokers = RestartableBroker::new();
        let fixture = brokers.open(Plain::default()).await;
        fixture.provision("i").send().await.is(201);
        fixture.running.shut_down().await;
        let slow = Plain {
            takes: Duration::from_secs(3600),
            ..Plain::default()
        };
        let fixture = brokers.open(slow).await;
        let update = fixture.update("i").only_plan(LARGE).accepts_incomplete();
        update.send().await.is(202);
        fixture.crash();
        let _fixture = brokers.open(Plain::default()).await;
        // Until shortly before the takeover.
        tokio::time::sleep(AFTER_THE_LEASE - Duration::from_secs(2)).await;
        brokers.refuse_read(nth, 0);
        let end = brokers.until_newest_ended().await;
        assert_eq!(end, State::Done(Outcome::Succeeded), "read {nth}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_of_the_store_does_not_fail_a_waiting_caller() {
    let brokers = RestartableBroker::new();
    let takes = Duration::from_secs(2);
    let fixture = brokers
        .open(Plain {
            takes,
            ..Plain::default()
        })
        .await;
    fixture.provision("i").send().await.is(201);
    brokers.inject(|call| match call {
        Call::Read("poll") => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    let update = fixture.update("i").parameters(json!({ "size": 2 })).start();
    tokio::time::sleep(Duration::from_secs(4)).await;
    brokers.stop_faults();
    update.await.unwrap().is(200);
    let shown = fixture.fetch("i").send().await.is(200);
    assert_eq!(shown.json["parameters"], json!({ "size": 2 }));
}

/// The process slept for longer than its lease and has not noticed.
#[tokio::test(start_paused = true)]
async fn a_request_is_accepted_after_an_unnoticed_lease_expiry() {
    for incomplete in [true, false] {
        let brokers = RestartableBroker::new();
        let fixture = brokers.open(Plain::default()).await;
        brokers.inject(|call| match call {
            Call::Renew(_) => Intercept::CrashBefore,
            _ => Intercept::Pass,
        });
        tokio::time::sleep(AFTER_THE_LEASE).await;
        let request = if incomplete {
            fixture.provision("i").accepts_incomplete()
        } else {
            fixture.provision("i")
        };
        let other = brokers.open(Plain::default());
        let (reply, _other) = tokio::join!(request.send(), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            brokers.stop_faults();
            other.await
        });
        reply.is(if incomplete { 202 } else { 201 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_does_not_wait_for_the_backoff_of_the_create() {
    let brokers = RestartableBroker::new();
    let service = Plain {
        in_vain: 5,
        backoff: Duration::from_secs(200),
        ..Plain::default()
    };
    let fixture = brokers.open(service.clone()).await;
    let create = fixture.provision("i").accepts_incomplete().send().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    let reply = fixture
        .finish("i", fixture.deprovision("i").accepts_incomplete())
        .await;
    assert_eq!(reply.json["state"], "succeeded", "{}", reply.text);
    assert!(began.elapsed() < Duration::from_secs(10));
    let polled = fixture
        .poll("i")
        .operation(&create.operation())
        .send()
        .await;
    assert_eq!(polled.json["state"], "failed");
    assert_eq!(service.provisions.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_answers_503_and_changes_nothing() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Plain::default()).await;
    fixture.provision("there").send().await.is(201);
    brokers.inject(|call| match call {
        Call::Read("now") => Intercept::Pass,
        _ => Intercept::Refuse,
    });
    for request in fixture.ten_endpoints("there", "b").into_iter().skip(1) {
        let reply = request.send().await.is(503);
        assert!(!reply.header("Retry-After").is_empty());
        assert!(reply.description().ends_with('.'), "{}", reply.text);
        assert!(!reply.text.contains("tap"), "the cause is for the log");
    }
    fixture.catalog().send().await.is(200);
    brokers.stop_faults();
    assert_eq!(brokers.operations().await.len(), 1);
}

/// Both stores hold the same unfinished operations. The first check of the start found no mark yet.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_moved_during_the_start_of_a_broker_is_refused() {
    let brokers = RestartableBroker::new();
    let gate = Arc::new(Notify::new());
    let (held, asked) = (gate.clone(), Arc::new(Notify::new()));
    let lease_asked = asked.clone();
    brokers.inject(move |call| match call {
        Call::Renew(_) => {
            lease_asked.notify_one();
            Intercept::Hold(held.clone())
        }
        _ => Intercept::Pass,
    });
    let start = brokers.try_open(Plain::default(), |broker| broker);
    let source: Arc<dyn Store> = brokers.memory.clone();
    let move_away = async {
        asked.notified().await;
        move_store(source).await;
        gate.notify_one();
    };
    let (started, ()) = tokio::join!(start, move_away);
    let refused = started.err();
    assert!(
        matches!(refused, Some(BuildError::UnusableStore(_))),
        "{refused:?}"
    );
    assert_eq!(brokers.memory.info().await.unwrap().leases, 0);
}

/// Copies a store that no broker holds a lease in to another one, and marks it.
async fn move_store(source: Arc<dyn Store>) {
    let names = CopyNames {
        source: "memory:one",
        target: "memory:two",
    };
    let target = Arc::new(MemoryStore::new());
    let copying = StoreCopy::begin(source, target, names).await;
    let moved = copying.expect("a copy").finish().await;
    moved.expect("no lease is held");
}

/// A broker that was cut off while its store was moved must accept nothing there: no worker would run it.
#[tokio::test(start_paused = true)]
async fn a_broker_that_lost_its_lease_accepts_nothing_in_a_store_that_was_moved() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Plain::default()).await;
    brokers.inject(|call| match call {
        Call::Renew(_) => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let request = |id| fixture.provision(id).accepts_incomplete();
    request("before").send().await.is(202);
    move_store(brokers.memory.clone()).await;
    let before = brokers.operations().await.len();
    request("after").send().await.is(503);
    brokers.stop_faults();
    request("after").send().await.is(503);
    tokio::time::sleep(AFTER_THE_LEASE).await;
    request("after").send().await.is(503);
    assert_eq!(brokers.operations().await.len(), before);
}
