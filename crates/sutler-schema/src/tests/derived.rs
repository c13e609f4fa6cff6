//! Schemas generated from Rust types.

use super::{check, compile};
use crate::derived_schema;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a user may ask for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Order {
    /// In gigabytes.
    #[schemars(range(min = 1, max = 100))]
    size: u32,
    #[serde(default)]
    region: Region,
    replica: Option<Replica>,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Region {
    #[default]
    NorthSea,
    BalticSea,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Replica {
    region: Region,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Tree {
    children: Vec<Tree>,
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").map(|target| target.to_string()));
            object.values().for_each(|inner| references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// Holds: B-079.
#[test]
fn a_derived_schema_names_its_dialect_and_is_inline() {
    let schema = derived_schema::<Order>();
    assert_eq!(
        schema["$schema"],
        json!("http://json-schema.org/draft-07/schema#")
    );
    assert_eq!(schema["properties"]["size"]["maximum"], json!(100));
    assert_eq!(schema["required"], json!(["size"]));
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert!(schema.to_string().len() < 64 * 1024);
}

#[test]
fn a_derived_schema_accepts_the_values_of_its_type() {
    let good = json!({"size": 3, "region": "baltic-sea", "replica": {"region": "north-sea"}});
    assert_eq!(check(derived_schema::<Order>(), good.clone()), Ok(()));
    assert!(serde_json::from_value::<Order>(good).is_ok());
    let bad = [
        (json!({}), "`size` is required"),
        (json!({"size": 0}), "`size` must be at least 1"),
        (json!({"size": 101}), "`size` must be at most 100"),
        (
            json!({"size": 1, "colour": "red"}),
            "`colour` is not allowed",
        ),
        (
            json!({"size": 1, "labels": {"a": 1}}),
            "`labels.a` must be text",
        ),
        (json!({"size": 1, "region": "moon"}), "`region`"),
    ];
    for (value, expected) in bad {
        let sentence = check(derived_schema::<Order>(), value).unwrap_err();
        assert!(sentence.contains(expected), "{sentence} lacks {expected}");
    }
}

#[test]
fn a_type_that_contains_itself_refers_only_to_its_own_schema() {
    let schema = derived_schema::<Tree>();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(!found.is_empty());
    assert!(
        found.iter().all(|target| target.starts_with("\"#")),
        "{found:?}"
    );
    assert_eq!(
        check(schema.clone(), json!({"children": [{"children": []}]})),
        Ok(())
    );
    assert!(check(schema, json!({"children": [{"children": 1}]})).is_err());
}

#[test]
fn any_value_and_the_empty_type_have_schemas() {
    assert!(compile(derived_schema::<Value>()).is_ok());
    assert!(compile(derived_schema::<serde_json::Map<String, Value>>()).is_ok());
    assert!(compile(derived_schema::<()>()).is_ok());
}
