//! Bodies that create, adopt, replace and change instances.
//!
//! What `GET` shows as `spec` can be sent back by `PUT`. A change (`PATCH`) is a merge patch: only what it names changes,
//! and `null` removes.

use super::present;
use crate::api::problem::Problem;
use crate::lifecycle::instance::Source;
use crate::lifecycle::intent::OnFailure;
use crate::records::ResourceName;
use crate::spec::{ParameterSource, Parameters, ParametersPatch, Spec, SpecPatch};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use sutler_osb::{InstanceId, PlanId};

/// A whole instance.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct InstanceBody {
    /// Its name; may be left out where the path has it.
    #[serde(default)]
    pub name: Option<ResourceName>,
    /// The offering, by name or id.
    pub class: String,
    /// The plan, by name or id.
    pub plan: String,
    /// The broker, by name or uid; needed if several offer the class.
    #[serde(default)]
    pub broker: Option<String>,
    /// Maintenance version; that of the plan if it is left out.
    #[serde(default)]
    pub maintenance_version: Option<String>,
    /// Parameters that are written out.
    #[serde(default)]
    pub parameters: Parameters,
    /// Secrets with further parameters.
    #[serde(default)]
    pub parameters_from: Vec<ParameterSourceBody>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// What happens to the intents behind it if it fails.
    #[serde(default)]
    pub on_failure: OnFailureWord,
    /// The id at the broker.
    #[serde(default)]
    pub osb_id: Option<InstanceId>,
    /// The object of another system that it follows.
    #[serde(default)]
    pub source: Option<SourceBody>,
}

/// A change of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct InstancePatchBody {
    /// The new name.
    #[serde(deserialize_with = "present")]
    pub name: Option<ResourceName>,
    /// The new plan, by name or id.
    #[serde(deserialize_with = "present")]
    pub plan: Option<String>,
    /// The new maintenance version; `null` removes it.
    #[serde(deserialize_with = "present")]
    pub maintenance_version: Option<Option<String>>,
    /// Changes of parameters.
    pub parameters: ParametersPatch,
    /// The new list of secrets; `null` removes all.
    #[serde(deserialize_with = "list_or_null")]
    pub parameters_from: Option<Vec<ParameterSourceBody>>,
    /// Changes of labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// Changes of annotations.
    pub annotations: BTreeMap<String, Option<String>>,
    /// What happens to the intents behind it if it fails.
    pub on_failure: OnFailureWord,
    /// The object of another system that it follows.
    #[serde(deserialize_with = "present")]
    pub source: Option<SourceBody>,
}

/// A secret with parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterSourceBody {
    /// Name of the secret.
    pub secret: ResourceName,
    /// Key within it; without it every key is a parameter.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether a change of the secret causes an update.
    #[serde(default)]
    pub watch: bool,
}

/// An object of another system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceBody {
    /// Where it is.
    pub object: String,
    /// Its own stable id.
    pub uid: String,
    /// Its generation.
    pub generation: u64,
}

/// What happens to the intents behind one that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnFailureWord {
    /// They go on, unless they depend on it.
    #[default]
    Skip,
    /// They wait for a person.
    Halt,
}

impl From<OnFailureWord> for OnFailure {
    fn from(word: OnFailureWord) -> Self {
        match word {
            OnFailureWord::Skip => Self::Skip,
            OnFailureWord::Halt => Self::Halt,
        }
    }
}

impl From<ParameterSourceBody> for ParameterSource {
    fn from(source: ParameterSourceBody) -> Self {
        Self {
            secret: source.secret.into(),
            key: source.key,
            watch: source.watch,
        }
    }
}

impl From<SourceBody> for Source {
    fn from(source: SourceBody) -> Self {
        Self {
            object: source.object,
            uid: source.uid,
            generation: source.generation,
        }
    }
}

impl InstanceBody {
    /// The name, if it is in the body only.
    pub(crate) fn required_name(&self) -> Result<&ResourceName, Problem> {
        let name = self.name.as_ref();
        name.ok_or_else(|| Problem::invalid_field("/name", "must be given"))
    }

    /// Checks that the body does not name another instance than the path.
    pub(crate) fn check_name(&self, path: &ResourceName) -> Result<(), Problem> {
        match &self.name {
            Some(name) if name != path => Err(Problem::invalid_field(
                "/name",
                "must be the name in the path; PATCH gives another one",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// What is wanted, with the plan that was found.
    pub(crate) fn spec(&self, name: &ResourceName, plan: PlanId) -> Spec {
        let sources = self.parameters_from.iter().cloned();
        Spec {
            plan,
            maintenance_version: self.maintenance_version.clone(),
            parameters: self.parameters.clone(),
            parameter_sources: sources.map(ParameterSource::from).collect(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            name: name.as_str().to_owned(),
        }
    }
}

impl InstancePatchBody {
    /// The change, with the plan that was found if it names one.
    pub(crate) fn patch(&self, plan: Option<PlanId>) -> SpecPatch {
        let sources = self.parameters_from.clone();
        let sources = sources.map(|it| it.into_iter().map(ParameterSource::from).collect());
        SpecPatch {
            plan,
            maintenance_version: self.maintenance_version.clone(),
            parameters: self.parameters.clone(),
            parameter_sources: sources,
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            name: self.name.clone().map(String::from),
        }
    }
}

/// A list that is named; `null` is an empty one.
fn list_or_null<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Option::<Vec<T>>::deserialize(deserializer)?;
    Ok(Some(list.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::{InstanceBody, InstancePatchBody};
    use crate::spec::SpecPatch;
    use serde_json::{Value, json};
    use sutler_osb::PlanId;

    fn whole(body: Value) -> Option<InstanceBody> {
        serde_json::from_value(body).ok()
    }

    fn change(body: Value) -> Option<SpecPatch> {
        let body: InstancePatchBody = serde_json::from_value(body).ok()?;
        Some(body.patch(None))
    }

    #[test]
    fn a_body_becomes_what_is_wanted() {
        let body = whole(json!({
            "name": "db", "class": "postgresql", "plan": "small", "parameters": {"disk": 10, "x": null},
            "parametersFrom": [{"secret": "init", "key": "params", "watch": true}],
            "labels": {"team": "x"}, "onFailure": "halt",
        }));
        let body = body.expect("a body");
        let name = body.required_name().expect("a name");
        let spec = body.spec(name, PlanId::try_from("p-1").expect("an id"));
        assert_eq!(spec.name, "db");
        assert_eq!(spec.plan.as_str(), "p-1");
        assert_eq!(
            Value::Object(spec.parameters.as_map().clone()),
            json!({"disk": 10})
        );
        assert_eq!(spec.parameter_sources[0].secret, "init");
        assert!(spec.parameter_sources[0].watch);
    }

    #[test]
    fn what_is_misspelt_or_missing_is_refused() {
        for body in [
            json!({"class": "postgresql"}),
            json!({"plan": "small"}),
            json!({"class": "c", "plan": "p", "params": {}}),
            json!({"class": "c", "plan": "p", "name": "Not_A_Name"}),
            json!({"class": "c", "plan": "p", "parametersFrom": [{"secret": "a", "namespace": "b"}]}),
            json!({"class": "c", "plan": "p", "onFailure": "retry"}),
        ] {
            assert_eq!(whole(body.clone()), None, "{body}");
        }
    }

    #[test]
    fn a_change_names_only_what_changes() {
        let patch = change(json!({
            "parameters": {"disk": 50, "old": null}, "labels": {"team": null}, "maintenanceVersion": null,
            "parametersFrom": null,
        }));
        let patch = patch.expect("a change");
        assert_eq!(
            patch.paths(),
            [
                "/labels/team",
                "/maintenance_version",
                "/parameter_sources",
                "/parameters/disk",
                "/parameters/old"
            ]
        );
        assert_eq!(change(json!({})), Some(SpecPatch::default()));
        for body in [
            json!({"plan": null}),
            json!({"name": null}),
            json!({"parameters": null}),
        ] {
            assert_eq!(change(body.clone()), None, "{body}");
        }
    }
}
