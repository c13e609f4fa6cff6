//! A schema for the catalog from the Rust type that will read the parameters.
//!
//! Draft 7, because platforms take it more widely than 2020-12: OSB makes them support draft 4 only, the
//! validators they use (ajv, gojsonschema, json-schema-validator) all went on to 7 and some stopped
//! there, and what a struct needs (`type`, `properties`, `required`, `enum`, bounds) reads the same
//! in draft 4 but for `const` and numeric exclusive bounds.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use sutler_osb::SCHEMA_BYTES_MAX;

/// The schema of what `T` can be deserialised from, for `schemas.….parameters` of a plan.
///
/// It says its dialect, and refers to nothing but itself. Types are written out where they are used;
/// only if that makes it larger than a catalog may carry (64 kB), or if a type contains itself, are
/// they referred to under `#/definitions`.
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
