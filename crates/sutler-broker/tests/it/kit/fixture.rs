//! The catalog that the tests are held against: one plan for every choice a plan can make.
//!
//! Which plans are synchronous and which only asynchronous is said by the service (`script.rs`), by
//! the plan's id. Offerings and plans are plain JSON here, so that no type of ours stands between.

use serde_json::{Value, json};

/// The offering that can do everything, and its plans.
pub(crate) const DB: &str = "db-id";
/// Asynchronous where the platform accepts it.
pub(crate) const SMALL: &str = "small-id";
/// The same with everything optional: schemas, maintenance, rotation, a polling limit.
pub(crate) const LARGE: &str = "large-id";
/// Always at once.
pub(crate) const SYNC: &str = "sync-id";
/// Only asynchronous.
pub(crate) const ASYNC: &str = "async-id";
/// Cannot be bound, although its offering can.
pub(crate) const UNBINDABLE: &str = "unbindable-id";
/// Cannot be left for another plan.
pub(crate) const FIXED: &str = "fixed-id";

/// The offering that can do next to nothing: no fetch, no context updates, no plan changes.
pub(crate) const PLAIN: &str = "plain-offering-id";
/// Its plan without anything.
pub(crate) const BARE: &str = "bare-id";
/// Bindable, although the offering is not, and its bindings cannot be fetched.
pub(crate) const BINDABLE: &str = "bindable-id";
/// May be left for another plan, although the offering says nothing.
pub(crate) const MOVABLE: &str = "movable-id";

/// The plans of the offerings that need a permission of the platform.
pub(crate) const LOGS: &str = "logs-plan-id";
pub(crate) const ROUTES: &str = "routes-plan-id";
pub(crate) const VOLUMES: &str = "volumes-plan-id";

/// The maintenance version of [`LARGE`].
pub(crate) const MAINTENANCE: &str = "1.2.3";

/// The whole catalog.
pub(crate) fn catalog() -> Value {
    json!({ "services": [
        db(),
        plain(),
        special("logs", LOGS, "syslog_drain"),
        special("routes", ROUTES, "route_forwarding"),
        special("volumes", VOLUMES, "volume_mount"),
    ] })
}

/// The catalog without one plan.
pub(crate) fn catalog_without(plan_id: &str) -> Value {
    let mut catalog = catalog();
    for service in catalog["services"]
        .as_array_mut()
        .expect("services are a list")
    {
        let plans = service["plans"].as_array_mut().expect("plans are a list");
        plans.retain(|plan| plan["id"] != plan_id);
    }
    catalog
}

/// The offering of a plan.
pub(crate) fn service_of(plan_id: &str) -> String {
    let catalog = catalog();
    let services = catalog["services"].as_array().expect("services are a list");
    let has = |service: &&Value| {
        service["plans"]
            .as_array()
            .is_some_and(|plans| plans.iter().any(|it| it["id"] == plan_id))
    };
    let found = services
        .iter()
        .find(has)
        .and_then(|service| service["id"].as_str());
    found.unwrap_or("no-such-service").to_owned()
}

fn db() -> Value {
    json!({
        "name": "db", "id": DB, "description": "A database.",
        "tags": ["relational", "test"],
        "bindable": true, "plan_updateable": true, "allow_context_updates": true,
        "instances_retrievable": true, "bindings_retrievable": true,
        "metadata": { "displayName": "Database", "shareable": true },
        "dashboard_client": { "id": "client", "secret": "hush", "redirect_uri": "https://here" },
        "plans": [
            { "id": SMALL, "name": "small", "description": "For few." },
            large(),
            { "id": SYNC, "name": "sync", "description": "At once." },
            { "id": ASYNC, "name": "async", "description": "Later." },
            { "id": UNBINDABLE, "name": "unbindable", "description": "Alone.", "bindable": false },
            { "id": FIXED, "name": "fixed", "description": "For ever.", "plan_updateable": false },
        ],
    })
}

fn large() -> Value {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": { "size": { "type": "integer", "minimum": 1 } },
        "additionalProperties": false,
    });
    json!({
        "id": LARGE, "name": "large", "description": "For many.",
        "metadata": { "bullets": ["big"], "costs": [{ "amount": { "usd": 9.5 }, "unit": "MONTHLY" }] },
        "free": false, "binding_rotatable": true, "maximum_polling_duration": 3600,
        "maintenance_info": { "version": MAINTENANCE, "description": "Restarts it." },
        "schemas": {
            "service_instance": {
                "create": { "parameters": schema.clone() },
                "update": { "parameters": schema.clone() },
            },
            "service_binding": { "create": { "parameters": schema } },
        },
    })
}

fn plain() -> Value {
    json!({
        "name": "plain", "id": PLAIN, "description": "Hardly anything.", "bindable": false,
        "plans": [
            { "id": BARE, "name": "bare", "description": "Nothing." },
            { "id": BINDABLE, "name": "bindable", "description": "Bound.", "bindable": true },
            { "id": MOVABLE, "name": "movable", "description": "Moves.", "plan_updateable": true },
        ],
    })
}

fn special(name: &str, plan_id: &str, requires: &str) -> Value {
    json!({
        "name": name, "id": format!("{name}-id"), "description": "Needs a permission.",
        "bindable": true, "bindings_retrievable": true, "requires": [requires],
        "plans": [{ "id": plan_id, "name": "only", "description": "The only one." }],
    })
}
