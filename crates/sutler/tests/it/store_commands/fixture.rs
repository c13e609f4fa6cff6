//! A broker over some store, with something in it, and a load on it.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, sutler};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const SERVICE: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a01";
const PLAN: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a02";

/// A broker that serves everybody.
pub(super) struct Source {
    broker: Broker,
}

impl Source {
    /// Starts one over a store, with the keys of `one.key`; a lease is short, so that nobody waits long
    /// for a dead one.
    pub(super) fn start(folder: &Path, url: &str) -> Self {
        let mut command = sutler(folder);
        command
            .args(["broker", "--no-auth", "--key-file", "one.key"])
            .env("SUTLER_STORE__URL", url)
            .env("SUTLER_TIMEOUTS__LEASE", "2s");
        Self {
            broker: Broker::of(&mut command),
        }
    }

    /// Asks for an instance, without waiting for it; the operation's id.
    pub(super) fn provision(&self, id: &str, delay_ms: u64) -> Option<String> {
        let body = json!({
            "service_id": SERVICE,
            "plan_id": PLAN,
            "organization_guid": "o",
            "space_guid": "s",
            "parameters": { "delay_ms": delay_ms },
        });
        self.change("PUT", &format!("{id}?accepts_incomplete=true"), &body)
    }

    pub(super) fn bind(&self, instance: &str, id: &str) -> Option<String> {
        let path = format!("{instance}/service_bindings/{id}?accepts_incomplete=true");
        let body = json!({ "service_id": SERVICE, "plan_id": PLAN });
        self.change("PUT", &path, &body)
    }

    pub(super) fn deprovision(&self, id: &str) -> Option<String> {
        let query = format!("accepts_incomplete=true&service_id={SERVICE}&plan_id={PLAN}");
        self.change("DELETE", &format!("{id}?{query}"), &Value::Null)
    }

    fn change(&self, method: &str, path: &str, body: &Value) -> Option<String> {
        let request = BrokerRequest::new(method, &format!("/v2/service_instances/{path}"));
        let answer = request.json(body).try_send(self.broker.address()).ok()?;
        let body = answer.text.split("\r\n\r\n").nth(1)?;
        let body: Value = serde_json::from_str(body).ok()?;
        (answer.status == 202).then(|| body["operation"].as_str().map(str::to_owned))?
    }

    /// What a poll says: status and state.
    pub(super) fn poll(&self, instance: &str, operation: &str) -> (u16, String) {
        let path = format!("/v2/service_instances/{instance}/last_operation?operation={operation}");
        let answer = BrokerRequest::get(&path).send(self.broker.address());
        let body = answer.text.split("\r\n\r\n").nth(1).unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let state = body["state"].as_str().unwrap_or_default().to_owned();
        (answer.status, state)
    }

    /// Polls until it ended; the last answer if that does not come in time.
    pub(super) fn until_ended(&self, instance: &str, operation: &str) -> (u16, String) {
        let mut polled = self.poll(instance, operation);
        for _ in 0..600 {
            if polled.1 != "in progress" {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
            polled = self.poll(instance, operation);
        }
        polled
    }

    /// Makes so many instances, some bound, and one that takes long; (instance, operation) of each.
    pub(super) fn fill(&self, count: usize) -> Vec<(String, String)> {
        let mut made = Vec::new();
        for n in 0..count {
            let id = format!("i{n}");
            let operation = self.provision(&id, 0).expect("it is taken");
            assert_eq!(self.until_ended(&id, &operation).1, "succeeded");
            if n % 5 == 1 || n == 2 {
                self.bind(&id, "b").expect("it is taken");
            }
            made.push((id, operation));
        }
        let operation = self.provision("slow", 1500).expect("it is taken");
        made.push(("slow".to_owned(), operation));
        made
    }

    /// Makes and removes instances until it is told to stop; what was acknowledged.
    pub(super) fn load(&self, stop: &AtomicBool) -> Vec<(String, String)> {
        let mut acknowledged: Vec<(String, String)> = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("load-{n}");
            if let Some(operation) = self.provision(&id, u64::from(n % 3 == 0)) {
                if n % 4 == 0 && self.until_ended(&id, &operation).1 == "succeeded" {
                    self.bind(&id, "b");
                    let gone = format!("load-{}", n / 2);
                    // Whoever is gone is not asked for again.
                    self.deprovision(&gone);
                    acknowledged.retain(|(id, _)| *id != gone);
                }
                acknowledged.push((id, operation));
            }
        }
        acknowledged
    }

    /// Ends it as a crash does.
    pub(super) fn kill(self) {
        self.broker.signal("KILL");
    }

    /// Ends it as an operator does.
    pub(super) fn stop(self) {
        self.broker.ended();
    }
}
