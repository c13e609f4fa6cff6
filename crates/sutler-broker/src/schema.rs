//! Parameters held to the JSON Schemas of their plan (B-079, B-125, B-129).
//!
//! The only files that know the validator. A schema comes from a catalog and parameters from anyone,
//! so neither is trusted: nothing is fetched, patterns run in linear time, and `schema/shape.rs` bounds
//! how often and how deep the validator can go before it is asked. What a caller reads is made in
//! `schema/sentence.rs`, and never from a parameter's value. Schemas from Rust types: `schema/derived.rs`.

mod derived;
mod graph;
mod sentence;
mod shape;
#[cfg(test)]
mod tests;

pub use derived::derived_schema;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use sha2::{Digest, Sha256};
use shape::Bounds;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use sutler_osb::{Parameters, PinnedPlan, SCHEMA_BYTES_MAX, Schemas};

/// Largest compiled pattern, in bytes. `^[a-z0-9]{1,63}$` has some 3 kB, `^\p{L}{1,63}$` some 2 MB.
const PATTERN_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Largest size of all compiled patterns of a schema, in bytes.
const PATTERNS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most compiled schemas kept at hand; beyond that all are forgotten. Few, because one takes some 12 kB and
/// each of ten thousand offerings is compiled when it is checked; plans in use keep theirs (`plans.rs`).
const COMPILED_MAX: usize = 16;

/// Most faults named in one sentence.
const FAULTS_NAMED_MAX: usize = 5;

/// Most bytes that they take in it.
const FAULTS_BYTES_MAX: usize = 1_500;

/// Most rules that may be applied to the parameters of one request: some tenths of a second.
const APPLICATIONS_MAX: u64 = 10_000_000;

/// Most rules that may be applied for a full list of faults; beyond that, only the first is named.
const APPLICATIONS_LISTED_MAX: u64 = 50_000;

/// Schemas that were compiled lately, by the hash of their text: plans of an offering often have the same
/// ones, and compiling takes longer than checking.
#[derive(Default)]
struct Lately(Mutex<HashMap<[u8; 32], Arc<Compiled>>>);

static COMPILED: LazyLock<Lately> = LazyLock::new(Lately::default);

/// The compiled schemas of one plan. Cheap to clone.
#[derive(Clone, Default)]
pub struct ParameterSchemas {
    provision: Option<Arc<Compiled>>,
    update: Option<Arc<Compiled>>,
    bind: Option<Arc<Compiled>>,
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct SchemaFault {
    /// Where in the plan, e.g. `schemas.service_instance.create.parameters.properties.size`.
    pub path: String,
    /// What is wrong.
    pub reason: String,
}

struct Compiled {
    validator: Validator,
    bounds: Bounds,
}

impl ParameterSchemas {
    /// Compiles the schemas of a plan, or finds them compiled.
    ///
    /// # Guarantees
    /// Nothing is fetched from anywhere. Plans with the same schema share it compiled, if both are met within
    /// a few dozen others.
    ///
    /// # Errors
    /// The first schema that cannot be used, with its path.
    pub fn compile(plan: &PinnedPlan) -> Result<Self, SchemaFault> {
        let Some(schemas) = &plan.schemas else {
            return Ok(Self::default());
        };
        let [provision, update, bind] = each(schemas);
        Ok(Self {
            provision: compile_optional(provision)?,
            update: compile_optional(update)?,
            bind: compile_optional(bind)?,
        })
    }

    /// Checks the parameters of a provision.
    ///
    /// # Errors
    /// A sentence for the caller: which parameters break which rule, without their values.
    pub fn check_provision(&self, parameters: &Parameters) -> Result<(), String> {
        check(self.provision.as_deref(), parameters)
    }

    /// Checks the parameters of an update.
    ///
    /// # Errors
    /// As for [`ParameterSchemas::check_provision`].
    pub fn check_update(&self, parameters: &Parameters) -> Result<(), String> {
        check(self.update.as_deref(), parameters)
    }

    /// Checks the parameters of a bind.
    ///
    /// # Errors
    /// As for [`ParameterSchemas::check_provision`].
    pub fn check_bind(&self, parameters: &Parameters) -> Result<(), String> {
        check(self.bind.as_deref(), parameters)
    }
}

impl fmt::Debug for ParameterSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterSchemas")
            .field("provision", &self.provision.is_some())
            .field("update", &self.update.is_some())
            .field("bind", &self.bind.is_some())
            .finish()
    }
}

/// Every schema that cannot be used.
pub(crate) fn faults(schemas: &Schemas) -> Vec<SchemaFault> {
    each(schemas)
        .into_iter()
        .filter_map(|schema| compile_optional(schema).err())
        .collect()
}

/// A schema with its path, if the plan has it.
type Located<'a> = Option<(&'static str, &'a Value)>;

fn each(schemas: &Schemas) -> [Located<'_>; 3] {
    let provision = schemas.provision();
    let update = schemas.update();
    let bind = schemas.bind();
    [
        provision.map(|schema| ("schemas.service_instance.create.parameters", schema)),
        update.map(|schema| ("schemas.service_instance.update.parameters", schema)),
        bind.map(|schema| ("schemas.service_binding.create.parameters", schema)),
    ]
}

fn compile_optional(schema: Located<'_>) -> Result<Option<Arc<Compiled>>, SchemaFault> {
    let Some((path, schema)) = schema else {
        return Ok(None);
    };
    let compiled = COMPILED
        .compiled(schema)
        .map_err(|(pointer, reason)| SchemaFault {
            path: format!("{path}{pointer}"),
            reason,
        })?;
    Ok(Some(compiled))
}

impl Lately {
    fn compiled(&self, schema: &Value) -> Result<Arc<Compiled>, (String, String)> {
        // Before anything walks it recursively, printing it included.
        shape::check_nesting(schema)?;
        let text = schema.to_string();
        if text.len() > SCHEMA_BYTES_MAX {
            let reason = format!("must not be larger than {SCHEMA_BYTES_MAX} bytes");
            return Err((String::new(), reason));
        }
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = lock().get(&hash) {
            return Ok(Arc::clone(compiled));
        }
        // Compiled outside the lock: two threads may do it at once, and both are right.
        let compiled = Arc::new(compile(schema)?);
        let mut all = lock();
        if all.len() >= COMPILED_MAX {
            all.clear();
        }
        all.insert(hash, Arc::clone(&compiled));
        Ok(compiled)
    }
}

fn compile(schema: &Value) -> Result<Compiled, (String, String)> {
    let bounds = shape::bounds(schema)?;
    let mut schema = schema.clone();
    let draft = draft(&schema);
    if let Some(object) = schema.as_object_mut() {
        // Settled by `draft`; the validator would look a dialect it does not know up elsewhere.
        object.remove("$schema");
    }
    let bytes_max = PATTERN_BYTES_MAX.min(PATTERNS_BYTES_MAX / bounds.patterns.max(1));
    let patterns = PatternOptions::regex()
        .size_limit(bytes_max)
        .dfa_size_limit(bytes_max);
    let validator = jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(patterns)
        .offline()
        .build(&schema)
        .map_err(|error| sentence::uncompilable(&error))?;
    Ok(Compiled { validator, bounds })
}

/// The dialect a schema says it is in; draft 4, which every platform knows, if it says none we know.
fn draft(schema: &Value) -> Draft {
    let dialect = schema.get("$schema").and_then(Value::as_str);
    let dialect = dialect.unwrap_or_default().trim_end_matches('#');
    let name = dialect
        .strip_prefix("https://")
        .or_else(|| dialect.strip_prefix("http://"));
    match name {
        Some("json-schema.org/draft-06/schema") => Draft::Draft6,
        Some("json-schema.org/draft-07/schema") => Draft::Draft7,
        Some("json-schema.org/draft/2019-09/schema") => Draft::Draft201909,
        Some("json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
        Some(_) | None => Draft::Draft4,
    }
}

fn check(schema: Option<&Compiled>, parameters: &Parameters) -> Result<(), String> {
    let Some(Compiled { validator, bounds }) = schema else {
        return Ok(());
    };
    let extents = parameters.0.values().map(shape::extent);
    let (levels, values) = extents.fold((0, 1), |(levels, values), (deep, many)| {
        (levels.max(deep), values + many)
    });
    if levels > bounds.depth_max {
        return Err(format!(
            "the parameters must not be nested deeper than {} levels",
            bounds.depth_max
        ));
    }
    let applications = bounds.applied_max.saturating_mul(values);
    if applications > APPLICATIONS_MAX {
        return Err("the parameters are too large for the schema of the plan".to_owned());
    }
    let parameters = Value::Object(parameters.0.clone());
    if validator.is_valid(&parameters) {
        return Ok(());
    }
    // The validator finds all faults before it tells the first, each with what led to it.
    let mut faults: Vec<String> = if applications > APPLICATIONS_LISTED_MAX {
        let first = validator.validate(&parameters).err();
        let first = first.map(|error| sentence::broken_rule(&error, &parameters));
        first.into_iter().collect()
    } else {
        let all = validator.iter_errors(&parameters);
        all.take(FAULTS_NAMED_MAX + 1)
            .map(|error| sentence::broken_rule(&error, &parameters))
            .collect()
    };
    let mut bytes = 0;
    let short = faults.iter().take_while(|fault| {
        bytes += fault.len();
        bytes <= FAULTS_BYTES_MAX
    });
    let named = short.count().clamp(1, FAULTS_NAMED_MAX);
    if faults.len() > named {
        faults.truncate(named);
        faults.push("and more".to_owned());
    }
    Err(format!(
        "the parameters do not fit the schema of the plan: {}",
        faults.join("; ")
    ))
}
