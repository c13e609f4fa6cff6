//! The body of `POST …/bindings`.

use super::instance_body::ParameterSourceBody;
use crate::api::problem::Problem;
use crate::api::time_span::TimeSpan;
use crate::lifecycle::binding::{BindSpec, RotationPolicy, TargetResource, Transforms};
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
    pub osb_id: Option<BindingId>,
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
    /// What each bind asks for.
    pub(crate) fn spec(&self) -> BindSpec {
        let sources = self.parameters_from.iter().cloned();
        BindSpec {
            parameters: self.parameters.clone(),
            parameter_sources: sources.map(ParameterSource::from).collect(),
            target: match self.route.clone() {
                Some(route) => TargetResource::Route(route),
                None => TargetResource::Credentials,
            },
        }
    }

    /// When it is rotated.
    pub(crate) fn rotation(&self) -> Result<Option<RotationPolicy>, Problem> {
        let Some(RotationBody { every, overlap }) = self.rotation else {
            return Ok(None);
        };
        let policy = RotationPolicy::new(every.map(|span| span.0), overlap.0);
        policy
            .map(Some)
            .map_err(|error| Problem::invalid_field("/rotation", error.to_string()))
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
        let body = body(more).expect("a body");
        let policy = body.rotation().expect("a policy").expect("it is rotated");
        assert_eq!(policy.overlap(), Duration::from_secs(3600));
        assert_eq!(body.transforms.as_slice().len(), 1);
        assert_eq!(body.spec().target, TargetResource::Credentials);
    }

    #[test]
    fn a_rotation_that_is_too_frequent_is_refused() {
        let body = body(json!({"rotation": {"every": "1s", "overlap": "1h"}})).expect("a body");
        let problem = body.rotation().expect_err("too often").document();
        assert_eq!(problem["violations"][0]["pointer"], "/rotation");
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        assert_eq!(body(json!({"rotate": {}})), None);
        assert_eq!(body(json!({"rotation": {"every": "1d"}})), None);
        assert_eq!(body(json!({"route": ""})), None);
    }
}
