//! A schema from an unknown broker, compiled only if its work on a sample is bounded. Fetches nothing.
//!
//! Compiling and bounding is done by `sutler-schema`; this file chooses the limits, which are more lenient
//! than a broker's own, and tells schemas that are invalid from those that are only too much for a check.

use super::limits::{
    APPLICATIONS_MAX, BACKTRACKS_MAX, DEPTH_MAX, PATTERN_BYTES_MAX, PATTERNS_MAX, is_small,
};
use serde_json::Value;
use std::collections::BTreeSet;
use sutler_schema::{CompileError, CompileOptions, CompiledSchema, Extent, PatternEngine};

/// References by names that only a whole implementation of the dialect can follow.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// A schema that small values can be checked against.
pub(super) struct Schema<'a> {
    pub(super) root: &'a Value,
    compiled: CompiledSchema,
}

impl<'a> Schema<'a> {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason, as the rest of a sentence that begins with "the schema".
    pub(super) fn compile(root: &'a Value) -> Result<Self, String> {
        if has_dynamic_references(root) {
            return Err("has references that only its own dialect can follow".to_owned());
        }
        let compiled = compiled(root).map_err(|error| error.to_string())?;
        Ok(Self { root, compiled })
    }

    /// Whether a value is small and fits.
    pub(super) fn fits(&self, value: &Value) -> bool {
        self.can_check(value) && self.compiled.is_valid(value)
    }

    /// Whether a value is small and does not fit.
    pub(super) fn forbids(&self, value: &Value) -> bool {
        self.can_check(value) && !self.compiled.is_valid(value)
    }

    fn can_check(&self, value: &Value) -> bool {
        if !is_small(value) {
            return false;
        }
        let extent = Extent::of(value);
        extent.levels <= self.compiled.depth_max()
            && self.compiled.applications_max(extent) <= APPLICATIONS_MAX
    }

    /// The target of a reference inside the document.
    pub(super) fn resolve(&self, reference: &str) -> Option<&'a Value> {
        resolve(self.root, reference)
    }
}

/// The reason why a schema is not a JSON Schema, if it is not, as the rest of a sentence that begins with
/// "the schema". Does not report what is only too much for a check: work, unknown dialects, and patterns,
/// which have a language of their own.
pub(crate) fn fault(root: &Value) -> Option<String> {
    if !root.is_object() {
        return Some("is not an object".to_owned());
    }
    let is_foreign = root.get("$schema").is_some() && !sutler_schema::has_known_dialect(root);
    if is_foreign || has_dynamic_references(root) || !external_references(root).is_empty() {
        return None;
    }
    let mut plain = root.clone();
    without_patterns(&mut plain);
    match compiled(&plain) {
        Err(error @ CompileError::Invalid { .. }) => Some(error.to_string()),
        Err(CompileError::Unbounded { .. }) | Ok(_) => None,
    }
}

/// Removes the patterns; entries that are only named like one stay.
fn without_patterns(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|name, it| name != "pattern" || !it.is_string());
            entries.remove("patternProperties");
            entries.values_mut().for_each(without_patterns);
        }
        Value::Array(items) => items.iter_mut().for_each(without_patterns),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The references of a schema that lead outside of it.
pub(crate) fn external_references(root: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut references = BTreeSet::new();
    each_object(root, |object| {
        for name in ["$id", "id"] {
            if let Some(Value::String(text)) = object.get(name) {
                names.insert(text.trim_end_matches('#').to_owned());
            }
        }
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(text)) = object.get(name) {
                references.insert(text.clone());
            }
        }
    });
    // A name inside the document is found by its end: it may be relative to another.
    let inside = |reference: &str| {
        let document = reference.split('#').next().unwrap_or_default();
        document.is_empty()
            || names
                .iter()
                .any(|it| !it.is_empty() && (it.ends_with(document) || document.ends_with(&**it)))
    };
    references.retain(|it| !inside(it));
    references
}

fn compiled(root: &Value) -> Result<CompiledSchema, CompileError> {
    let options = CompileOptions {
        // Patterns may look around and back, as in other languages: not in linear time, so limited.
        pattern_engine: PatternEngine::Backtracking {
            steps_max: BACKTRACKS_MAX,
        },
        pattern_bytes_max: PATTERN_BYTES_MAX,
        patterns_bytes_max: PATTERN_BYTES_MAX * PATTERNS_MAX,
        patterns_max: PATTERNS_MAX,
        depth_max: DEPTH_MAX,
        depth_min: 0,
        allow_inner_ids: true,
        refuse_unresolved: true,
    };
    CompiledSchema::compile(root, &options)
}

fn has_dynamic_references(root: &Value) -> bool {
    let mut dynamic = false;
    each_object(root, |object| {
        dynamic |= DYNAMIC.iter().any(|it| object.contains_key(*it));
    });
    dynamic
}

fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') {
        return None;
    }
    root.pointer(pointer)
}

fn each_object<'a>(root: &'a Value, mut see: impl FnMut(&'a serde_json::Map<String, Value>)) {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(entries) => {
                see(entries);
                open.extend(entries.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
