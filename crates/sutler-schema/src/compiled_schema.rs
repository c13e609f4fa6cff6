//! One compiled schema, whose work on a value is bounded.
//!
//! A schema comes from a catalog and values come from any caller, so neither is trusted. Compiling
//! fetches nothing and refuses schemas whose work cannot be bounded (`bounds.rs`). The messages for
//! callers never contain a value (`sentences.rs`).

use crate::bounds::{self, Bounds, Extent};
use crate::sentences;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};
use std::fmt;

/// Longest schema, in bytes of compact JSON (B-079: 64 kB).
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Largest compiled pattern, in bytes. `^[a-z0-9]{1,63}$` has some 3 kB, `^\p{L}{1,63}$` some 2 MB.
pub(crate) const PATTERN_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Largest size of all compiled patterns of a schema, in bytes.
const PATTERNS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most patterns in a schema; compiling each takes some milliseconds.
const PATTERNS_MAX: usize = 200;

/// Deepest parameters that are checked against any schema, in levels below the top.
const DEPTH_MAX: usize = 64;

/// A schema that cannot be checked this deep is refused.
const DEPTH_MIN: usize = 8;

/// Most errors listed in one message.
const ERRORS_LISTED_MAX: usize = 5;

/// Most bytes of listed errors in one message.
const ERRORS_LISTED_BYTES_MAX: usize = 1_500;

/// Most rules that may be applied to the parameters of one request: some tenths of a second.
const APPLICATIONS_MAX: u64 = 10_000_000;

/// Most rules that may be applied for a full list of errors; beyond that, only the first is named.
const APPLICATIONS_LISTED_MAX: u64 = 50_000;

/// Limits and leniency of compiling. The default is for schemas that a service is offered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Engine that matches patterns.
    pub pattern_engine: PatternEngine,
    /// Largest compiled pattern, in bytes.
    pub pattern_bytes_max: usize,
    /// Largest size of all compiled patterns together, in bytes.
    pub patterns_bytes_max: usize,
    /// Most patterns in a schema.
    pub patterns_max: usize,
    /// Deepest values that are checked, in levels below the top. Fewer levels cost less to bound.
    pub depth_max: usize,
    /// A schema that cannot be checked this deep within its bounds is refused.
    pub depth_min: usize,
    /// Whether a subschema may have an address of its own (`$id`). It changes the meaning of each `#`
    /// inside the subschema, so references may be counted wrongly.
    pub allow_inner_ids: bool,
    /// Whether a reference that the bounds cannot follow is refused; otherwise the validator decides.
    pub refuse_unresolved: bool,
}

/// Engine for patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternEngine {
    /// Linear time; refuses look-around and back-references.
    Linear,
    /// Look-around and back-references, with at most this many steps back per text.
    Backtracking {
        /// Most steps back that a pattern may take over one text.
        steps_max: usize,
    },
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            pattern_engine: PatternEngine::Linear,
            pattern_bytes_max: PATTERN_BYTES_MAX,
            patterns_bytes_max: PATTERNS_BYTES_MAX,
            patterns_max: PATTERNS_MAX,
            depth_max: DEPTH_MAX,
            depth_min: DEPTH_MIN,
            allow_inner_ids: false,
            refuse_unresolved: false,
        }
    }
}

/// A schema that cannot be used.
///
/// Its text completes a sentence that begins with "the schema".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Its work cannot be bounded.
    #[error("{reason}")]
    Unbounded {
        /// Where in the schema, e.g. `.properties.size`; empty for the whole.
        path: String,
        /// The bound that it exceeds.
        reason: String,
    },
    /// It does not conform to its dialect of JSON Schema.
    #[error("is not valid at {}: {message}", if pointer.is_empty() { "its top" } else { pointer })]
    Invalid {
        /// Where in the schema, as a JSON pointer.
        pointer: String,
        /// The validator's message, unabridged; may quote the schema.
        message: String,
        /// Where in the schema, e.g. `.properties.size`; empty for the whole.
        path: String,
        /// One short sentence for the author of the schema.
        reason: String,
    },
}

impl CompileError {
    /// Path in the schema and reason, each ready to follow the path of the schema.
    #[must_use]
    pub fn into_parts(self) -> (String, String) {
        match self {
            Self::Unbounded { path, reason } | Self::Invalid { path, reason, .. } => (path, reason),
        }
    }

    pub(crate) fn whole(reason: String) -> Self {
        Self::Unbounded {
            path: String::new(),
            reason,
        }
    }
}

/// A compiled schema.
pub struct CompiledSchema {
    validator: Validator,
    bounds: Bounds,
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

impl CompiledSchema {
    /// Compiles a schema, in the dialect that it names; draft 4 if it names no known one.
    ///
    /// # Guarantees
    /// Fetches nothing. Recursion and work on a value within [`CompiledSchema::depth_max`] are bounded.
    ///
    /// # Errors
    /// The schema is too large or too deep, its work is not bounded, or it is not a JSON Schema.
    pub fn compile(schema: &Value, options: &CompileOptions) -> Result<Self, CompileError> {
        checked_text(schema)?;
        Self::compile_checked(schema, options)
    }

    /// Compiles a schema that has passed [`checked_text`].
    pub(crate) fn compile_checked(
        schema: &Value,
        options: &CompileOptions,
    ) -> Result<Self, CompileError> {
        let bounds = bounds::bounds(schema, options)?;
        let mut schema = schema.clone();
        let draft = known_draft(&schema).unwrap_or(Draft::Draft4);
        if let Some(object) = schema.as_object_mut() {
            // Chosen above; the validator would look up an unknown dialect elsewhere.
            object.remove("$schema");
        }
        let bytes_max = options.patterns_bytes_max / bounds.patterns.max(1);
        let bytes_max = bytes_max.min(options.pattern_bytes_max);
        let builder = jsonschema::options().with_draft(draft).offline();
        let builder = match options.pattern_engine {
            PatternEngine::Linear => builder.with_pattern_options(
                PatternOptions::regex()
                    .size_limit(bytes_max)
                    .dfa_size_limit(bytes_max),
            ),
            PatternEngine::Backtracking { steps_max } => builder.with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(steps_max)
                    .size_limit(bytes_max)
                    .dfa_size_limit(bytes_max),
            ),
        };
        let validator = builder
            .build(&schema)
            .map_err(|error| sentences::invalid_schema(&error))?;
        Ok(Self { validator, bounds })
    }

    /// Whether a value fits. Its work is bounded for values no deeper than [`CompiledSchema::depth_max`].
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Depth to which values can be checked within bounds, in levels below the top.
    #[must_use]
    pub fn depth_max(&self) -> usize {
        self.bounds.depth_max
    }

    /// Upper bound of the number of rules applied to a value of this extent.
    #[must_use]
    pub fn applications_max(&self, extent: Extent) -> u64 {
        self.bounds.applied_max.saturating_mul(extent.values)
    }

    /// Checks parameters.
    ///
    /// # Errors
    /// A sentence for the caller: which parameters break which rule, without their values.
    pub fn check(&self, parameters: &Map<String, Value>) -> Result<(), String> {
        let extents = parameters.values().map(Extent::of);
        let extent = extents.fold(
            Extent {
                levels: 0,
                values: 1,
            },
            |sum, one| Extent {
                levels: sum.levels.max(one.levels),
                values: sum.values + one.values,
            },
        );
        if extent.levels > self.bounds.depth_max {
            return Err(format!(
                "the parameters must not be nested deeper than {} levels",
                self.bounds.depth_max
            ));
        }
        let applications = self.applications_max(extent);
        if applications > APPLICATIONS_MAX {
            return Err("the parameters are too large for the schema of the plan".to_owned());
        }
        let parameters = Value::Object(parameters.clone());
        if self.validator.is_valid(&parameters) {
            return Ok(());
        }
        Err(self.broken_rules(&parameters, applications))
    }

    fn broken_rules(&self, parameters: &Value, applications: u64) -> String {
        // The validator finds all errors before it returns the first, each with its causes.
        let mut errors: Vec<String> = if applications > APPLICATIONS_LISTED_MAX {
            let first = self.validator.validate(parameters).err();
            let first = first.map(|error| sentences::broken_rule(&error, parameters));
            first.into_iter().collect()
        } else {
            let all = self.validator.iter_errors(parameters);
            all.take(ERRORS_LISTED_MAX + 1)
                .map(|error| sentences::broken_rule(&error, parameters))
                .collect()
        };
        let mut bytes = 0;
        let short = errors.iter().take_while(|error| {
            bytes += error.len();
            bytes <= ERRORS_LISTED_BYTES_MAX
        });
        let listed = short.count().clamp(1, ERRORS_LISTED_MAX);
        if errors.len() > listed {
            errors.truncate(listed);
            errors.push("and more".to_owned());
        }
        format!(
            "the parameters do not fit the schema of the plan: {}",
            errors.join("; ")
        )
    }
}

/// The schema as text, unless it is too deep or too long.
pub(crate) fn checked_text(schema: &Value) -> Result<String, CompileError> {
    // Before any recursive walk, printing included.
    bounds::check_nesting(schema)?;
    let text = schema.to_string();
    if text.len() > SCHEMA_BYTES_MAX {
        let reason = format!("must not be larger than {SCHEMA_BYTES_MAX} bytes");
        return Err(CompileError::whole(reason));
    }
    Ok(text)
}

/// Whether a schema names a dialect that the validator implements.
#[must_use]
pub fn has_known_dialect(schema: &Value) -> bool {
    known_draft(schema).is_some()
}

/// The dialect that a schema names, if the validator implements it.
fn known_draft(schema: &Value) -> Option<Draft> {
    let dialect = schema.get("$schema")?.as_str()?.trim_end_matches('#');
    let name = dialect
        .strip_prefix("https://")
        .or_else(|| dialect.strip_prefix("http://"))?;
    match name {
        "json-schema.org/schema" | "json-schema.org/draft-04/schema" => Some(Draft::Draft4),
        "json-schema.org/draft-06/schema" => Some(Draft::Draft6),
        "json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        "json-schema.org/draft/2019-09/schema" => Some(Draft::Draft201909),
        "json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        _ => None,
    }
}
