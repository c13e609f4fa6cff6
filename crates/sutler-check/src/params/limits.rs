//! Limits of samples and schemas. Schemas are untrusted, and samples are only useful while they are small.

use serde_json::Value;

/// Deepest sample, in levels below the top.
pub(super) const DEPTH_MAX: usize = 6;
/// Maximum entries or items of one value of a sample.
pub(super) const WIDTH_MAX: usize = 32;
/// Maximum values in a sample.
pub(super) const VALUES_MAX: usize = 2_000;
/// Longest text of a sample, in characters.
pub(super) const TEXT_MAX: usize = 4_096;
/// Maximum values tried at one position.
pub(super) const CANDIDATES_MAX: usize = 8;
/// Maximum subschemas visited while samples are derived.
pub(super) const STEPS_MAX: u32 = 500;
/// Longest schema, in bytes (B-079).
pub(super) const SCHEMA_BYTES_MAX: usize = 65_536;
/// Maximum values in a schema.
pub(super) const SCHEMA_VALUES_MAX: usize = 8_000;
/// Deepest chain of subschemas that apply to the same value.
pub(super) const CHAIN_MAX: usize = 48;
/// Maximum rules that the validator may apply to one sample.
pub(super) const APPLICATIONS_MAX: u64 = 1_000_000;
/// Maximum patterns in a schema, and the largest of them compiled, in bytes.
pub(super) const PATTERNS_MAX: usize = 100;
pub(super) const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Maximum backtracking steps of a pattern over one text.
pub(super) const BACKTRACKS_MAX: usize = 10_000;

/// Whether a value is small enough to be used.
pub(super) fn is_small(value: &Value) -> bool {
    let mut values = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        values += 1;
        if level > DEPTH_MAX || values > VALUES_MAX {
            return false;
        }
        match value {
            Value::Array(items) if items.len() <= WIDTH_MAX => {
                open.extend(items.iter().map(|it| (it, level + 1)));
            }
            Value::Object(entries) if entries.len() <= WIDTH_MAX => {
                open.extend(entries.values().map(|it| (it, level + 1)));
            }
            Value::Array(_) | Value::Object(_) => return false,
            Value::String(text) if text.len() > 4 * TEXT_MAX => return false,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}
