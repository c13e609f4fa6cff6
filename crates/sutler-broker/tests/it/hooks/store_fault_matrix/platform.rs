//! A platform that repeats unanswered requests, and checks every acknowledged change.
//!
//! Requests stay in the process and the clock is paused; the platform of `sutler-crash` talks to another process.

use crate::fixture::Fixture;
use crate::fixture::request::{Reply, RequestBuilder};
use crate::fixture::test_catalog::{LARGE, SMALL};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Lifecycle of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    Synchronous,
    Asynchronous,
    DeletedWhileCreated,
    Cascade,
}

/// One request of a lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PlatformStep {
    Provision,
    /// A provision that is accepted and not waited for.
    Begin,
    Bind(&'static str),
    Update,
    Unbind(&'static str),
    Deprovision,
}

const ID: &str = "i";

impl Life {
    fn steps(self) -> Vec<PlatformStep> {
        match self {
            Self::Synchronous | Self::Asynchronous => vec![
                PlatformStep::Provision,
                PlatformStep::Bind("b"),
                PlatformStep::Update,
                PlatformStep::Unbind("b"),
                PlatformStep::Deprovision,
            ],
            Self::DeletedWhileCreated => vec![PlatformStep::Begin, PlatformStep::Deprovision],
            Self::Cascade => vec![
                PlatformStep::Provision,
                PlatformStep::Bind("b"),
                PlatformStep::Bind("c"),
                PlatformStep::Deprovision,
            ],
        }
    }

    fn plan(self) -> &'static str {
        match self {
            Self::Synchronous => LARGE,
            Self::Asynchronous | Self::DeletedWhileCreated | Self::Cascade => SMALL,
        }
    }

    fn request(self, kit: &Fixture, step: PlatformStep) -> RequestBuilder {
        let request = match step {
            PlatformStep::Provision => kit.provision(ID).parameters(json!({ "size": 1 })),
            PlatformStep::Begin => kit.provision(ID).parameters(json!({ "size": 0 })),
            PlatformStep::Bind(id) => kit.bind(ID, id),
            PlatformStep::Update => kit.update(ID).parameters(json!({ "size": 2 })),
            PlatformStep::Unbind(id) => kit.unbind(ID, id),
            PlatformStep::Deprovision => kit.deprovision(ID),
        };
        let request = if step == PlatformStep::Update {
            request
        } else {
            request.plan(self.plan())
        };
        match self {
            Self::Synchronous => request,
            Self::Asynchronous | Self::DeletedWhileCreated | Self::Cascade => {
                request.accepts_incomplete()
            }
        }
    }
}

/// Progress of the platform, which outlives the broker.
#[derive(Default)]
pub(super) struct PlatformProgress {
    at: AtomicUsize,
    /// The operation that was acknowledged for each step.
    acknowledged: Mutex<BTreeMap<PlatformStep, String>>,
    credentials: Mutex<BTreeMap<&'static str, Value>>,
    pub(super) twice: bool,
}

impl PlatformProgress {
    /// Continues with the first step that is not complete.
    pub(super) async fn resume(&self, kit: &Fixture, life: Life) {
        let steps = life.steps();
        while let Some(step) = steps.get(self.at.load(Ordering::Relaxed)) {
            self.complete(kit, life, *step).await;
            self.verify(kit, life, *step).await;
            self.at.fetch_add(1, Ordering::Relaxed);
        }
        self.check_acknowledged(kit).await;
    }

    /// Repeats a request until it succeeds.
    async fn complete(&self, kit: &Fixture, life: Life, step: PlatformStep) {
        for _ in 0..50 {
            let request = life.request(kit, step);
            let reply = if self.twice {
                let (first, second) = tokio::join!(request.clone().send(), request.send());
                assert!(first.status < 300 && second.status < 300, "{step:?}");
                if second.status == 202 { second } else { first }
            } else {
                request.send().await
            };
            match reply.status {
                200 | 201 => return,
                202 => return self.follow(kit, step, &reply).await,
                410 if matches!(step, PlatformStep::Unbind(_) | PlatformStep::Deprovision) => {
                    return;
                }
                422 => assert_eq!(reply.json["error"], "ConcurrencyError", "{}", reply.text),
                500.. => self.unchanged_by_a_failed_update(kit, step).await,
                other => panic!("{step:?} is answered with {other}: {}", reply.text),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{step:?} is never granted");
    }

    async fn follow(&self, kit: &Fixture, step: PlatformStep, accepted: &Reply) {
        let operation = accepted.operation();
        let known = {
            let mut acknowledged = self.acknowledged.lock().unwrap();
            acknowledged.insert(step, operation.clone())
        };
        if let Some(known) = known {
            assert_eq!(known, operation, "{step:?} runs a second time");
        }
        if step == PlatformStep::Begin {
            return;
        }
        assert_eq!(
            self.outcome(kit, step, &operation).await,
            "succeeded",
            "{step:?}"
        );
    }

    /// Polls an operation to its end.
    async fn outcome(&self, kit: &Fixture, step: PlatformStep, operation: &str) -> String {
        for _ in 0..3000 {
            let poll = match step {
                PlatformStep::Bind(id) | PlatformStep::Unbind(id) => kit.poll_binding(ID, id),
                _ => kit.poll(ID),
            };
            let reply = poll.operation(operation).send().await;
            match (reply.status, reply.json["state"].as_str()) {
                (200, Some("in progress")) | (503, _) => {}
                (200, Some(state)) => return state.to_owned(),
                _ => panic!("{step:?}: a poll is answered with {}", reply.text),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{step:?} does not end");
    }

    /// B-037: on any 5xx nothing of an update may be applied.
    async fn unchanged_by_a_failed_update(&self, kit: &Fixture, step: PlatformStep) {
        if step == PlatformStep::Update {
            while kit.running.operations_running() > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let shown = read(|| kit.fetch(ID)).await.is(200);
            assert_eq!(
                shown.json["parameters"]["size"], 1,
                "a failed update came true"
            );
        }
    }

    /// Accepted changes are applied, or deleted.
    async fn verify(&self, kit: &Fixture, life: Life, step: PlatformStep) {
        match step {
            PlatformStep::Begin => {}
            PlatformStep::Provision | PlatformStep::Update => {
                let shown = read(|| kit.fetch(ID)).await.is(200);
                let size = if step == PlatformStep::Provision {
                    1
                } else {
                    2
                };
                assert_eq!(shown.json["parameters"]["size"], size, "{life:?}");
            }
            PlatformStep::Bind(id) => {
                let shown = read(|| kit.fetch_binding(ID, id)).await.is(200);
                let given = shown.json["credentials"].clone();
                assert!(
                    given["key"].is_string() && given["server"].is_string(),
                    "{given}"
                );
                self.credentials.lock().unwrap().insert(id, given);
            }
            PlatformStep::Unbind(id) => {
                read(|| kit.fetch_binding(ID, id)).await.is(404);
            }
            PlatformStep::Deprovision => {
                read(|| kit.fetch(ID)).await.is(404);
                let bindings: Vec<&str> =
                    self.credentials.lock().unwrap().keys().copied().collect();
                for id in bindings {
                    read(|| kit.fetch_binding(ID, id)).await.is(404);
                }
            }
        }
    }

    /// Every operation that was ever acknowledged is still known, and ended.
    async fn check_acknowledged(&self, kit: &Fixture) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        for (step, operation) in acknowledged {
            let state = self.outcome(kit, step, &operation).await;
            let expected = if step == PlatformStep::Begin {
                "failed"
            } else {
                "succeeded"
            };
            assert_eq!(state, expected, "{step:?}");
        }
    }
}

/// Reads, and repeats the read while the store does not answer.
async fn read(request: impl Fn() -> RequestBuilder) -> Reply {
    for _ in 0..10 {
        let reply = request().send().await;
        if reply.status != 503 {
            return reply;
        }
    }
    panic!("it cannot be read");
}
