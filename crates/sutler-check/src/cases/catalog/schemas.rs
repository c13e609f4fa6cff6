//! Cases about the parameter schemas of a catalog.
//!
//! Schemas are untrusted: `params` bounds the work on them, and a schema that is only too large for a check
//! is not reported as a fault of the broker.

use super::field::{CaseVerdict, CatalogVerdict, plan_places};
use crate::case::{Case, Level, Scope};
use crate::params;
use serde_json::Value;

pub(super) const DIALECT: Case = Case {
    name: "schema-dialect",
    line: "B-079",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A schema of parameters names its dialect by `$schema`.",
};

pub(super) const SIZE: Case = Case {
    name: "schema-size",
    line: "B-079",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A schema of parameters is not larger than 64 kB.",
};

pub(super) const REFERENCES: Case = Case {
    name: "schema-references",
    line: "B-079",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A schema of parameters does not refer to anything outside of itself.",
};

pub(super) const VALID: Case = Case {
    name: "schema-valid",
    line: "B-079",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A schema of parameters is a valid JSON Schema.",
};

/// Largest schema, in bytes.
const BYTES_MAX: usize = 65_536;

/// Maximum number of different schemas checked: compiling each takes time.
const SCHEMAS_MAX: usize = 300;

/// Paths of the schemas in a plan.
const PLACES: [&str; 3] = [
    "service_instance/create",
    "service_instance/update",
    "service_binding/create",
];

/// Checks all schemas of a catalog.
pub(super) fn check(catalog: &Value, into: &mut Vec<CaseVerdict>) {
    let plans = plan_places(catalog);
    let mut schemas: Vec<(String, &Value)> = Vec::new();
    for (place, plan) in &plans {
        if schemas.len() >= SCHEMAS_MAX {
            break;
        }
        for name in PLACES {
            let schema = plan.pointer(&format!("/schemas/{name}/parameters"));
            let schema = schema.filter(|it| !it.is_null());
            if let Some(schema) = schema.filter(|it| !schemas.iter().any(|known| known.1 == *it)) {
                schemas.push((format!("{place}, {name}"), schema));
            }
        }
    }
    let rules: [(&'static Case, SchemaRule); 4] = [
        (&DIALECT, dialect),
        (&SIZE, size),
        (&REFERENCES, references),
        (&VALID, valid),
    ];
    for (case, check) in rules {
        let mut case_verdict = CatalogVerdict::Nowhere("no plan has a schema".to_owned());
        for (place, schema) in &schemas {
            let judgement = check(schema).map_err(|why| format!("{place}: the schema {why}"));
            let failed = judgement.is_err();
            case_verdict = CatalogVerdict::Judged(judgement);
            if failed {
                break;
            }
        }
        into.push((case, case_verdict));
    }
}

type SchemaRule = fn(&Value) -> Result<(), String>;

fn dialect(schema: &Value) -> Result<(), String> {
    match schema.get("$schema") {
        Some(Value::String(text)) if !text.is_empty() => Ok(()),
        Some(_) => Err("has a `$schema` that is not a non-empty string".to_owned()),
        None => Err("has no `$schema`".to_owned()),
    }
}

fn size(schema: &Value) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes <= BYTES_MAX {
        Ok(())
    } else {
        Err(format!("has {bytes} bytes"))
    }
}

fn references(schema: &Value) -> Result<(), String> {
    match params::external_references(schema).first() {
        Some(reference) => Err(format!("refers to {reference:?}")),
        None => Ok(()),
    }
}

fn valid(schema: &Value) -> Result<(), String> {
    match params::schema_fault(schema) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}
