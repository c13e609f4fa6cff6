//! The JSON Schema of the configuration, derived from its types, and lookups in it.

use super::model::BrokerConfig;
use serde_json::{Map, Value, json};

/// The JSON Schema of a configuration file.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(BrokerConfig).to_value();
    let open = |description: &str| json!({ "type": "object", "description": description });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let catalog = "The catalog of an application of Spring Cloud Open Service Broker.";
        properties.insert("spring".to_owned(), open(catalog));
        let settings = "Settings of the Spring OSBAPI framework: force-delete and cleanup.";
        properties.insert("com".to_owned(), open(settings));
    }
    schema["title"] = json!("Configuration of sutler broker");
    schema
}

/// Follows references to the actual schema, without the `null` alternative.
pub(super) fn resolve<'a>(part: &'a Value, root: &'a Value) -> &'a Value {
    if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return resolve(&root["$defs"][name], root);
    }
    let is_something = |it: &&Value| it.get("type").and_then(Value::as_str) != Some("null");
    match part.get("anyOf").and_then(Value::as_array) {
        Some(choices) => choices
            .iter()
            .find(is_something)
            .map_or(part, |it| resolve(it, root)),
        None => part,
    }
}

/// The keys of a mapping with their schemas.
pub(super) fn properties(part: &Value) -> Option<&Map<String, Value>> {
    part.get("properties").and_then(Value::as_object)
}

/// Whether a value is a list or a mapping.
pub(super) fn is_composite(part: &Value) -> bool {
    let is = |name: &str| match &part["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|it| it == name),
        _ => false,
    };
    is("object") || is("array")
}
