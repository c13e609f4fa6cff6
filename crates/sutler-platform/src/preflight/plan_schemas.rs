//! Compiles the schemas of a plan as far as that is possible.
//!
//! A schema that cannot be compiled, e.g. because of a pattern with a look-ahead, does not make its plan unusable:
//! the broker checks the parameters anyhow. Only the conversion: compiling and checking is done in `sutler-schema`.

use sutler_osb::{PinnedPlan, Schemas};
use sutler_schema::{CompileOptions, ParameterSchemas, PlanSchemas, SchemaError};

/// Largest size of all compiled patterns of a schema, in bytes. Whoever registers a broker chooses its schemas, so they get
/// less than those of the platform's own services: enough for hundreds of usual patterns, of some kilobytes each.
pub const PATTERNS_BYTES_MAX: usize = 2 * 1024 * 1024;

fn options() -> CompileOptions {
    CompileOptions {
        pattern_bytes_max: PATTERNS_BYTES_MAX,
        patterns_bytes_max: PATTERNS_BYTES_MAX,
        ..CompileOptions::default()
    }
}

/// Compiles the usable schemas of a plan, and reports the others. Parameters without a usable schema are not checked.
pub fn compile_schemas(plan: &PinnedPlan) -> (ParameterSchemas, Vec<SchemaError>) {
    let schemas = plan.schemas.as_ref();
    let all = PlanSchemas {
        provision: schemas.and_then(Schemas::provision),
        update: schemas.and_then(Schemas::update),
        bind: schemas.and_then(Schemas::bind),
    };
    match ParameterSchemas::compile_within(all, &options()) {
        Ok(compiled) => (compiled, Vec::new()),
        Err(_) => compile_usable(all),
    }
}

fn compile_usable(all: PlanSchemas<'_>) -> (ParameterSchemas, Vec<SchemaError>) {
    let none = PlanSchemas::default();
    let parts = [
        PlanSchemas {
            provision: all.provision,
            ..none
        },
        PlanSchemas {
            update: all.update,
            ..none
        },
        PlanSchemas {
            bind: all.bind,
            ..none
        },
    ];
    let mut errors = Vec::new();
    let mut usable = none;
    for part in parts {
        match part.errors_within(&options()) {
            found if found.is_empty() => {
                usable.provision = usable.provision.or(part.provision);
                usable.update = usable.update.or(part.update);
                usable.bind = usable.bind.or(part.bind);
            }
            found => errors.extend(found),
        }
    }
    match ParameterSchemas::compile_within(usable, &options()) {
        Ok(compiled) => (compiled, errors),
        Err(error) => {
            errors.push(error);
            (ParameterSchemas::default(), errors)
        }
    }
}
