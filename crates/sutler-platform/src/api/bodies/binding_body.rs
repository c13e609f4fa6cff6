//! The body of `POST …/bindings`.

use super::instance_body::ParameterSourceBody;
use crate::api::problem::Problem;
use crate::api::time_span::TimeSpan;
use crate::commands::WantedBinding;
use crate::lifecycle::binding::{RotationPolicy, TargetResource, Transforms};
use crate::records::ResourceName;
use crate::spec::{ParameterSource, Parameters};
use serde::Deserialize;
use sutler_osb::{BindingId, NonEmptyText};

/// A binding. `Debug` shows neither parameters nor values of transforms.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BindingBody {
    /// Its name.
    pub name: ResourceName,
    /// Name of the instance.
    pub instance: ResourceName,
    /// Parameters that are written out.
    #[serde(default)]
    pub parameters: Parameters,
    /// Secrets with further parameters.
    #[serde(default)]
    pub parameters_from: Vec<ParameterSourceBody>,
    /// The route whose requests the service handles, if the credentials are for a route.
    #[serde(default)]
    pub route: Option<NonEmptyText>,
    /// How the credentials are delivered.
    #[serde(default)]
    pub transforms: Transforms,
    /// When it is rotated; left out: only if a person asks for it.
    #[serde(default)]
    pub rotation: Option<RotationBody>,
    /// The id at the broker.
    #[serde(default)]
    pub external_id: Option<BindingId>,
}

/// When a binding is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotationBody {
    /// Time between two rotations; left out: only before the broker's credentials expire.
    #[serde(default)]
    pub every: Option<TimeSpan>,
    /// How long replaced credentials work.
    pub overlap: TimeSpan,
}

impl BindingBody {
    /// What is wanted.
    pub(crate) fn wanted(self) -> Result<WantedBinding, Problem> {
        let rotation = self.rotation.map(RotationBody::policy).transpose()?;
        let sources = self.parameters_from.into_iter();
        Ok(WantedBinding {
            name: self.name,
            instance: self.instance,
            parameters: self.parameters,
            parameter_sources: sources.map(ParameterSource::from).collect(),
            target: match self.route {
                Some(route) => TargetResource::Route(route),
                None => TargetResource::Credentials,
            },
            transforms: self.transforms,
            rotation,
            osb_id: self.external_id,
        })
    }
}

impl RotationBody {
    fn policy(self) -> Result<RotationPolicy, Problem> {
        let policy = RotationPolicy::new(self.every.map(|span| span.0), self.overlap.0);
        policy.map_err(|error| Problem::invalid_field("/rotation", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::BindingBody;
    use crate::lifecycle::binding::TargetResource;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn body(more: Value) -> Option<BindingBody> {
        let mut body = json!({"name": "app", "instance": "db"});
        let members = body.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        serde_json::from_value(body).ok()
    }

    #[test]
    fn a_body_becomes_what_each_bind_asks_for() {
        let more = json!({"rotation": {"every": "30d", "overlap": "1h"}, "transforms": [{"remove": "admin"}]});
        let wanted = body(more).expect("a body").wanted().expect("a binding");
        let policy = wanted.rotation.expect("it is rotated");
        assert_eq!(policy.overlap(), Duration::from_secs(3600));
        assert_eq!(wanted.transforms.as_slice().len(), 1);
        assert_eq!(wanted.target, TargetResource::Credentials);
    }

    #[test]
    fn a_rotation_that_is_too_frequent_is_refused() {
        let body = body(json!({"rotation": {"every": "1s", "overlap": "1h"}})).expect("a body");
        let problem = body.wanted().expect_err("too often").document();
        assert_eq!(problem["violations"][0]["pointer"], "/rotation");
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        assert_eq!(body(json!({"rotate": {}})), None);
        assert_eq!(body(json!({"rotation": {"every": "1d"}})), None);
        assert_eq!(body(json!({"route": ""})), None);
    }
}
