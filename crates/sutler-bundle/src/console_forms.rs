//! Form definitions for OpenShift's console: order, headings and field types of parameters.
//!
//! They are part of a plan's metadata, only if `Offer::forms` is set. JSON Schemas are `schema.rs`.

use crate::manifest::{Parameter, PlanEntry, ValidationPoint};
use serde_json::{Value, json};

/// The forms of a plan: `metadata.schemas`.
#[must_use]
pub(crate) fn definitions(plan: &PlanEntry) -> Value {
    let of = |parameters: &[Parameter], occasion: ValidationPoint| json!({ "openshift_form_definition": form(parameters, occasion) });
    json!({
        "service_instance": {
            "create": of(&plan.parameters, ValidationPoint::Create),
            "update": of(&plan.parameters, ValidationPoint::Update),
        },
        "service_binding": { "create": of(&plan.bind_parameters, ValidationPoint::Create) },
    })
}

fn form(parameters: &[Parameter], occasion: ValidationPoint) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut heading: Option<&str> = None;
    let shown = |it: &&Parameter| occasion == ValidationPoint::Create || it.updatable;
    for parameter in parameters.iter().filter(shown) {
        let item = field(parameter);
        let group = parameter
            .display_group
            .as_deref()
            .filter(|it| !it.is_empty());
        match (group, items.last_mut()) {
            // Adjacent parameters with the same heading share one group.
            (Some(group), Some(last)) if heading == Some(group) => {
                if let Some(inner) = last["items"].as_array_mut() {
                    inner.push(item);
                }
            }
            (Some(group), _) => {
                items.push(json!({ "title": group, "type": "fieldset", "items": [item] }));
            }
            (None, _) => items.push(item),
        }
        heading = group;
    }
    items
}

fn field(parameter: &Parameter) -> Value {
    match &parameter.display_type {
        Some(kind) => json!({ "key": parameter.name, "type": kind }),
        None => json!(parameter.name),
    }
}
