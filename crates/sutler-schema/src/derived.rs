//! Generates the schema of a plan from the Rust type that reads its parameters.
//!
//! Draft 7, because platforms support it more widely than 2020-12: OSB requires draft 4 only, the
//! validators in use (ajv, gojsonschema, json-schema-validator) all support 7 and some nothing newer,
//! and the keywords that a struct needs (`type`, `properties`, `required`, `enum`, bounds) mean the same
//! in draft 4, except `const` and numeric exclusive bounds.

use crate::compiled_schema::SCHEMA_BYTES_MAX;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Generates the schema that accepts what `T` deserialises, for `schemas.….parameters` of a plan.
///
/// The schema names its dialect and refers only to itself. Types are inlined where they are used;
/// only if that makes it larger than a catalog allows (64 kB), or if a type contains itself, are they
/// under `#/definitions`.
pub fn derived_schema<T: JsonSchema>() -> Value {
    let inline = generate::<T>(true);
    if inline.to_string().len() <= SCHEMA_BYTES_MAX {
        inline
    } else {
        generate::<T>(false)
    }
}

fn generate<T: JsonSchema>(inline_subschemas: bool) -> Value {
    let settings = SchemaSettings::draft07()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = inline_subschemas);
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
