//! A platform and a broker, both as processes: `sutler platform` provisions at `sutler broker`.

use crate::process::{Broker as Process, folder, sutler};
use serde_json::{Value, json};
use std::path::Path;
use sutler_servers::http::HttpRequest;

const CONFIG: &str = "
users: [{name: ada, password: hush}, {name: bob, password: hush}]
operators: [ada]
abandon: [bob]
egress: {networks: [127.0.0.1]}
";
const INSTANCES: &str = "/namespaces/app/instances";
const DB: &str = "/namespaces/app/instances/db";

/// A platform with a registered broker and a namespace.
struct Pair {
    platform: Process,
    broker: Process,
    _folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Reply {
    status: u16,
    body: Value,
}

impl Pair {
    fn start() -> Self {
        let folder = folder();
        let broker = Process::start(folder.path(), &["broker", "--no-auth", "--db", "broker.db"]);
        let pair = Self {
            platform: start_platform(folder.path()),
            broker,
            _folder: folder,
        };
        let body = json!({"url": format!("http://{}", pair.broker.address())});
        let registered = pair.send("PUT", "/brokers/demo", &body);
        assert_eq!(registered.status, 201, "{registered:?}");
        let synced = pair.send("POST", "/brokers/demo:sync?wait=30s", &json!({}));
        assert_eq!(synced.status, 200, "{synced:?}");
        let namespace = pair.send("PUT", "/namespaces/app", &json!({}));
        assert_eq!(namespace.status, 201, "{namespace:?}");
        pair
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send_as("ada", method, path, body)
    }

    fn send_as(&self, user: &str, method: &str, path: &str, body: &Value) -> Reply {
        let target = format!("/api/v1{path}");
        let request = HttpRequest::new(method, &target).with_basic_auth(&format!("{user}:hush"));
        let request = match body {
            Value::Null => request,
            body => request.with_body("application/json", body.to_string()),
        };
        let response = request.send(self.platform.address()).expect("it answers");
        Reply {
            status: response.status,
            body: serde_json::from_slice(&response.body).unwrap_or(Value::Null),
        }
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &Value::Null)
    }

    fn create(&self, parameters: Value) -> Reply {
        let path = format!("{INSTANCES}?wait=60s");
        let body =
            json!({"name": "db", "class": "demo", "plan": "small", "parameters": parameters});
        self.send("POST", &path, &body)
    }
}

fn start_platform(folder: &Path) -> Process {
    std::fs::write(folder.join("platform.yaml"), CONFIG).expect("it is written");
    let mut command = sutler(folder);
    command.args(["platform", "--config", "platform.yaml"]);
    Process::of(&mut command)
}

#[test]
fn an_instance_is_created_changed_and_deleted_at_its_broker() {
    let pair = Pair::start();
    let created = pair.create(json!({}));
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.body["phase"], "live");
    assert_eq!(created.body["confirmed"]["spec"]["plan"], "small");
    let path = format!("{DB}?wait=60s");
    let changed = pair.send(
        "PATCH",
        &path,
        &json!({"plan": "large", "labels": {"team": "x"}}),
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.body["confirmed"]["spec"]["plan"], "large");
    assert_eq!(changed.body["conditions"]["synced"]["status"], "true");
    let intents = pair.get(&format!("{DB}/intents"));
    let items = intents.body["items"].as_array().expect("a list");
    assert_eq!(items.len(), 2, "{items:#?}");
    assert_eq!(items[0]["state"], "succeeded");
    assert_eq!(items[0]["attemptLog"][0]["number"], 1);
    let deleted = pair.send("DELETE", &path, &Value::Null);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert_eq!(deleted.body["phase"], "gone");
    assert_eq!(pair.get(DB).status, 404);
}

#[test]
fn a_change_that_the_broker_rejects_is_told_in_its_words() {
    let pair = Pair::start();
    assert_eq!(pair.create(json!({})).status, 201);
    let path = format!("{DB}?wait=60s");
    let body = json!({"parameters": {"fail": "the disk is full"}});
    let refused = pair.send("PATCH", &path, &body);
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(refused.body["intent"], 2);
    let words = refused.body["broker"].to_string();
    assert!(words.contains("the disk is full"), "{refused:?}");
    let shown = pair.get(DB);
    assert_eq!(shown.body["conditions"]["ready"]["status"], "true");
}

#[test]
fn who_waits_too_short_gets_the_intent_and_the_change_goes_on() {
    let pair = Pair::start();
    let path = format!("{INSTANCES}?wait=100ms");
    let body =
        json!({"name": "db", "class": "demo", "plan": "small", "parameters": {"delay_ms": 3000}});
    let accepted = pair.send("POST", &path, &body);
    assert_eq!(accepted.status, 202, "{accepted:?}");
    assert_eq!(accepted.body["number"], 1);
    sutler_servers::until("it is live", || {
        let shown = pair.get(DB);
        (shown.body["phase"] == "live").then_some(())
    });
}

#[test]
fn an_abandoned_instance_is_on_the_ledger() {
    let pair = Pair::start();
    assert_eq!(pair.create(json!({})).status, 201);
    let reason = json!({"reason": "moved away"});
    let path = format!("{DB}:abandon");
    assert_eq!(pair.send("POST", &path, &reason).status, 403);
    let abandoned = pair.send_as("bob", "POST", &path, &reason);
    assert_eq!(abandoned.status, 200, "{abandoned:?}");
    let orphans = pair.get("/orphans");
    let orphan = &orphans.body["items"][0];
    assert_eq!(orphan["cause"], "abandoned", "{orphans:?}");
    assert_eq!(orphan["by"]["username"], "bob");
    let id = orphan["id"].as_str().expect("an id");
    let shown = pair.get(&format!("/orphans/{id}"));
    assert_eq!(shown.status, 200, "{shown:?}");
}

#[test]
fn the_marketplace_shows_the_plans_of_the_broker() {
    let pair = Pair::start();
    let market = pair.get("/marketplace?namespace=app");
    assert_eq!(market.body["items"][0]["name"], "demo", "{market:?}");
    assert_eq!(market.body["items"][0]["broker"], "demo");
    let broken = pair.create(json!({"delay_ms": "long"}));
    assert_eq!(broken.status, 422, "{broken:?}");
    assert_eq!(broken.body["type"], "urn:sutler:rules_broken");
}
