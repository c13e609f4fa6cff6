//! What a user wants of a service instance, and typed differences between two such wishes.
//!
//! A [`Spec`] is complete; a [`SpecPatch`] names only what changes. Everything else follows from two functions:
//! [`diff`] and [`Spec::apply`]. The service offering never changes, so it is not in a spec. The meaning of a change for
//! a broker, the schema of the plan and the values of secrets are not known here.
//!
//! Read `merge_patch.rs` next (RFC 7396 on JSON objects), then `parameters.rs`, `spec_patch.rs` and `three_way.rs`
//! (declarative apply). `json_pointer.rs` writes the paths that users see.

pub(crate) mod json_pointer;
mod merge_patch;
mod parameters;
#[cfg(test)]
pub(crate) mod samples;
mod spec_patch;
#[cfg(test)]
mod tests;
mod three_way;

pub(crate) use merge_patch::apply as apply_merge_patch;
pub use parameters::{
    PARAMETERS_DEPTH_MAX, PATHS_BYTES_MAX, Parameters, ParametersError, ParametersPatch,
};
pub use spec_patch::SpecPatch;
pub use three_way::three_way;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use sutler_osb::PlanId;

/// What a user wants of an instance; the service offering is fixed. `Debug` shows no parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The plan.
    pub plan: PlanId,
    /// Version of `maintenance_info`, if the plan has one. It belongs to the plan, but is compared on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_version: Option<String>,
    /// Parameters that are written out.
    #[serde(default)]
    pub parameters: Parameters,
    /// Secrets that hold further parameters, in the order in which they are merged in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameter_sources: Vec<ParameterSource>,
    /// Labels, for selectors. Local: no broker sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations, for tools. A change of them alone is not sent; the context of later requests contains them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Name for people.
    pub name: String,
}

/// Parameters that are read from a secret of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ParameterSource {
    /// Name of the secret.
    pub secret: String,
    /// Key within it whose value is a JSON object; `None`: every key is a parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether a change of the secret causes an update.
    #[serde(default)]
    pub watch: bool,
}

impl Spec {
    /// The spec after a change.
    ///
    /// Idempotent: a change that is applied twice has the effect of one.
    #[must_use]
    pub fn apply(&self, patch: &SpecPatch) -> Self {
        let mut next = self.clone();
        next.merge(patch);
        next
    }

    /// Applies a change in place.
    pub(crate) fn merge(&mut self, patch: &SpecPatch) {
        if let Some(plan) = &patch.plan {
            self.plan = plan.clone();
        }
        if let Some(version) = &patch.maintenance_version {
            self.maintenance_version = version.clone();
        }
        self.parameters.merge(&patch.parameters);
        if let Some(sources) = &patch.parameter_sources {
            self.parameter_sources = sources.clone();
        }
        merge_entries(&mut self.labels, &patch.labels);
        merge_entries(&mut self.annotations, &patch.annotations);
        if let Some(name) = &patch.name {
            self.name = name.clone();
        }
    }
}

/// The smallest change that makes `to` of `from`: `from.apply(&diff(from, to)) == to`.
#[must_use]
pub fn diff(from: &Spec, to: &Spec) -> SpecPatch {
    SpecPatch {
        plan: differing(&from.plan, &to.plan),
        maintenance_version: differing(&from.maintenance_version, &to.maintenance_version),
        parameters: from.parameters.diff(&to.parameters),
        parameter_sources: differing(&from.parameter_sources, &to.parameter_sources),
        labels: diff_entries(&from.labels, &to.labels),
        annotations: diff_entries(&from.annotations, &to.annotations),
        name: differing(&from.name, &to.name),
    }
}

/// The change that takes a change back: `before.apply(patch).apply(&undo(before, patch)) == before`.
#[must_use]
pub fn undo(before: &Spec, patch: &SpecPatch) -> SpecPatch {
    diff(&before.apply(patch), before)
}

/// The new value, if it differs.
fn differing<T: Clone + PartialEq>(from: &T, to: &T) -> Option<T> {
    (from != to).then(|| to.clone())
}

fn merge_entries(entries: &mut BTreeMap<String, String>, patch: &BTreeMap<String, Option<String>>) {
    for (key, value) in patch {
        match value {
            Some(value) => entries.insert(key.clone(), value.clone()),
            None => entries.remove(key),
        };
    }
}

fn diff_entries(
    from: &BTreeMap<String, String>,
    to: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let removed = from.keys().filter(|key| !to.contains_key(*key));
    let set = to
        .iter()
        .filter(|(key, value)| from.get(*key) != Some(*value));
    let removed = removed.map(|key| (key.clone(), None));
    removed
        .chain(set.map(|(key, value)| (key.clone(), Some(value.clone()))))
        .collect()
}
