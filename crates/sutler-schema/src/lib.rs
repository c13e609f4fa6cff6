//! Parameters against JSON Schemas: compiles schemas, bounds their work, and describes broken rules.
//!
//! The only crate of the broker that uses the validator (`jsonschema`); `sutler-check` uses it by itself. Schemas and parameters are both untrusted:
//! nothing is fetched, patterns have a size limit, and the work of a schema is bounded before it runs.
//! Knows neither OSB nor catalogs: callers pass the schemas of a plan as JSON values.
//!
//! Read `parameter_schemas.rs` first (the three schemas of a plan), then `compiled_schema.rs` (one schema).
//! `subschema_graph.rs` and `bounds.rs` compute the bounds, `sentences.rs` the messages; `derived.rs`
//! generates schemas from Rust types.

mod bounds;
mod compiled_schema;
mod derived;
mod parameter_schemas;
mod pattern;
mod sentences;
mod subschema_graph;
#[cfg(test)]
mod tests;

pub use bounds::Extent;
pub use compiled_schema::{
    CompileError, CompileOptions, CompiledSchema, PatternEngine, SCHEMA_BYTES_MAX,
    has_known_dialect,
};
pub use derived::derived_schema;
pub use parameter_schemas::{ParameterSchemas, PlanSchemas, SchemaError};
pub use pattern::{PatternError, TextPattern};
