//! `sutler platform` as a process, and requests to its API.

use super::forbidding_broker::ForbiddingBroker;
use crate::process::{Broker as Process, folder, sutler};
use serde_json::{Value, json};
use sutler_servers::http::HttpRequest;

/// A platform with the users anna, boris, carla and olga. It is killed when it is dropped.
pub(super) struct PlatformProcess {
    process: Process,
    _folder: tempfile::TempDir,
}

/// An answer of the API.
#[derive(Debug)]
pub(super) struct ApiAnswer {
    pub(super) status: u16,
    pub(super) json: Value,
    /// Entity tag.
    pub(super) tag: Option<String>,
    /// Path of the intent, below the path of the API.
    pub(super) location: Option<String>,
}

impl ApiAnswer {
    /// The body as text.
    pub(super) fn text(&self) -> String {
        self.json.to_string()
    }
}

impl PlatformProcess {
    /// Starts a platform with a store of its own.
    pub(super) fn start() -> Self {
        let folder = folder();
        let config = "
store: { url: 'sqlite:platform.db' }
users:
  - { name: anna, password: secret-of-anna }
  - { name: boris, password: secret-of-boris }
  - { name: carla, password: secret-of-carla }
  - { name: olga, password: secret-of-olga }
operators: [olga]
egress: { networks: ['127.0.0.0/8'] }
";
        std::fs::write(folder.path().join("platform.yaml"), config).expect("it is written");
        let mut command = sutler(folder.path());
        command.args(["platform", "--config", "platform.yaml"]);
        Self {
            process: Process::of(&mut command),
            _folder: folder,
        }
    }

    /// Registers a broker in the name of olga, creates the namespace, and waits until the catalog was read.
    pub(super) fn register(&self, broker: &ForbiddingBroker) {
        let namespace = self.send("olga", "PUT", "/namespaces/app", &json!({}));
        assert_eq!(namespace.status, 201, "{namespace:?}");
        let body = json!({
            "url": broker.url,
            "auth": {"basic": {"username": "platform", "password": "s3cret"}},
            "profile": "kubernetes",
        });
        let registered = self.send("olga", "PUT", "/brokers/databases", &body);
        assert_eq!(registered.status, 201, "{registered:?}");
        sutler_servers::until("the catalog is read", || {
            let offered = self.get("carla", "/marketplace?namespace=app");
            offered.text().contains("postgresql").then_some(())
        });
    }

    /// Reads in the name of a user.
    pub(super) fn get(&self, user: &str, path: &str) -> ApiAnswer {
        self.send(user, "GET", path, &Value::Null)
    }

    /// Sends a request in the name of a user.
    pub(super) fn send(&self, user: &str, method: &str, path: &str, body: &Value) -> ApiAnswer {
        self.send_if_match(user, method, path, body, None)
    }

    /// Sends a request that is carried out only if the entity tag is still the same.
    pub(super) fn send_if_match(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: &Value,
        tag: Option<&str>,
    ) -> ApiAnswer {
        let target = format!("/api/v1{path}");
        let pair = format!("{user}:secret-of-{user}");
        let request = HttpRequest::new(method, &target).with_basic_auth(&pair);
        let request = match tag {
            Some(tag) => request.with_header("If-Match", tag),
            None => request,
        };
        let media_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = match body {
            Value::Null => request,
            body => request.with_body(media_type, body.to_string()),
        };
        let answer = request.send(self.process.address()).expect("it answers");
        let location = answer.header("Location");
        ApiAnswer {
            status: answer.status,
            tag: answer.header("ETag").map(str::to_owned),
            location: location.map(|it| it.trim_start_matches("/api/v1").to_owned()),
            json: serde_json::from_slice(&answer.body).unwrap_or(Value::Null),
        }
    }
}
