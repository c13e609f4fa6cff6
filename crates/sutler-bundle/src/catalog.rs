//! Maps a manifest to its catalog entry: offering, plans, schemas; and finds offerings whose names or ids collide.
//!
//! Pure. Manifests are read by `manifest.rs`, schemas built by `schema.rs`, ids by `ids.rs`. Publishing a catalog
//! is `sutler-bundle-service`.

use crate::action::Action;
use crate::console_forms;
use crate::ids::IdScheme;
use crate::manifest::{
    Manifest, Parameter, PlanEntry, UpgradePolicy, ValidationPoint, is_semantic,
};
use crate::schema::{Dialect, schema};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use sutler_osb::{
    BindingSchemas, Catalog, InstanceSchemas, MaintenanceInfo, OperationSchema, PinnedPlan,
    PlanSpec, Schemas, ServiceSpec,
};
use sutler_schema::{ParameterSchemas, PlanSchemas, SchemaError};

/// How bundles are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Source of the ids.
    pub ids: IdScheme,
    /// Draft of JSON Schema that describes parameters.
    pub dialect: Dialect,
    /// Whether plans carry forms for OpenShift's console.
    pub forms: bool,
    /// Parameters that the operator answers by a secret; users are not asked for them.
    pub answered: BTreeSet<String>,
}

impl Offer {
    /// Settings under which Automation Broker offered the bundles of a registry: its ids, its draft of JSON Schema,
    /// its forms.
    #[must_use]
    pub fn compatible(registry: &str) -> Self {
        Self {
            ids: IdScheme::Md5 {
                registry: registry.to_owned(),
            },
            dialect: Dialect::Draft4,
            forms: true,
            answered: BTreeSet::new(),
        }
    }
}

/// The offering of a bundle.
#[must_use]
pub fn offering(manifest: &Manifest, offer: &Offer) -> ServiceSpec {
    let changes = |plan: &PlanEntry| !plan.updates_to.is_empty();
    let plan_updateable = manifest.plans.iter().any(changes);
    let mut metadata = manifest.metadata.clone();
    if let Some(version) = &manifest.bundle_version {
        let entry = metadata.entry("bundleVersion");
        entry.or_insert_with(|| Value::String(version.clone()));
    }
    let bindable = manifest.plans.iter().any(|plan| manifest.is_bindable(plan));
    let plans = manifest.plans.iter();
    ServiceSpec {
        name: Some(offer.ids.service_name(manifest)),
        id: Some(offer.ids.service_id(manifest)),
        description: Some(manifest.description.clone()),
        tags: (!manifest.tags.is_empty()).then(|| manifest.tags.clone()),
        bindable: Some(manifest.bindable),
        instances_retrievable: Some(true),
        bindings_retrievable: Some(bindable),
        metadata: (!metadata.is_empty()).then_some(metadata),
        plan_updateable: Some(plan_updateable),
        plans: Some(plans.map(|plan| plan_spec(manifest, plan, offer)).collect()),
        ..ServiceSpec::default()
    }
}

fn plan_spec(manifest: &Manifest, plan: &PlanEntry, offer: &Offer) -> PlanSpec {
    let mut metadata: Map<String, Value> = plan.metadata.clone();
    if offer.forms {
        metadata.insert("schemas".to_owned(), console_forms::definitions(plan));
    }
    let any_changes = manifest.plans.iter().any(|it| !it.updates_to.is_empty());
    let stays = any_changes && plan.updates_to.is_empty();
    let polling = plan.maximum_polling_duration;
    PlanSpec {
        id: Some(offer.ids.plan_id(manifest, plan)),
        name: Some(plan.name.clone()),
        description: Some(plan.description.clone()),
        metadata: (!metadata.is_empty()).then_some(metadata),
        free: plan.free,
        bindable: plan.bindable,
        plan_updateable: stays.then_some(false),
        schemas: Some(schemas(manifest, plan, offer)),
        maximum_polling_duration: polling.and_then(|seconds| i64::try_from(seconds).ok()),
        maintenance_info: maintenance(manifest),
        ..PlanSpec::default()
    }
}

/// The catalog entry of a bundle's version; `None` if instances cannot be upgraded to it.
pub(crate) fn maintenance(manifest: &Manifest) -> Option<MaintenanceInfo> {
    let version = manifest.bundle_version.as_deref()?;
    let impact = match &manifest.upgrade {
        UpgradePolicy::Offered { impact } => impact.clone(),
        UpgradePolicy::Never => return None,
    };
    let can = manifest.rules(Action::Update).offered && is_semantic(version);
    can.then(|| MaintenanceInfo {
        description: impact,
        ..MaintenanceInfo::of_version(version)
    })
}

fn schemas(manifest: &Manifest, plan: &PlanEntry, offer: &Offer) -> Schemas {
    let of = |parameters: &[Parameter], occasion: ValidationPoint| {
        let unanswered_parameters = unanswered(parameters, &offer.answered);
        let parameters = Some(schema(&unanswered_parameters, occasion, offer.dialect));
        Some(OperationSchema { parameters })
    };
    let bindable = manifest.is_bindable(plan);
    Schemas {
        service_instance: Some(InstanceSchemas {
            create: of(&plan.parameters, ValidationPoint::Create),
            update: of(&plan.parameters, ValidationPoint::Update),
        }),
        service_binding: bindable.then(|| BindingSchemas {
            create: of(&plan.bind_parameters, ValidationPoint::Create),
        }),
    }
}

/// Parameters that users are asked for. Parameters that depend on an answered one are left out too, so that the
/// catalog does not reveal the answer.
fn unanswered(parameters: &[Parameter], answered: &BTreeSet<String>) -> Vec<Parameter> {
    let is_unanswered = |it: &&Parameter| {
        let depends = it.conditions.iter().any(|one| answered.contains(&one.key));
        !answered.contains(&it.name) && !depends
    };
    parameters.iter().filter(is_unanswered).cloned().collect()
}

/// Reasons why the offering of a manifest cannot be served, each with its path.
pub(crate) fn catalog_problems(manifest: &Manifest, offer: &Offer) -> Vec<(String, String)> {
    let below = |path: &str| path.trim_start_matches("services[0].").to_owned();
    let catalog = match Catalog::load(vec![offering(manifest, offer)]) {
        Ok(catalog) => catalog,
        Err(faults) => {
            let faults = faults.faults.into_iter();
            return faults.map(|it| (below(&it.path), it.reason)).collect();
        }
    };
    let mut faults = Vec::new();
    for (nth, plan) in catalog.plans().enumerate() {
        if let Err(fault) = compile_schemas(&plan.pin()) {
            faults.push((format!("plans[{nth}].{}", fault.path), fault.reason));
        }
    }
    faults
}

/// Compiles the schemas of a plan.
///
/// # Errors
/// The first schema that cannot be used, with its path.
pub fn compile_schemas(plan: &PinnedPlan) -> Result<ParameterSchemas, SchemaError> {
    let schemas = plan.schemas.as_ref().map(|schemas| PlanSchemas {
        provision: schemas.provision(),
        update: schemas.update(),
        bind: schemas.bind(),
    });
    ParameterSchemas::compile(schemas.unwrap_or_default())
}

/// Two bundles claim the same id or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The shared name or id, e.g. `the service id 1dda…`.
    pub what: String,
    /// The bundle that keeps it.
    pub first: String,
    /// The bundle that is left out.
    pub second: String,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            first,
            second,
        } = self;
        write!(
            f,
            "{first} and {second} both have {what}: {second} is not offered until one of them has another"
        )
    }
}

impl std::error::Error for Collision {}

/// Drops every offering that collides with an earlier one. Each offering comes with a label of its bundle, e.g. its
/// folder.
#[must_use]
pub fn resolve_collisions(
    bundles: impl IntoIterator<Item = (String, ServiceSpec)>,
) -> (Vec<(String, ServiceSpec)>, Vec<Collision>) {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let mut kept = Vec::new();
    let mut collisions = Vec::new();
    for (bundle, spec) in bundles {
        let wanted = claimed_names(&spec);
        let same = wanted.iter().find_map(|what| {
            let first = taken.get(what)?.clone();
            Some((what.clone(), first))
        });
        match same {
            Some((what, first)) => collisions.push(Collision {
                what,
                first,
                second: bundle,
            }),
            None => {
                taken.extend(wanted.into_iter().map(|what| (what, bundle.clone())));
                kept.push((bundle, spec));
            }
        }
    }
    (kept, collisions)
}

/// Names and ids that no two offerings may share.
#[must_use]
pub fn claimed_names(spec: &ServiceSpec) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut wanted = vec![
        format!("the service name {}", text(&spec.name)),
        format!("the service id {}", text(&spec.id)),
    ];
    let plans = spec.plans.iter().flatten();
    wanted.extend(plans.map(|plan| format!("the plan id {}", text(&plan.id))));
    wanted
}

#[cfg(test)]
mod tests;
