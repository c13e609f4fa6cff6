//! Specifications and differences as they are shown. What is shown of a specification can be sent back by `PUT`.

use super::catalog_names::CatalogNames;
use crate::spec::{ParameterSource, Spec, SpecPatch};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A specification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpecView {
    name: String,
    class: String,
    plan: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintenance_version: Option<String>,
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters_from: Vec<ParameterSource>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

impl SpecView {
    pub(super) fn of(spec: &Spec, names: CatalogNames<'_>) -> Self {
        Self {
            name: spec.name.clone(),
            class: names.class(),
            plan: names.plan(&spec.plan),
            maintenance_version: spec.maintenance_version.clone(),
            parameters: spec.parameters.as_map().clone(),
            parameters_from: spec.parameter_sources.clone(),
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
        }
    }
}

/// The difference that a change makes, as a merge patch of what is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DifferenceView {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintenance_version: Option<Option<String>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_from: Option<Vec<ParameterSource>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, Option<String>>,
}

impl DifferenceView {
    pub(super) fn of(patch: &SpecPatch, names: CatalogNames<'_>) -> Self {
        Self {
            name: patch.name.clone(),
            plan: patch.plan.as_ref().map(|plan| names.plan(plan)),
            maintenance_version: patch.maintenance_version.clone(),
            parameters: patch.parameters.as_map().clone(),
            parameters_from: patch.parameter_sources.clone(),
            labels: patch.labels.clone(),
            annotations: patch.annotations.clone(),
        }
    }
}

/// The path of a difference as users write it: the stored form has other names of two fields.
pub(super) fn shown_path(path: &str) -> String {
    let renamed = [
        ("/maintenance_version", "/maintenanceVersion"),
        ("/parameter_sources", "/parametersFrom"),
    ];
    let found = renamed.iter().find_map(|(stored, shown)| {
        let rest = path.strip_prefix(stored)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{shown}{rest}"))
    });
    found.unwrap_or_else(|| path.to_owned())
}
