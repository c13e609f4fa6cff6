//! Bodies of binds, and the next attempt after a refusal: with an application, then asynchronously. Pure.
//!
//! Whether a refusal is correct is checked in `create.rs`.

use super::binding_contents;
use crate::exchange::Exchange;
use crate::params::Parameters;
use crate::plan_run::PlanRun;
use serde_json::{Map, Value, json};

/// Options of a bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BindMode {
    /// The body names an application.
    pub app: bool,
    /// A 202 is accepted.
    pub incomplete: bool,
}

impl BindMode {
    /// Minimal: the request of a service key.
    pub(crate) const BARE: Self = Self {
        app: false,
        incomplete: false,
    };
    /// With everything that a broker may require.
    pub(crate) const FULL: Self = Self {
        app: true,
        incomplete: true,
    };

    /// The next mode to try after a refusal, if any.
    pub(crate) fn after(self, refusal: &Exchange) -> Option<Self> {
        let status = refusal.status()?;
        if !(400..500).contains(&status) {
            return None;
        }
        let patient = Self {
            incomplete: true,
            ..self
        };
        let requires_async = refusal.must_be_error(422, "AsyncRequired").is_ok();
        match (self.app, self.incomplete) {
            (_, false) if requires_async => Some(patient),
            (false, _) => Some(Self { app: true, ..self }),
            (true, false) => Some(patient),
            (true, true) => None,
        }
    }
}

/// A body that binds an instance of this plan.
pub(crate) fn body(run: &PlanRun, mode: BindMode) -> Value {
    let mut body = json!({
        "service_id": run.offering().id,
        "plan_id": run.plan().id,
        "context": {
            "platform": "cloudfoundry",
            "organization_guid": "sutler-check-organization",
            "organization_name": "sutler-check",
            "space_guid": "sutler-check-space",
            "space_name": "sutler-check",
        },
    });
    let mut resource = Map::new();
    if mode.app {
        resource.insert("app_guid".to_owned(), json!("sutler-check-application"));
    }
    if binding_contents::requires(run, "route_forwarding") {
        resource.insert("route".to_owned(), json!("sutler-check.example.com"));
    }
    if !resource.is_empty() {
        body["bind_resource"] = Value::Object(resource);
    }
    if let (Some(parameters), _) = parameters(run) {
        body["parameters"] = Value::Object(parameters.clone());
    }
    body
}

/// Adds all fields that a platform may send (B-181).
pub(crate) fn with_all_there_is(mut body: Value) -> Value {
    body["app_guid"] = json!("sutler-check-application");
    let resource = &mut body["bind_resource"];
    resource["app_guid"] = json!("sutler-check-application");
    resource["space_guid"] = json!("sutler-check-space");
    resource["app_annotations"] = json!({ "example.com/team": "sutler-check" });
    body
}

/// Parameters to bind with, and others. If the first are empty, the others are used: the parameters of a
/// binding can only be observed if there are some.
fn parameters(run: &PlanRun) -> (Option<&Parameters>, Result<&Parameters, &str>) {
    let sample = &run.samples().bind;
    match (sample.valid(), sample.other()) {
        (Ok(Some(empty)), Ok(other)) if empty.is_empty() => (Some(other), Ok(empty)),
        (valid, other) => (valid.ok().flatten(), other),
    }
}

/// A bind that differs from another in its parameters.
pub(crate) enum OtherBind {
    Body(Value),
    /// There is none; the reason.
    None(String),
}

/// The same bind with other parameters: some that the schema allows, or a new one if there is none.
pub(crate) fn other(run: &PlanRun, body: &Value) -> OtherBind {
    let mut other = body.clone();
    let has_schema = run
        .plan()
        .raw
        .pointer("/schemas/service_binding/create/parameters")
        .is_some();
    match parameters(run).1 {
        Ok(parameters) => other["parameters"] = Value::Object(parameters.clone()),
        Err(reason) if has_schema => return OtherBind::None(reason.to_owned()),
        Err(_) => other["parameters"]["sutler-check-other"] = json!(true),
    }
    OtherBind::Body(other)
}

#[cfg(test)]
mod tests {
    use super::{BindMode, with_all_there_is};
    use crate::exchange::Exchange;
    use serde_json::json;
    use sutler_client::wire::{Method, Request, TransportError};

    #[test]
    fn after_a_refusal_the_next_bind_adds_an_application_then_accepts_incomplete() {
        let async_required = Exchange::answered(422, &json!({ "error": "AsyncRequired" }));
        let other = Exchange::answered(400, &json!({}));
        let mode = |app, incomplete| BindMode { app, incomplete };
        let rows = [
            (mode(false, false), &async_required, Some(mode(false, true))),
            (mode(true, false), &async_required, Some(mode(true, true))),
            (mode(false, true), &async_required, Some(mode(true, true))),
            (mode(false, false), &other, Some(mode(true, false))),
            (mode(false, true), &other, Some(mode(true, true))),
            (mode(true, false), &other, Some(mode(true, true))),
            (mode(true, true), &other, None),
        ];
        for (before, refusal, after) in rows {
            assert_eq!(before.after(refusal), after, "{before:?}");
        }
    }

    #[test]
    fn accepted_and_failed_binds_are_not_repeated() {
        for status in [200, 201, 202, 500] {
            let answer = Exchange::answered(status, &json!({}));
            assert_eq!(BindMode::BARE.after(&answer), None);
        }
        let request = Request::new(Method::Put, &["v2"]);
        let no_answer = Exchange::new(request, Err(TransportError::Closed));
        assert_eq!(BindMode::BARE.after(&no_answer), None);
    }

    #[test]
    fn adding_all_fields_keeps_existing_ones() {
        let all = with_all_there_is(json!({ "bind_resource": { "route": "a.example" } }));
        assert_eq!(all["bind_resource"]["route"], "a.example");
        assert!(all["bind_resource"]["app_annotations"].is_object());
        let all = with_all_there_is(json!({}));
        assert!(all["bind_resource"]["app_guid"].is_string());
    }
}
