//! Brokers with registries: their configuration, and requests to them.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, sutler};
use serde_json::{Value, json};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use sutler_servers::until;
use tempfile::TempDir;

const OPERATOR: &str = "root:t0ps3cret";

/// A folder, and the configuration of brokers in it.
pub(super) struct Fixture {
    folder: Arc<TempDir>,
    config: Value,
}

impl Fixture {
    /// A configuration with these registries.
    pub(super) fn new(blocks: &[Value]) -> Self {
        let folder = Arc::new(folder());
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("permissions");
        let config = json!({
            "auth": "none", "store": { "url": "sqlite:sutler.db" },
            "admin": { "users": [{ "name": "root", "password": "t0ps3cret" }] },
            "bundles": { "work": "work" }, "refresh": {}, "registry": blocks,
        });
        Self { folder, config }
    }

    /// Sets a value of the configuration by its path: `/refresh/grace`.
    pub(super) fn set(mut self, path: &str, value: Value) -> Self {
        let (parent, key) = path.rsplit_once('/').expect("a path");
        let parent = self.config.pointer_mut(parent).expect("it is there");
        parent[key] = value;
        self
    }

    /// Uses a store that several brokers share. A broker without a renewal for two seconds counts as dead.
    #[cfg(feature = "postgres")]
    pub(super) fn over(self, store: &sutler_servers::ServerUrl) -> Self {
        let store = json!({ "url": store.url(), "key_file": "store.key" });
        let fixture = self.set("/store", store);
        fixture.set("/timeouts", json!({ "lease": "2s" }))
    }

    /// Starts the broker.
    pub(super) fn broker(&self) -> StartedBroker {
        self.replica("work")
    }

    /// Starts a broker with a separate working directory.
    pub(super) fn replica(&self, work: &str) -> StartedBroker {
        let mut config = self.config.clone();
        config["bundles"]["work"] = json!(work);
        let file = format!("{work}.yaml");
        let folder = self.folder.clone();
        fs::write(folder.path().join(&file), config.to_string()).expect("a file");
        let broker = Broker::start(folder.path(), &["broker", "--config", &file]);
        let address = broker.address().to_owned();
        let client = BrokerClient { address, folder };
        StartedBroker { broker, client }
    }
}

/// A running broker, and its client.
pub(super) struct StartedBroker {
    pub(super) broker: Broker,
    client: BrokerClient,
}

impl Deref for StartedBroker {
    type Target = BrokerClient;

    fn deref(&self) -> &BrokerClient {
        &self.client
    }
}

impl StartedBroker {
    /// A client for another thread.
    #[cfg(feature = "postgres")]
    pub(super) fn client(&self) -> BrokerClient {
        self.client.clone()
    }
}

/// Sends requests to a broker, from any thread.
#[derive(Clone)]
pub(super) struct BrokerClient {
    pub(super) address: String,
    folder: Arc<TempDir>,
}

/// Ids for the request of an instance.
#[derive(Clone, Debug)]
pub(super) struct OfferingIds {
    pub(super) service: String,
    pub(super) plan: String,
}

impl BrokerClient {
    /// Runs a command of the program against this broker; returns success, standard output and standard
    /// error.
    pub(super) fn run(&self, words: &[&str]) -> (bool, String, String) {
        let url = format!("http://{}/admin", self.address);
        let mut command = sutler(self.folder.path());
        command
            .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
            .args(words);
        command.args(["--url", &url, "--user", "root"]);
        let output = command.output().expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let success = output.status.success();
        (success, text(output.stdout), text(output.stderr))
    }

    /// Runs a command that must succeed; returns its output.
    #[track_caller]
    pub(super) fn run_ok(&self, words: &[&str]) -> String {
        let (success, stdout, stderr) = self.run(words);
        assert!(success, "{words:?}: {stdout}{stderr}");
        stdout
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let stdout = self.run_ok(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Refreshes the registries and waits for it; returns their states.
    #[track_caller]
    pub(super) fn refreshed(&self) -> Value {
        self.json(&["registry", "refresh", "--wait"])
    }

    /// States of the registries.
    #[cfg(feature = "postgres")]
    #[track_caller]
    pub(super) fn list_registries(&self) -> Value {
        self.json(&["registry", "list"])
    }

    /// One registry.
    #[track_caller]
    pub(super) fn shown(&self, registry: &str) -> Value {
        self.json(&["registry", "show", registry])
    }

    /// The listed items of a registry, offered or not.
    #[track_caller]
    pub(super) fn items(&self, registry: &str) -> Vec<String> {
        let shown = self.shown(registry);
        let specs = shown["specs"].as_array().into_iter().flatten();
        let items = specs.filter_map(|it| it["item"].as_str());
        items.map(str::to_owned).collect()
    }

    /// The reason why an item was not updated, if there is one.
    #[track_caller]
    pub(super) fn fault(&self, registry: &str, item: &str) -> Option<String> {
        let shown = self.shown(registry);
        let mut specs = shown["specs"].as_array().into_iter().flatten();
        let spec = specs.find(|it| it["item"] == item)?;
        Some(spec["fault"].as_str()?.to_owned())
    }

    /// The value of a metric, by its name and labels in text form.
    #[track_caller]
    pub(super) fn metric(&self, name: &str) -> Option<String> {
        let request = BrokerRequest::get("/admin/metrics").user(OPERATOR);
        let page = request.send(&self.address).text;
        let mut lines = page.lines().filter_map(|it| it.strip_prefix(name));
        lines.next().map(|it| it.trim().to_owned())
    }

    fn services(&self) -> Vec<Value> {
        let answer = BrokerRequest::get("/v2/catalog").send(&self.address);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let catalog = body(&answer.text);
        catalog["services"].as_array().cloned().unwrap_or_default()
    }

    /// The offered bundles, each with its version: `hello-apb 1.0.0`.
    pub(super) fn offers(&self) -> Vec<String> {
        let shown = |it: &Value| {
            let stdout = it["description"].as_str().unwrap_or_default();
            let version = stdout.trim_start_matches("Version ").trim_end_matches('.');
            format!("{} {version}", it["name"].as_str().unwrap_or_default())
        };
        let mut offers: Vec<String> = self.services().iter().map(shown).collect();
        offers.sort();
        offers
    }

    /// The ids of an offered service and of its plan.
    #[track_caller]
    pub(super) fn ids(&self, name: &str) -> OfferingIds {
        let services = self.services();
        let service = services.iter().find(|it| it["name"] == name);
        let service = service.expect("it is offered");
        let text = |value: &Value| value.as_str().expect("an id").to_owned();
        OfferingIds {
            service: text(&service["id"]),
            plan: text(&service["plans"][0]["id"]),
        }
    }

    /// Sends a request about an instance, with the path below `/v2/service_instances/`.
    pub(super) fn request(&self, method: &str, path: &str, ids: &OfferingIds) -> (u16, Value) {
        let OfferingIds { service, plan } = ids;
        let path = format!("/v2/service_instances/{path}");
        let request = match method {
            "GET" => BrokerRequest::get(&path),
            "DELETE" => BrokerRequest::new(
                method,
                &format!("{path}?service_id={service}&plan_id={plan}"),
            ),
            _ => BrokerRequest::new(method, &path).json(&json!({
                "service_id": service, "plan_id": plan,
                "organization_guid": "o", "space_guid": "s",
            })),
        };
        let answer = request.send(&self.address);
        (answer.status, body(&answer.text))
    }

    /// Fails unless the response has this status; returns the body.
    #[track_caller]
    pub(super) fn expect_status(
        &self,
        status: u16,
        method: &str,
        path: &str,
        ids: &OfferingIds,
    ) -> Value {
        let (answered, body) = self.request(method, path, ids);
        assert_eq!(answered, status, "{method} {path}: {body}");
        body
    }

    /// Polls an instance until its operation has ended; returns the last poll.
    #[track_caller]
    pub(super) fn until_ended(&self, instance: &str, ids: &OfferingIds) -> Value {
        until("it has ended", || {
            let path = format!("{instance}/last_operation");
            let polled = self.expect_status(200, "GET", &path, ids);
            (polled["state"] != "in progress").then_some(polled)
        })
    }

    /// Output of the last run of an action of an instance.
    #[track_caller]
    pub(super) fn log_of(&self, verb: &str, instance: &str) -> String {
        let list = ["admin", "operations", "list", "-o", "name", "--verb", verb];
        let listed = self.run_ok(&[&list[..], &["--instance", instance]].concat());
        let last = listed.lines().next().expect("an operation");
        self.run_ok(&["admin", "logs", last])
    }
}

fn body(answer: &str) -> Value {
    let text = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(text).unwrap_or_default()
}
