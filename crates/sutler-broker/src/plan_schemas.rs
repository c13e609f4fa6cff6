//! Hands the parameter schemas of OSB plans to `sutler-schema`, which does not know OSB.
//!
//! Only the conversion: compiling and checking is done there.

use sutler_osb::{PinnedPlan, Schemas};
use sutler_schema::{ParameterSchemas, PlanSchemas, SchemaError};

const _: () = assert!(sutler_schema::SCHEMA_BYTES_MAX == sutler_osb::SCHEMA_BYTES_MAX);

/// Compiles the schemas of a plan.
///
/// # Errors
/// The first schema that cannot be used, with its path.
pub(crate) fn compile_schemas(plan: &PinnedPlan) -> Result<ParameterSchemas, SchemaError> {
    let schemas = plan.schemas.as_ref().map(plan_schemas);
    ParameterSchemas::compile(schemas.unwrap_or_default())
}

/// The schemas in the form of `sutler-schema`.
pub(crate) fn plan_schemas(schemas: &Schemas) -> PlanSchemas<'_> {
    PlanSchemas {
        provision: schemas.provision(),
        update: schemas.update(),
        bind: schemas.bind(),
    }
}
