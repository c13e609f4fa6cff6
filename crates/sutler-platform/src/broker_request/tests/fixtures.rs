//! A namespace, an author and instances for the tests.

use crate::author::Author;
use crate::broker_request::{
    CloudFoundryEntity, CloudFoundryLocation, InstanceValues, Namespace, NamespaceContext, Profile,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use sutler_client::PlanIds;
use sutler_osb::{NonEmptyText, PinnedPlan, PlanId, ServiceId};

pub(super) fn text(text: &str) -> NonEmptyText {
    text.try_into().unwrap()
}

pub(super) fn annotations(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    entries.iter().map(owned).collect()
}

pub(super) fn object(json: Value) -> Map<String, Value> {
    let Value::Object(object) = json else {
        panic!("{json} is not an object")
    };
    object
}

pub(super) fn to_json(body: &impl Serialize) -> Value {
    serde_json::to_value(body).unwrap()
}

/// A namespace with every fact, annotations included.
pub(super) fn namespace() -> Namespace {
    let entity = |word: &str| CloudFoundryEntity {
        guid: text(&format!("{word}-guid")),
        name: text(&format!("{word}-name")),
        annotations: annotations(&[("example.org/unit", word)])
            .try_into()
            .unwrap(),
    };
    Namespace {
        name: text("shop"),
        uid: text("namespace-uid"),
        cluster_id: text("cluster-1"),
        annotations: annotations(&[("example.org/unit", "namespace")])
            .try_into()
            .unwrap(),
        cloud_foundry: Some(CloudFoundryLocation {
            organization: entity("org"),
            space: entity("space"),
        }),
    }
}

pub(super) fn context(profile: Profile, namespace: &Namespace) -> NamespaceContext<'_> {
    NamespaceContext::new(profile, namespace).unwrap()
}

pub(super) fn author() -> Author {
    Author {
        username: "ann".to_owned(),
        uid: "user-1".to_owned(),
        groups: vec!["dev".to_owned(), "ops".to_owned()],
        extra: BTreeMap::from([("scopes".to_owned(), vec!["write".to_owned()])]),
        impersonated_by: Some("front-end".to_owned()),
    }
}

pub(super) fn service() -> ServiceId {
    "service-1".try_into().unwrap()
}

pub(super) fn plan(id: &str) -> PlanId {
    id.try_into().unwrap()
}

pub(super) fn plan_ids(plan_id: &str) -> PlanIds {
    PlanIds {
        service_id: service(),
        plan_id: plan(plan_id),
    }
}

/// A plan of an offering that allows context updates and rotates bindings, or neither.
pub(super) fn pinned_plan(allows: bool) -> PinnedPlan {
    let json = json!({
        "service_id": "service-1", "service_name": "postgresql", "plan_id": "small", "plan_name": "small",
        "bindable": true, "plan_updateable": true, "binding_rotatable": allows,
        "instances_retrievable": false, "bindings_retrievable": false, "allow_context_updates": allows,
    });
    serde_json::from_value(json).unwrap()
}

/// What instance values borrow from.
#[derive(Clone)]
pub(super) struct Instance {
    pub(super) plan: PlanId,
    pub(super) version: Option<&'static str>,
    pub(super) parameters: Map<String, Value>,
    pub(super) name: NonEmptyText,
    pub(super) annotations: BTreeMap<String, String>,
}

impl Instance {
    pub(super) fn values(&self) -> InstanceValues<'_> {
        InstanceValues {
            plan_id: &self.plan,
            maintenance_version: self.version,
            parameters: &self.parameters,
            name: &self.name,
            annotations: &self.annotations,
        }
    }

    pub(super) fn with_parameters(mut self, parameters: Value) -> Self {
        self.parameters = object(parameters);
        self
    }

    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = text(name);
        self
    }
}

/// An instance without parameters and annotations.
pub(super) fn instance() -> Instance {
    Instance {
        plan: plan("small"),
        version: None,
        parameters: Map::new(),
        name: text("db"),
        annotations: BTreeMap::new(),
    }
}
