//! Unknown fields in requests about an instance that does not exist: they must be ignored.
//!
//! Nothing is created. Provisions with unknown fields: `repeat.rs`.

use crate::case::{Case, Level, Scope};
use crate::client::StopReason;
use crate::created::{BindingId, InstanceId};
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_client::wire::Method;

const UNKNOWN_FIELDS: Case = Case {
    name: "unknown-fields",
    line: "B-003",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Fields of an update or a bind that nobody knows are ignored at any depth: it is answered with them as without.",
};

pub(crate) const CASES: &[&Case] = &[&UNKNOWN_FIELDS];

/// Sends requests with and without unknown fields.
pub(crate) async fn walk(run: &PlanRun) -> Result<(), StopReason> {
    let instance = InstanceId::new();
    let binding = BindingId::new(&instance);
    let owner = run.owner();
    let ids = json!({ "service_id": owner.service_id, "plan_id": owner.plan_id });
    for (target, method, known) in [
        (
            Target::Instance(&instance),
            Method::Patch,
            "previous_values",
        ),
        (Target::Binding(&binding), Method::Put, "bind_resource"),
    ] {
        let mut body = ids.clone();
        body[known] = json!({});
        let plain = ask(run, target, method, &body).await?;
        let more = ask(run, target, method, &with_additions(&body, known)).await?;
        run.record_broker(&UNKNOWN_FIELDS, &more, same(&plain, &more));
    }
    Ok(())
}

/// The body with unknown fields at the top level and in a known object.
fn with_additions(body: &Value, known: &str) -> Value {
    let addition = json!({ "deep": [{ "deeper": null }, [1.5, "text"]] });
    let mut more = body.clone();
    more["sutler_check_unknown"] = addition.clone();
    more[known]["sutler_check_unknown"] = addition;
    more
}

async fn ask(
    run: &PlanRun,
    target: Target<'_>,
    method: Method,
    body: &Value,
) -> Result<Arc<Exchange>, StopReason> {
    let request = with_incomplete(target.request(method), true).body(body.to_string());
    match method {
        Method::Put => run.put_request(target, request).await,
        _ => run.client.ask(request).await,
    }
}

/// Both have the same status; not compared once something was created.
fn same(plain: &Exchange, more: &Exchange) -> Result<(), String> {
    let is_made = plain.is(&[200, 201, 202]) && more.is(&[200, 201, 202]);
    if is_made || plain.status() == more.status() {
        return Ok(());
    }
    let (expected, got) = (plain.got(), more.got());
    Err(format!("expected {expected} as without them, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::with_additions;
    use serde_json::json;

    #[test]
    fn additions_keep_existing_fields() {
        let body = json!({ "plan_id": "p", "bind_resource": { "app_guid": "a" } });
        let more = with_additions(&body, "bind_resource");
        assert_eq!(more["plan_id"], "p");
        assert_eq!(more["bind_resource"]["app_guid"], "a");
        assert!(more["bind_resource"]["sutler_check_unknown"].is_object());
        assert!(more["sutler_check_unknown"].is_object());
    }
}
