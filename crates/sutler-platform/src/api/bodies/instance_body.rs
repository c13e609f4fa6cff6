//! Bodies that create, adopt, replace and change instances.
//!
//! What `GET` shows as `spec` can be sent back by `PUT`. A change (`PATCH`) is a merge patch: only what it names changes,
//! and `null` removes.

use super::present;
use crate::api::problem::Problem;
use crate::commands::{InstancePatch, WantedInstance};
use crate::lifecycle::instance::Source;
use crate::lifecycle::intent::OnFailure;
use crate::records::ResourceName;
use crate::spec::{ParameterSource, Parameters, ParametersPatch};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use sutler_osb::InstanceId;

/// Longest name and longest id of an object of another system, in bytes.
const SOURCE_BYTES_MAX: usize = 512;

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
    /// The broker; needed if several offer the class.
    #[serde(default)]
    pub broker: Option<ResourceName>,
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
    pub external_id: Option<InstanceId>,
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

impl SourceBody {
    /// The object, if its names are short enough.
    pub(crate) fn source(self) -> Result<Source, Problem> {
        for (pointer, text) in [("/source/object", &self.object), ("/source/uid", &self.uid)] {
            if !(1..=SOURCE_BYTES_MAX).contains(&text.len()) {
                let reason = format!("must have 1 to {SOURCE_BYTES_MAX} bytes");
                return Err(Problem::invalid_field(pointer, reason));
            }
        }
        Ok(Source {
            object: self.object,
            uid: self.uid,
            generation: self.generation,
        })
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

    /// What is wanted.
    pub(crate) fn wanted(self, name: ResourceName) -> WantedInstance {
        let sources = self.parameters_from.into_iter();
        WantedInstance {
            name,
            broker: self.broker,
            class: self.class,
            plan: self.plan,
            maintenance_version: self.maintenance_version,
            parameters: self.parameters,
            parameter_sources: sources.map(ParameterSource::from).collect(),
            labels: self.labels,
            annotations: self.annotations,
            osb_id: self.external_id,
        }
    }
}

impl InstancePatchBody {
    /// What changes.
    pub(crate) fn patch(self) -> InstancePatch {
        let sources = self.parameters_from;
        let sources = sources.map(|it| it.into_iter().map(ParameterSource::from).collect());
        InstancePatch {
            plan: self.plan,
            maintenance_version: self.maintenance_version,
            parameters: self.parameters,
            parameter_sources: sources,
            labels: self.labels,
            annotations: self.annotations,
            name: self.name,
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
    use super::{InstanceBody, InstancePatchBody, SourceBody};
    use crate::commands::InstancePatch;
    use serde_json::{Value, json};

    fn whole(body: Value) -> Option<InstanceBody> {
        serde_json::from_value(body).ok()
    }

    fn change(body: Value) -> Option<InstancePatch> {
        let body: InstancePatchBody = serde_json::from_value(body).ok()?;
        Some(body.patch())
    }

    #[test]
    fn a_body_becomes_what_is_wanted() {
        let body = whole(json!({
            "name": "db", "class": "postgresql", "plan": "small", "parameters": {"disk": 10, "x": null},
            "parametersFrom": [{"secret": "init", "key": "params", "watch": true}],
            "labels": {"team": "x"}, "onFailure": "halt",
        }));
        let body = body.expect("a body");
        let name = body.required_name().expect("a name").clone();
        let wanted = body.wanted(name);
        assert_eq!(wanted.name.as_str(), "db");
        assert_eq!(wanted.plan, "small");
        let parameters = Value::Object(wanted.parameters.as_map().clone());
        assert_eq!(parameters, json!({"disk": 10}));
        assert_eq!(wanted.parameter_sources[0].secret, "init");
        assert!(wanted.parameter_sources[0].watch);
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
        assert_eq!(patch.maintenance_version, Some(None));
        assert_eq!(patch.parameter_sources, Some(Vec::new()));
        assert_eq!(patch.labels["team"], None);
        assert_eq!(patch.parameters.as_map().len(), 2);
        assert!(patch.plan.is_none() && patch.name.is_none());
        for body in [
            json!({"plan": null}),
            json!({"name": null}),
            json!({"parameters": null}),
        ] {
            assert!(change(body.clone()).is_none(), "{body}");
        }
    }

    #[test]
    fn an_object_of_another_system_has_short_names() {
        let source = |uid: &str| SourceBody {
            object: "cluster/app/db".to_owned(),
            uid: uid.to_owned(),
            generation: 3,
        };
        assert!(source("u-1").source().is_ok());
        assert!(source("").source().is_err());
        assert!(source(&"x".repeat(513)).source().is_err());
    }
}
