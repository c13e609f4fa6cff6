//! A platform that repeats what was not answered, and holds the broker to what it acknowledged.
//!
//! Sends requests within the process, on a paused clock, so that it shares nothing with the platform of
//! `sutler-crash` but its purpose.

use crate::fixture::Fixture;
use crate::fixture::request::{Ask, Reply};
use crate::fixture::test_catalog::{LARGE, SMALL};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Steps in the life of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    Synchronous,
    Asynchronous,
    DeletedWhileCreated,
    Cascade,
}

/// One thing a platform wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
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
    fn wishes(self) -> Vec<Wish> {
        match self {
            Self::Synchronous | Self::Asynchronous => vec![
                Wish::Provision,
                Wish::Bind("b"),
                Wish::Update,
                Wish::Unbind("b"),
                Wish::Deprovision,
            ],
            Self::DeletedWhileCreated => vec![Wish::Begin, Wish::Deprovision],
            Self::Cascade => vec![
                Wish::Provision,
                Wish::Bind("b"),
                Wish::Bind("c"),
                Wish::Deprovision,
            ],
        }
    }

    fn plan(self) -> &'static str {
        match self {
            Self::Synchronous => LARGE,
            Self::Asynchronous | Self::DeletedWhileCreated | Self::Cascade => SMALL,
        }
    }

    fn ask(self, kit: &Fixture, wish: Wish) -> Ask {
        let ask = match wish {
            Wish::Provision => kit.provision(ID).parameters(json!({ "size": 1 })),
            Wish::Begin => kit.provision(ID).parameters(json!({ "size": 0 })),
            Wish::Bind(id) => kit.bind(ID, id),
            Wish::Update => kit.update(ID).parameters(json!({ "size": 2 })),
            Wish::Unbind(id) => kit.unbind(ID, id),
            Wish::Deprovision => kit.deprovision(ID),
        };
        let ask = if wish == Wish::Update {
            ask
        } else {
            ask.plan(self.plan())
        };
        match self {
            Self::Synchronous => ask,
            Self::Asynchronous | Self::DeletedWhileCreated | Self::Cascade => {
                ask.accepts_incomplete()
            }
        }
    }
}

/// Progress of the platform, which outlives the broker.
#[derive(Default)]
pub(super) struct Journey {
    at: AtomicUsize,
    /// The operation that was acknowledged for a wish.
    acknowledged: Mutex<BTreeMap<Wish, String>>,
    credentials: Mutex<BTreeMap<&'static str, Value>>,
    pub(super) twice: bool,
}

impl Journey {
    /// Goes on where it was left.
    pub(super) async fn go_on(&self, kit: &Fixture, life: Life) {
        let wishes = life.wishes();
        while let Some(wish) = wishes.get(self.at.load(Ordering::Relaxed)) {
            self.fulfil(kit, life, *wish).await;
            self.verify(kit, life, *wish).await;
            self.at.fetch_add(1, Ordering::Relaxed);
        }
        self.recall(kit).await;
    }

    /// Repeats a request until it is granted.
    async fn fulfil(&self, kit: &Fixture, life: Life, wish: Wish) {
        for _ in 0..50 {
            let ask = life.ask(kit, wish);
            let reply = if self.twice {
                let (first, second) = tokio::join!(ask.clone().send(), ask.send());
                assert!(first.status < 300 && second.status < 300, "{wish:?}");
                if second.status == 202 { second } else { first }
            } else {
                ask.send().await
            };
            match reply.status {
                200 | 201 => return,
                202 => return self.follow(kit, wish, &reply).await,
                410 if matches!(wish, Wish::Unbind(_) | Wish::Deprovision) => return,
                422 => assert_eq!(reply.json["error"], "ConcurrencyError", "{}", reply.text),
                500.. => self.unchanged_by_a_failed_update(kit, wish).await,
                other => panic!("{wish:?} is answered with {other}: {}", reply.text),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{wish:?} is never granted");
    }

    async fn follow(&self, kit: &Fixture, wish: Wish, accepted: &Reply) {
        let operation = accepted.operation();
        let known = {
            let mut acknowledged = self.acknowledged.lock().unwrap();
            acknowledged.insert(wish, operation.clone())
        };
        if let Some(known) = known {
            assert_eq!(known, operation, "{wish:?} runs a second time");
        }
        if wish == Wish::Begin {
            return;
        }
        assert_eq!(
            self.outcome(kit, wish, &operation).await,
            "succeeded",
            "{wish:?}"
        );
    }

    /// Polls an operation to its end.
    async fn outcome(&self, kit: &Fixture, wish: Wish, operation: &str) -> String {
        for _ in 0..3000 {
            let poll = match wish {
                Wish::Bind(id) | Wish::Unbind(id) => kit.poll_binding(ID, id),
                _ => kit.poll(ID),
            };
            let reply = poll.operation(operation).send().await;
            match (reply.status, reply.json["state"].as_str()) {
                (200, Some("in progress")) | (503, _) => {}
                (200, Some(state)) => return state.to_owned(),
                _ => panic!("{wish:?}: a poll is answered with {}", reply.text),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{wish:?} does not end");
    }

    /// B-037: on any 5xx nothing of an update may be applied.
    async fn unchanged_by_a_failed_update(&self, kit: &Fixture, wish: Wish) {
        if wish == Wish::Update {
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
    async fn verify(&self, kit: &Fixture, life: Life, wish: Wish) {
        match wish {
            Wish::Begin => {}
            Wish::Provision | Wish::Update => {
                let shown = read(|| kit.fetch(ID)).await.is(200);
                let size = if wish == Wish::Provision { 1 } else { 2 };
                assert_eq!(shown.json["parameters"]["size"], size, "{life:?}");
            }
            Wish::Bind(id) => {
                let shown = read(|| kit.fetch_binding(ID, id)).await.is(200);
                let given = shown.json["credentials"].clone();
                assert!(
                    given["key"].is_string() && given["server"].is_string(),
                    "{given}"
                );
                self.credentials.lock().unwrap().insert(id, given);
            }
            Wish::Unbind(id) => {
                read(|| kit.fetch_binding(ID, id)).await.is(404);
            }
            Wish::Deprovision => {
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
    async fn recall(&self, kit: &Fixture) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        for (wish, operation) in acknowledged {
            let state = self.outcome(kit, wish, &operation).await;
            let expected = if wish == Wish::Begin {
                "failed"
            } else {
                "succeeded"
            };
            assert_eq!(state, expected, "{wish:?}");
        }
    }
}

/// Reads, and again where the store did not answer.
async fn read(ask: impl Fn() -> Ask) -> Reply {
    for _ in 0..10 {
        let reply = ask().send().await;
        if reply.status != 503 {
            return reply;
        }
    }
    panic!("it cannot be read");
}
