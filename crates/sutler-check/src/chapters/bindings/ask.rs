//! The bodies of binds, and how a bind that is refused is asked for again: with an application,
//! with patience. Pure; whether a refusal was the right one is judged in `create.rs`.

use super::given;
use crate::exchange::Exchange;
use crate::stage::Stage;
use serde_json::{Map, Value, json};

/// How a bind is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// An application is named.
    pub app: bool,
    /// A 202 is accepted.
    pub incomplete: bool,
}

impl Manner {
    /// As little as may do: this is how a service key is asked for.
    pub(crate) const BARE: Self = Self {
        app: false,
        incomplete: false,
    };
    /// With all that a broker may ask for.
    pub(crate) const FULL: Self = Self {
        app: true,
        incomplete: true,
    };

    /// What to try after a refusal, if anything is left to try.
    pub(crate) fn after(self, refusal: &Exchange) -> Option<Self> {
        let status = refusal.status()?;
        if !(400..500).contains(&status) {
            return None;
        }
        let patient = Self {
            incomplete: true,
            ..self
        };
        let wants_patience = refusal.must_be_error(422, "AsyncRequired").is_ok();
        match (self.app, self.incomplete) {
            (_, false) if wants_patience => Some(patient),
            (false, _) => Some(Self { app: true, ..self }),
            (true, false) => Some(patient),
            (true, true) => None,
        }
    }
}

/// A body that binds an instance of this plan.
pub(crate) fn body(stage: &Stage, manner: Manner) -> Value {
    let mut body = json!({
        "service_id": stage.offering().id,
        "plan_id": stage.plan().id,
        "context": {
            "platform": "cloudfoundry",
            "organization_guid": "sutler-check-organization",
            "organization_name": "sutler-check",
            "space_guid": "sutler-check-space",
            "space_name": "sutler-check",
        },
    });
    let mut resource = Map::new();
    if manner.app {
        resource.insert("app_guid".to_owned(), json!("sutler-check-application"));
    }
    if given::requires(stage, "route_forwarding") {
        resource.insert("route".to_owned(), json!("sutler-check.example.com"));
    }
    if !resource.is_empty() {
        body["bind_resource"] = Value::Object(resource);
    }
    if let Ok(Some(parameters)) = stage.samples().bind.valid() {
        body["parameters"] = Value::Object(parameters.clone());
    }
    body
}

/// The same with everything in it that a platform may send (B-181).
pub(crate) fn with_all_there_is(mut body: Value) -> Value {
    body["app_guid"] = json!("sutler-check-application");
    let resource = &mut body["bind_resource"];
    resource["app_guid"] = json!("sutler-check-application");
    resource["space_guid"] = json!("sutler-check-space");
    resource["app_annotations"] = json!({ "example.com/team": "sutler-check" });
    body
}

/// A bind that differs from another in its parameters.
pub(crate) enum Other {
    Body(Value),
    /// There is none, and why.
    None(String),
}

/// The same bind with other parameters: some that the schema allows, or a new one if there is none.
pub(crate) fn other(stage: &Stage, body: &Value) -> Other {
    let mut other = body.clone();
    let has_schema = stage
        .plan()
        .raw
        .pointer("/schemas/service_binding/create/parameters")
        .is_some();
    match stage.samples().bind.other() {
        Ok(parameters) => other["parameters"] = Value::Object(parameters.clone()),
        Err(reason) if has_schema => return Other::None(reason.to_owned()),
        Err(_) => other["parameters"]["sutler-check-other"] = json!(true),
    }
    Other::Body(other)
}
