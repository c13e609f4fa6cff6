//! Clients of platforms: random orders about a few instances at random replicas, repeated until they are answered; and
//! what they saw. They check nothing.

use super::client::ReplicaAddresses;
use super::intent_order::Seen;
use crate::platform_kills::api_client::{ApiAnswer, ApiClient, Asked};
use crate::platform_kills::people::Acknowledged;
use crate::victim::now_us;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_servers::SeededRng;
use tokio::time::timeout;

/// Longest wait for an answer: shorter than a pause of a replica.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
const AFTER_SILENCE: Duration = Duration::from_millis(40);
/// Wait between two orders of a client.
const BETWEEN: Duration = Duration::from_millis(15);
const INSTANCES: &str = "/namespaces/app/instances";
/// Ends that an order may have, or being on hold, when anything may happen to the broker and to the instance.
const ANY: &[&str] = &["succeeded", "rejected", "failed", "superseded", "cancelled"];

/// What clients saw.
#[derive(Debug, Default)]
pub(super) struct PlatformHistory {
    /// Orders with an intent.
    pub(super) acknowledged: Vec<Acknowledged>,
    /// Orders with a number, by operation: began, ended, number.
    pub(super) numbers: Vec<(String, u64, u64, u64)>,
    /// Reads: instance, began, ended, what.
    pub(super) reads: Vec<(String, u64, u64, Seen)>,
    /// Requests.
    pub(super) requests: u64,
    /// Orders of which an attempt had no answer.
    pub(super) in_doubt: u64,
    /// Orders that had ended when they were acknowledged.
    pub(super) ended: u64,
    /// Orders that were refused.
    pub(super) refused: u64,
}

/// What all clients share.
#[derive(Clone, Debug)]
pub(super) struct PlatformClients {
    pub(super) homes: ReplicaAddresses,
    pub(super) instances: u64,
    pub(super) history: Arc<Mutex<PlatformHistory>>,
    pub(super) keys: Arc<AtomicU64>,
}

/// An order of a client.
#[derive(Clone, Debug)]
pub(super) struct ChaosOrder {
    pub(super) user: &'static str,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
}

/// One client.
pub(super) struct PlatformClient {
    pub(super) shared: PlatformClients,
    pub(super) rng: SeededRng,
}

impl PlatformClient {
    /// Sends one order after the other.
    pub(super) async fn run_until(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let order = self.choose();
            self.send(&order).await;
            tokio::time::sleep(BETWEEN).await;
        }
    }

    fn choose(&mut self) -> ChaosOrder {
        let name = format!("db-{}", self.rng.below(self.shared.instances));
        let instance = format!("{INSTANCES}/{name}");
        let order = |user, method, path, body| ChaosOrder {
            user,
            method,
            path,
            body,
        };
        match self.rng.below(16) {
            0..=2 => {
                let body = json!({"name": name, "class": "postgresql", "plan": "small"});
                order("carla", "POST", INSTANCES.to_owned(), body)
            }
            3..=7 => {
                let user = *self.rng.pick(&["anna", "rita"]);
                let body = json!({"parameters": {"disk": self.rng.below(1_000_000)}});
                order(user, "PATCH", instance, body)
            }
            8 => {
                let path = format!("{instance}?cascade=true");
                order("dora", "DELETE", path, Value::Null)
            }
            9 | 10 => {
                let body = json!({"name": format!("key-{name}"), "instance": name});
                order("bert", "POST", "/namespaces/app/bindings".to_owned(), body)
            }
            11 => {
                let path = format!("/namespaces/app/bindings/key-{name}");
                order("dora", "DELETE", path, Value::Null)
            }
            _ => order("ada", "GET", instance, Value::Null),
        }
    }

    /// Sends an order to random replicas until there is an answer, and notes it.
    pub(super) async fn send(&mut self, order: &ChaosOrder) {
        let number = self.shared.keys.fetch_add(1, Ordering::Relaxed);
        let key = format!("order-{number}");
        let path = format!("/api/v1{}", order.path);
        let asked = Asked {
            user: Some(order.user),
            method: order.method,
            path: &path,
            body: &order.body,
            idempotency_key: ["POST", "PATCH"]
                .contains(&order.method)
                .then_some(key.as_str()),
        };
        let mut began = now_us();
        let mut in_doubt = false;
        loop {
            let replica = self.rng.below(self.shared.homes.len() as u64) as usize;
            let home = *self.shared.homes[replica].borrow();
            let answer = match home {
                Some(address) => {
                    let sent = timeout(ANSWER_WITHIN, ApiClient::to(address).send(&asked)).await;
                    self.note(|it| it.requests += 1);
                    sent.ok().flatten()
                }
                None => None,
            };
            match answer {
                Some(answer) if answer.status < 500 && answer.status != 429 => {
                    self.answered(order, &answer, (began, now_us()));
                    break;
                }
                Some(_) | None => {
                    in_doubt |= home.is_some();
                    tokio::time::sleep(AFTER_SILENCE).await;
                    if order.method == "GET" {
                        began = now_us();
                    }
                }
            }
        }
        if in_doubt && order.method != "GET" {
            self.note(|it| it.in_doubt += 1);
        }
    }

    fn note(&self, change: impl FnOnce(&mut PlatformHistory)) {
        let history = self.shared.history.lock();
        change(&mut history.unwrap_or_else(PoisonError::into_inner));
    }

    fn answered(&self, order: &ChaosOrder, answer: &ApiAnswer, (began, ended): (u64, u64)) {
        let text = |name: &str| answer.body[name].as_str().unwrap_or_default().to_owned();
        match (order.method, answer.status) {
            ("GET", 200) => {
                let count = answer.body["generation"].as_u64().unwrap_or_default();
                let read = (text("uid"), began, ended, Seen::Count(count));
                self.note(|it| it.reads.push(read));
            }
            ("GET", _) => {}
            // It is repeated, and has ended meanwhile: then its operation is not shown.
            (_, 202) if answer.body["operation"].is_null() => self.note(|it| it.ended += 1),
            (_, 202) => {
                let operation = text("operation");
                let acknowledged = Acknowledged {
                    user: order.user,
                    operation: operation.clone(),
                    verb: text("verb"),
                    ends: ANY,
                };
                let number = answer.body["number"].as_u64();
                // A delete that joins another one has the number of that.
                let number = number.filter(|_| order.method != "DELETE");
                self.note(|it| {
                    if order.method != "DELETE" {
                        it.acknowledged.push(acknowledged);
                    }
                    it.numbers
                        .extend(number.map(|number| (operation, began, ended, number)));
                });
            }
            _ => self.note(|it| it.refused += 1),
        }
    }
}
