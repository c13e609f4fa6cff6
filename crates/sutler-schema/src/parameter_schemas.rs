//! The compiled parameter schemas of one plan (B-079, B-125, B-129).
//!
//! Names each schema by its path in the catalog and shares compiled schemas between plans. Compiling
//! and checking one schema: `compiled_schema.rs`.

use crate::compiled_schema::{CompileError, CompileOptions, CompiledSchema, checked_text};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Most compiled schemas in the cache; a full cache is emptied. Few, because one takes some 12 kB and
/// each of ten thousand offerings is compiled when it is checked; plans in use hold their own.
pub(crate) const COMPILED_MAX: usize = 16;

/// Schemas compiled recently, by the hash of their text: plans of an offering often have the same
/// schemas, and compiling takes longer than checking.
#[derive(Default)]
pub(crate) struct CompiledCache(pub(crate) Mutex<HashMap<[u8; 32], Arc<CompiledSchema>>>);

static COMPILED: LazyLock<CompiledCache> = LazyLock::new(CompiledCache::default);

/// The schemas of one plan as its catalog has them; `None` where anything is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanSchemas<'a> {
    /// `schemas.service_instance.create.parameters`.
    pub provision: Option<&'a Value>,
    /// `schemas.service_instance.update.parameters`.
    pub update: Option<&'a Value>,
    /// `schemas.service_binding.create.parameters`.
    pub bind: Option<&'a Value>,
}

/// The compiled schemas of one plan. Cheap to clone.
#[derive(Clone, Default)]
pub struct ParameterSchemas {
    pub(crate) provision: Option<Arc<CompiledSchema>>,
    update: Option<Arc<CompiledSchema>>,
    bind: Option<Arc<CompiledSchema>>,
}

/// A schema of a plan that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct SchemaError {
    /// Path in the plan, e.g. `schemas.service_instance.create.parameters.properties.size`.
    pub path: String,
    /// Reason, as the rest of a sentence that begins with the path.
    pub reason: String,
}

impl PlanSchemas<'_> {
    /// Every schema of the plan that cannot be used.
    #[must_use]
    pub fn errors(&self) -> Vec<SchemaError> {
        let compiled = self.compile_each();
        compiled.into_iter().filter_map(Result::err).collect()
    }

    /// The same under other limits.
    #[must_use]
    pub fn errors_within(&self, options: &CompileOptions) -> Vec<SchemaError> {
        let compiled = self.compile_each_within(options);
        compiled.into_iter().filter_map(Result::err).collect()
    }

    fn compile_each_within(
        &self,
        options: &CompileOptions,
    ) -> [Result<Option<Arc<CompiledSchema>>, SchemaError>; 3] {
        self.each(|schema| CompiledSchema::compile(schema, options).map(Arc::new))
    }

    fn compile_each(&self) -> [Result<Option<Arc<CompiledSchema>>, SchemaError>; 3] {
        self.each(|schema| COMPILED.compile(schema))
    }

    fn each(
        &self,
        compile: impl Fn(&Value) -> Result<Arc<CompiledSchema>, CompileError>,
    ) -> [Result<Option<Arc<CompiledSchema>>, SchemaError>; 3] {
        [
            ("schemas.service_instance.create.parameters", self.provision),
            ("schemas.service_instance.update.parameters", self.update),
            ("schemas.service_binding.create.parameters", self.bind),
        ]
        .map(|(path, schema)| {
            let compiled = schema.map(&compile).transpose();
            compiled.map_err(|error| at_path(path, error))
        })
    }
}

impl ParameterSchemas {
    /// Compiles the schemas of a plan, or takes them from the cache.
    ///
    /// # Guarantees
    /// Fetches nothing. Plans with the same schema share its compiled form if at most a dozen other
    /// schemas are compiled between them.
    ///
    /// # Errors
    /// The first schema that cannot be used, with its path.
    pub fn compile(schemas: PlanSchemas<'_>) -> Result<Self, SchemaError> {
        let [provision, update, bind] = schemas.compile_each();
        Ok(Self {
            provision: provision?,
            update: update?,
            bind: bind?,
        })
    }

    /// Compiles the schemas of a plan under other limits. Nothing is taken from the cache or kept in it.
    ///
    /// # Errors
    /// As for [`ParameterSchemas::compile`].
    pub fn compile_within(
        schemas: PlanSchemas<'_>,
        options: &CompileOptions,
    ) -> Result<Self, SchemaError> {
        let [provision, update, bind] = schemas.compile_each_within(options);
        Ok(Self {
            provision: provision?,
            update: update?,
            bind: bind?,
        })
    }

    /// Checks the parameters of a provision.
    ///
    /// # Errors
    /// A sentence for the caller: which parameters break which rule, without their values.
    pub fn check_provision(&self, parameters: &Map<String, Value>) -> Result<(), String> {
        check(self.provision.as_deref(), parameters)
    }

    /// Checks the parameters of an update.
    ///
    /// # Errors
    /// As for [`ParameterSchemas::check_provision`].
    pub fn check_update(&self, parameters: &Map<String, Value>) -> Result<(), String> {
        check(self.update.as_deref(), parameters)
    }

    /// Checks the parameters of a bind.
    ///
    /// # Errors
    /// As for [`ParameterSchemas::check_provision`].
    pub fn check_bind(&self, parameters: &Map<String, Value>) -> Result<(), String> {
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

fn check(schema: Option<&CompiledSchema>, parameters: &Map<String, Value>) -> Result<(), String> {
    match schema {
        Some(schema) => schema.check(parameters),
        None => Ok(()),
    }
}

fn at_path(path: &str, error: CompileError) -> SchemaError {
    let (inner, reason) = error.into_parts();
    SchemaError {
        path: format!("{path}{inner}"),
        reason,
    }
}

impl CompiledCache {
    /// Returns the compiled form of a schema, compiling it if it is not in the cache.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<CompiledSchema>, CompileError> {
        let text = checked_text(schema)?;
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = lock().get(&hash) {
            return Ok(Arc::clone(compiled));
        }
        // Compiled outside the lock: two threads may do it at once, with the same result.
        let compiled = CompiledSchema::compile_checked(schema, &CompileOptions::default())?;
        let compiled = Arc::new(compiled);
        let mut all = lock();
        if all.len() >= COMPILED_MAX {
            all.clear();
        }
        all.insert(hash, Arc::clone(&compiled));
        Ok(compiled)
    }
}
