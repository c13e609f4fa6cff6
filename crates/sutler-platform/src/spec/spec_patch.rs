//! A change of a spec: the part of an intent that says what shall be different.
//!
//! A field that is not named stays as it is. Built by `diff`, `undo` and `three_way`, applied by `Spec::apply`.

use super::json_pointer;
use super::{ParameterSource, ParametersPatch};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use sutler_osb::PlanId;

/// A change of a spec. The default changes nothing. `Debug` shows no parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpecPatch {
    /// The new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The new maintenance version; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "named")]
    pub maintenance_version: Option<Option<String>>,
    /// Changes of the parameters.
    #[serde(skip_serializing_if = "ParametersPatch::is_empty")]
    pub parameters: ParametersPatch,
    /// The new list of secrets with parameters, as a whole: their order matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter_sources: Option<Vec<ParameterSource>>,
    /// Changes of labels; `None` removes one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Changes of annotations; `None` removes one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// The new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl SpecPatch {
    /// Whether it changes nothing, whatever it is applied to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Whether no broker needs to be called: at most labels, annotations and the name change.
    #[must_use]
    pub fn is_local(&self) -> bool {
        !self.changes_plan() && !self.changes_parameters() && self.maintenance_version.is_none()
    }

    /// Whether it names a plan.
    #[must_use]
    pub fn changes_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether it names parameters, or the secrets that hold some.
    #[must_use]
    pub fn changes_parameters(&self) -> bool {
        !self.parameters.is_empty() || self.parameter_sources.is_some()
    }

    /// JSON pointers of all that it touches, e.g. `/plan`, `/parameters/disk/size`, `/labels/team`.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        json_pointer::leaves(&self.to_document())
    }

    /// Size of its JSON, in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        Value::Object(self.to_document()).to_string().len()
    }

    /// SHA-256 of its JSON with sorted keys: the same in every release, for changes with the same JSON.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut document = Value::Object(self.to_document());
        document.sort_all_objects();
        Sha256::digest(document.to_string().as_bytes()).into()
    }

    /// One change with the effect of this and a later one on every spec; `None` if there is none.
    ///
    /// There is none where this one removes a parameter, or replaces it by something that is no object, and the later
    /// one merges an object into it. Both together replace the parameter by exactly that object; a single merge patch
    /// (RFC 7396) merges the object into what the spec has there, so no merge patch has this effect on every spec.
    #[must_use]
    pub fn then(&self, later: &Self) -> Option<Self> {
        let version = later.maintenance_version.as_ref();
        let sources = later.parameter_sources.as_ref();
        Some(Self {
            plan: later.plan.as_ref().or(self.plan.as_ref()).cloned(),
            maintenance_version: version.or(self.maintenance_version.as_ref()).cloned(),
            parameters: self.parameters.then(&later.parameters)?,
            parameter_sources: sources.or(self.parameter_sources.as_ref()).cloned(),
            labels: both(&self.labels, &later.labels),
            annotations: both(&self.annotations, &later.annotations),
            name: later.name.as_ref().or(self.name.as_ref()).cloned(),
        })
    }

    /// The change as a JSON object, in the form in which it is stored; the root of its paths.
    pub(crate) fn to_document(&self) -> Map<String, Value> {
        let version = self.maintenance_version.as_ref();
        let sources = self.parameter_sources.as_ref();
        let fields = [
            (
                "plan",
                self.plan.as_ref().map(|plan| Value::from(plan.as_str())),
            ),
            (
                "maintenance_version",
                version.map(|it| Value::from(it.as_deref())),
            ),
            ("parameters", members(self.parameters.as_map().clone())),
            (
                "parameter_sources",
                sources.map(|it| it.iter().map(source).collect()),
            ),
            ("labels", members(entries(&self.labels))),
            ("annotations", members(entries(&self.annotations))),
            ("name", self.name.as_deref().map(Value::from)),
        ];
        let fields = fields.into_iter();
        fields
            .filter_map(|(field, value)| Some((field.to_owned(), value?)))
            .collect()
    }
}

/// A field that is named, even as `null`.
fn named<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

fn both(
    first: &BTreeMap<String, Option<String>>,
    later: &BTreeMap<String, Option<String>>,
) -> BTreeMap<String, Option<String>> {
    let mut entries = first.clone();
    entries.extend(
        later
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    entries
}

/// An object without members stands for a field that is not named.
fn members(object: Map<String, Value>) -> Option<Value> {
    (!object.is_empty()).then_some(Value::Object(object))
}

fn entries(entries: &BTreeMap<String, Option<String>>) -> Map<String, Value> {
    let entries = entries.iter();
    entries
        .map(|(key, value)| (key.clone(), Value::from(value.as_deref())))
        .collect()
}

fn source(source: &ParameterSource) -> Value {
    let mut members = Map::new();
    members.insert("secret".to_owned(), Value::from(source.secret.as_str()));
    if let Some(key) = &source.key {
        members.insert("key".to_owned(), Value::from(key.as_str()));
    }
    members.insert("watch".to_owned(), Value::from(source.watch));
    Value::Object(members)
}
