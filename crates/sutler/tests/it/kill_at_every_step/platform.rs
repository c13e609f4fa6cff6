//! A platform that takes one instance through its lifecycle: it repeats requests without a response, and
//! polls.
//!
//! Blocking, and checks only that each request succeeds; the platform of `sutler-crash` checks all acknowledged
//! state after every restart.

use super::fixture::Fixture;
use crate::http_request::BrokerRequest;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Actions of a lifecycle, in order.
pub(super) const ACTIONS: [&str; 5] = ["provision", "update", "bind", "unbind", "deprovision"];

/// Time limit of an operation, including all kills.
const TIMEOUT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(30);

/// The platform's view of one instance and its binding.
pub(super) struct Platform {
    instance: String,
    service: Value,
    plan: Value,
    /// Parameters of the provision and of the update.
    pub(super) parameters: [Value; 2],
}

impl Platform {
    /// Reads the catalog, and uses its first service and plan.
    pub(super) fn new(fixture: &mut Fixture, instance: String, parameters: [Value; 2]) -> Self {
        let (status, catalog) = fixture.send_until_answered(&BrokerRequest::get("/v2/catalog"));
        assert_eq!(status, 200, "{catalog}");
        let service = &catalog["services"][0];
        Self {
            instance,
            service: service["id"].clone(),
            plan: service["plans"][0]["id"].clone(),
            parameters,
        }
    }

    fn path(&self, action: &str) -> String {
        let instance = format!("/v2/service_instances/{}", self.instance);
        match action {
            "bind" | "unbind" => format!("{instance}/service_bindings/b"),
            _ => instance,
        }
    }

    fn request(&self, action: &str) -> BrokerRequest {
        let path = format!("{}?accepts_incomplete=true", self.path(action));
        let mut body = json!({ "service_id": self.service, "plan_id": self.plan });
        match action {
            "provision" => {
                body["organization_guid"] = json!("o");
                body["space_guid"] = json!("s");
                body["parameters"] = self.parameters[0].clone();
                BrokerRequest::new("PUT", &path).json(&body)
            }
            "update" => {
                body["parameters"] = self.parameters[1].clone();
                BrokerRequest::new("PATCH", &path).json(&body)
            }
            "bind" => BrokerRequest::new("PUT", &path).json(&body),
            _ => {
                let word = |id: &Value| id.as_str().unwrap_or_default().to_owned();
                let (service, plan) = (word(&self.service), word(&self.plan));
                BrokerRequest::new(
                    "DELETE",
                    &format!("{path}&service_id={service}&plan_id={plan}"),
                )
            }
        }
    }

    /// Sends an action and waits until it has succeeded, across all kills.
    ///
    /// # Panics
    /// If it does not succeed.
    pub(super) fn until_done(&self, fixture: &mut Fixture, action: &'static str) {
        let (status, answer) = fixture.send_until_answered(&self.request(action));
        match (action, status) {
            (_, 202) => {}
            // Repeated after it was done.
            (_, 200) | ("provision" | "bind", 201) | ("unbind" | "deprovision", 410) => return,
            _ => panic!("{action}: {status} {answer}"),
        }
        let operation = answer["operation"].as_str().unwrap_or_default();
        let path = format!("{}/last_operation?operation={operation}", self.path(action));
        let begun = Instant::now();
        loop {
            let (status, answer) = fixture.send_until_answered(&BrokerRequest::get(&path));
            match (status, answer["state"].as_str()) {
                (200, Some("succeeded")) => return,
                (410, _) if action == "unbind" || action == "deprovision" => return,
                (200, Some("in progress")) => {}
                _ => panic!("{action}: {status} {answer}"),
            }
            assert!(begun.elapsed() < TIMEOUT, "{action} does not end: {answer}");
            std::thread::sleep(POLL);
        }
    }

    /// Credentials of the binding.
    pub(super) fn credentials(&self, fixture: &mut Fixture) -> Value {
        let (status, answer) = fixture.send_until_answered(&BrokerRequest::get(&self.path("bind")));
        assert_eq!(status, 200, "{answer}");
        answer["credentials"].clone()
    }
}
