//! Reads offerings and plans from the YAML tree: their keys, and the type of each value.
//!
//! Values are checked afterwards by `sutler_osb::Catalog::load`. Metadata is free-form and read in `metadata.rs`;
//! the content of a schema is copied unchecked.

use super::fields::{self, CatalogFields, Findings, Key};
use super::metadata;
use serde_json::Value;
use std::path::Path;
use sutler_osb::{
    BindingSchemas, DashboardClientSpec, InstanceSchemas, MaintenanceInfo, OperationSchema,
    PlanSpec, Schemas, ServiceSpec,
};
use sutler_yaml::Node;

const OFFERING: [Key; 13] = [
    ("name", "B-055"),
    ("id", "B-056"),
    ("description", "B-057"),
    ("bindable", "B-058"),
    ("plans", "B-059"),
    ("tags", "B-060"),
    ("requires", "B-061"),
    ("instances_retrievable", "B-062"),
    ("bindings_retrievable", "B-063"),
    ("allow_context_updates", "B-064"),
    ("metadata", "B-065"),
    ("dashboard_client", "B-066"),
    ("plan_updateable", "B-067"),
];

const PLAN: [Key; 11] = [
    ("id", "B-068"),
    ("name", "B-069"),
    ("description", "B-070"),
    ("metadata", "B-071"),
    ("free", "B-072"),
    ("bindable", "B-073"),
    ("binding_rotatable", "B-074"),
    ("plan_updateable", "B-075"),
    ("maximum_polling_duration", "B-076"),
    ("maintenance_info", "B-077"),
    ("schemas", "B-078"),
];

const DASHBOARD_CLIENT: [Key; 3] = [
    ("id", "B-066"),
    ("secret", "B-066"),
    ("redirect_uri", "B-066"),
];

const MAINTENANCE_INFO: [Key; 2] = [("version", "B-077"), ("description", "B-077")];

const SCHEMAS: [Key; 2] = [("service_instance", "B-078"), ("service_binding", "B-078")];

const OPERATIONS: [Key; 2] = [("create", "B-078"), ("update", "B-078")];

const BINDING_OPERATIONS: [Key; 1] = [("create", "B-078")];

const PARAMETERS: [Key; 1] = [("parameters", "B-078")];

/// Reads one offering. Missing keys are left out.
pub(super) fn offering(
    node: &Node,
    path: String,
    icons: Option<&Path>,
    findings: &mut Findings,
) -> ServiceSpec {
    let Some(fields) = fields::item(node, path, &OFFERING, "B-050", findings) else {
        return ServiceSpec::default();
    };
    let metadata = fields
        .get("metadata")
        .and_then(|node| metadata::of_offering(node, fields.path_of("metadata"), icons, findings));
    let plans = fields.list("plans", findings).map(|plans| {
        let numbered = plans.iter().enumerate();
        numbered
            .map(|(nth, node)| plan(node, format!("{}.plans[{nth}]", fields.path), findings))
            .collect()
    });
    ServiceSpec {
        name: fields.text("name", findings),
        id: fields.text("id", findings),
        description: fields.text("description", findings),
        tags: fields::texts(&fields, "tags", findings),
        requires: fields::texts(&fields, "requires", findings),
        bindable: fields.boolean("bindable", findings),
        instances_retrievable: fields.boolean("instances_retrievable", findings),
        bindings_retrievable: fields.boolean("bindings_retrievable", findings),
        allow_context_updates: fields.boolean("allow_context_updates", findings),
        metadata,
        dashboard_client: dashboard_client(&fields, findings),
        plan_updateable: fields.boolean("plan_updateable", findings),
        plans,
    }
}

fn plan(node: &Node, path: String, findings: &mut Findings) -> PlanSpec {
    let Some(fields) = fields::item(node, path, &PLAN, "B-059", findings) else {
        return PlanSpec::default();
    };
    let metadata = fields
        .get("metadata")
        .and_then(|node| metadata::of_plan(node, fields.path_of("metadata"), findings));
    PlanSpec {
        id: fields.text("id", findings),
        name: fields.text("name", findings),
        description: fields.text("description", findings),
        metadata,
        free: fields.boolean("free", findings),
        bindable: fields.boolean("bindable", findings),
        binding_rotatable: fields.boolean("binding_rotatable", findings),
        plan_updateable: fields.boolean("plan_updateable", findings),
        schemas: schemas(&fields, findings),
        maximum_polling_duration: fields::integer(&fields, "maximum_polling_duration", findings),
        maintenance_info: maintenance_info(&fields, findings),
        origin: None,
    }
}

fn dashboard_client(
    fields: &CatalogFields<'_>,
    findings: &mut Findings,
) -> Option<DashboardClientSpec> {
    let client = fields.fields("dashboard_client", &DASHBOARD_CLIENT, findings)?;
    Some(DashboardClientSpec {
        id: client.text("id", findings),
        secret: client.text("secret", findings),
        redirect_uri: client.text("redirect_uri", findings),
    })
}

fn maintenance_info(
    fields: &CatalogFields<'_>,
    findings: &mut Findings,
) -> Option<MaintenanceInfo> {
    let info = fields.fields("maintenance_info", &MAINTENANCE_INFO, findings)?;
    Some(MaintenanceInfo {
        version: info.text("version", findings),
        description: info.text("description", findings),
    })
}

fn schemas(fields: &CatalogFields<'_>, findings: &mut Findings) -> Option<Schemas> {
    let schemas = fields.fields("schemas", &SCHEMAS, findings)?;
    let instance = schemas.fields("service_instance", &OPERATIONS, findings);
    let binding = schemas.fields("service_binding", &BINDING_OPERATIONS, findings);
    Some(Schemas {
        service_instance: instance.map(|operations| InstanceSchemas {
            create: operation(&operations, "create", findings),
            update: operation(&operations, "update", findings),
        }),
        service_binding: binding.map(|operations| BindingSchemas {
            create: operation(&operations, "create", findings),
        }),
    })
}

fn operation(
    operations: &CatalogFields<'_>,
    name: &str,
    findings: &mut Findings,
) -> Option<OperationSchema> {
    let operation = operations.fields(name, &PARAMETERS, findings)?;
    let parameters: Option<Value> = operation.get("parameters").map(Node::to_json);
    Some(OperationSchema { parameters })
}
