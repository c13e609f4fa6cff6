//! The parameter schemas of a plan, and the rules of OSB about them (B-078, B-079).
//!
//! Checks size, `$schema` and references. `sutler-schema` compiles schemas and checks parameters.

use super::faults::Findings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Longest schema, in bytes of compact JSON (B-079: 64 kB).
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Keywords that refer to another schema, in any draft.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The parameter schemas of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schemas {
    /// For instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_instance: Option<InstanceSchemas>,
    /// For bindings; used only if the plan is bindable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_binding: Option<BindingSchemas>,
}

/// The schemas for instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstanceSchemas {
    /// For provision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<OperationSchema>,
    /// For update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<OperationSchema>,
}

/// The schemas for bindings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BindingSchemas {
    /// For bind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<OperationSchema>,
}

/// The schema for one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationSchema {
    /// A JSON Schema, draft 4 or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

impl Schemas {
    /// The schema for provision.
    pub fn provision(&self) -> Option<&Value> {
        self.service_instance
            .as_ref()?
            .create
            .as_ref()?
            .parameters
            .as_ref()
    }

    /// The schema for update.
    pub fn update(&self) -> Option<&Value> {
        self.service_instance
            .as_ref()?
            .update
            .as_ref()?
            .parameters
            .as_ref()
    }

    /// The schema for bind.
    pub fn bind(&self) -> Option<&Value> {
        self.service_binding
            .as_ref()?
            .create
            .as_ref()?
            .parameters
            .as_ref()
    }
}

/// Checks every schema there is.
pub(super) fn check(schemas: &Schemas, path: &str, findings: &mut Findings) {
    let present = [
        ("service_instance.create", schemas.provision()),
        ("service_instance.update", schemas.update()),
        ("service_binding.create", schemas.bind()),
    ];
    for (operation, schema) in present {
        if let Some(schema) = schema {
            check_schema(schema, &format!("{path}.{operation}.parameters"), findings);
        }
    }
}

fn check_schema(schema: &Value, path: &str, findings: &mut Findings) {
    let Some(object) = schema.as_object() else {
        findings.fault(path.to_owned(), "must be a JSON object", "B-079");
        return;
    };
    match object.get("$schema").and_then(Value::as_str) {
        Some(dialect) if !dialect.is_empty() => (),
        Some(_) | None => {
            findings.fault(
                path.to_owned(),
                "must say its dialect in `$schema`",
                "B-079",
            );
        }
    }
    let bytes = serialised_bytes(schema);
    if bytes > SCHEMA_BYTES_MAX {
        let reason = format!("must not be larger than {SCHEMA_BYTES_MAX} bytes, but has {bytes}");
        findings.fault(path.to_owned(), reason, "B-079");
    }
    for reference in external_references(schema) {
        let shown: String = reference.target.chars().take(80).collect();
        let reason = format!(
            "must not refer outside itself, but {} is `{shown}`",
            reference.keyword
        );
        findings.fault(format!("{path}{}", reference.pointer), reason, "B-079");
    }
}

fn serialised_bytes(schema: &Value) -> usize {
    struct Counter(usize);
    impl fmt::Write for Counter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = fmt::write(&mut counter, format_args!("{schema}"));
    counter.0
}

struct ExternalReference<'a> {
    /// Path of the reference, e.g. `.properties.size`.
    pointer: String,
    keyword: &'a str,
    target: &'a str,
}

/// Finds references that do not begin with `#`, at any position: even where a validator would treat them
/// as data, since validators disagree about that.
fn external_references(schema: &Value) -> Vec<ExternalReference<'_>> {
    let mut found = Vec::new();
    // An explicit stack: a schema built in code may be nested deeper than the thread's stack allows.
    let mut open = vec![(String::new(), schema)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    if let (true, Some(target)) =
                        (REFERENCES.contains(&key.as_str()), inner.as_str())
                        && !target.starts_with('#')
                    {
                        let pointer = pointer.clone();
                        found.push(ExternalReference {
                            pointer,
                            keyword: key,
                            target,
                        });
                    }
                    if inner.is_object() || inner.is_array() {
                        open.push((format!("{pointer}.{key}"), inner));
                    }
                }
            }
            Value::Array(items) => {
                for (nth, inner) in items.iter().enumerate() {
                    open.push((format!("{pointer}[{nth}]"), inner));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }
    found
}
