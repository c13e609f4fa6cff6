//! A broker over a given store, with data and load.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, ProgramOutput, sutler};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const SERVICE: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a01";
const PLAN: &str = "0b7f4ac4-3a3b-4f5a-a6f4-1d2e5c1f9a02";

/// A broker without authentication.
pub(super) struct Source {
    broker: Broker,
}

impl Source {
    /// Starts a broker over a store, with the keys of `one.key`; the lease is short, so that a killed broker
    /// is replaced soon.
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

    /// Starts a broker over `one.db` that has an administration for the operator `root`.
    pub(super) fn start_administered(folder: &Path) -> Self {
        let config = "auth: none\nstore: {url: 'sqlite:one.db', key_file: one.key}\nadmin: {users: [{name: root, password: t0ps3cret}]}\n";
        std::fs::write(folder.join("sutler.yaml"), config).expect("a file");
        let mut command = sutler(folder);
        command.args(["broker", "--config", "sutler.yaml"]);
        Self {
            broker: Broker::of(&mut command),
        }
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        self.broker.address()
    }

    /// Runs `sutler admin` against it.
    pub(super) fn admin(&self, folder: &Path, arguments: &[&str]) -> ProgramOutput {
        admin(self.address(), folder, arguments)
    }

    /// Requests an instance without waiting for it; returns the id of the operation.
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

    /// Status and state of a poll.
    pub(super) fn poll(&self, instance: &str, operation: &str) -> (u16, String) {
        let path = format!("/v2/service_instances/{instance}/last_operation?operation={operation}");
        let answer = BrokerRequest::get(&path).send(self.broker.address());
        let body = answer.text.split("\r\n\r\n").nth(1).unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let state = body["state"].as_str().unwrap_or_default().to_owned();
        (answer.status, state)
    }

    /// Polls until the operation has ended; returns the last response after the time limit.
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

    /// Creates this number of instances, some bound, and one that takes long; returns (instance, operation)
    /// of each.
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

    /// Creates and removes instances until it is stopped; returns what was acknowledged.
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
                    // A removed instance is not polled again.
                    self.deprovision(&gone);
                    acknowledged.retain(|(id, _)| *id != gone);
                }
                acknowledged.push((id, operation));
            }
        }
        acknowledged
    }

    /// Status of a fetch of an instance.
    pub(super) fn fetch(&self, instance: &str) -> u16 {
        let request = BrokerRequest::get(&format!("/v2/service_instances/{instance}"));
        request.send(self.broker.address()).status
    }

    /// Lets it read the key file again.
    pub(super) fn reload_keys(&self) {
        self.broker.signal("HUP");
        self.broker
            .until_logged("the keys of the store were read again");
        self.broker.until_logged("the configuration was reloaded");
    }

    /// Kills it.
    pub(super) fn kill(self) {
        self.broker.signal("KILL");
    }

    /// Stops it with SIGTERM.
    pub(super) fn stop(self) {
        self.broker.ended();
    }
}

/// Runs `sutler admin` as the operator `root`, against the broker at an address.
pub(super) fn admin(address: &str, folder: &Path, arguments: &[&str]) -> ProgramOutput {
    let output = sutler(folder)
        .args(["admin", "--url", &format!("http://{address}/admin")])
        .args(["--user", "root"])
        .args(arguments)
        .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
        .output()
        .expect("the program runs");
    ProgramOutput {
        stdout: String::from_utf8(output.stdout).expect("it prints text"),
        stderr: String::from_utf8(output.stderr).expect("it prints text"),
        code: output.status.code(),
    }
}
