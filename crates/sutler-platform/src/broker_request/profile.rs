//! Profiles: how a namespace and an instance are described to a broker in `context`.
//!
//! A broker is registered with a profile. A [`NamespaceContext`] is the proof that a namespace has every fact that the
//! profile demands, none of them empty.
//!
//! Keeps P-030 (`platform` in every context), P-031 (Cloud Foundry), P-032 (Kubernetes), P-033 and P-070 (organization
//! and space ids), P-106 (what `app_guid` is). Not here: the user behind a request (`originating_identity.rs`), and the
//! bodies (`instance.rs`, `binding.rs`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use sutler_osb::{Context, NonEmptyText};

/// Most annotations of one namespace, organization or space, in bytes of names and values: they are part of every
/// request, which has to fit into one record.
pub const ANNOTATIONS_BYTES_MAX: usize = 32 * 1024;

/// Shape of `context` and of the originating identity, chosen for each broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// As Service Catalog: `namespace`, `clusterid`, `instance_name` and the annotations of both.
    Kubernetes,
    /// As Cloud Foundry: the organization and the space of the namespace, `instance_name` and the annotations.
    CloudFoundry,
    /// Sutler's own: `{"platform": "sutler", "namespace", "namespace_uid", "instance_name"}`, all strings that are not
    /// empty. A bind is sent without `instance_name`. The originating identity is that of Kubernetes.
    Sutler,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Kubernetes, Self::CloudFoundry, Self::Sutler];

    /// The platform's name in `context` and in the originating identity (P-012, P-030).
    pub fn platform(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::CloudFoundry => "cloudfoundry",
            Self::Sutler => "sutler",
        }
    }
}

/// Names and values attached to a namespace, an organization or a space; at most [`ANNOTATIONS_BYTES_MAX`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, String>",
    into = "BTreeMap<String, String>"
)]
pub struct Annotations(BTreeMap<String, String>);

/// There are too many annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotations must not be larger than {ANNOTATIONS_BYTES_MAX} bytes together")]
pub struct AnnotationsTooLargeError;

impl Annotations {
    /// Names and values.
    pub fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl TryFrom<BTreeMap<String, String>> for Annotations {
    type Error = AnnotationsTooLargeError;
    fn try_from(map: BTreeMap<String, String>) -> Result<Self, AnnotationsTooLargeError> {
        let bytes: usize = map
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        match bytes > ANNOTATIONS_BYTES_MAX {
            true => Err(AnnotationsTooLargeError),
            false => Ok(Self(map)),
        }
    }
}

impl From<Annotations> for BTreeMap<String, String> {
    fn from(annotations: Annotations) -> Self {
        annotations.0
    }
}

/// Facts of a namespace that contexts are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: NonEmptyText,
    /// Its stable id, unique within the platform.
    pub uid: NonEmptyText,
    /// Id of the cluster that it belongs to; of this platform if it belongs to none.
    pub cluster_id: NonEmptyText,
    /// Its annotations.
    #[serde(default)]
    pub annotations: Annotations,
    /// Organization and space that it stands for on Cloud Foundry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_foundry: Option<CloudFoundryLocation>,
}

/// An organization and one of its spaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudFoundryLocation {
    /// The organization.
    pub organization: CloudFoundryEntity,
    /// The space.
    pub space: CloudFoundryEntity,
}

/// An organization or a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudFoundryEntity {
    /// Its id.
    pub guid: NonEmptyText,
    /// Its name, which may change.
    pub name: NonEmptyText,
    /// Its annotations.
    #[serde(default)]
    pub annotations: Annotations,
}

/// A namespace lacks a fact that a profile demands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceProfileError {
    /// The profile is [`Profile::CloudFoundry`].
    #[error(
        "the namespace {namespace} has no organization and space, which brokers with the profile cloudfoundry need: \
         set both"
    )]
    NoCloudFoundryLocation {
        /// Name of the namespace.
        namespace: NonEmptyText,
    },
}

/// A namespace as a broker with a certain profile sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceContext<'a> {
    namespace: &'a Namespace,
    facts: ProfileFacts<'a>,
}

/// What a profile needs beyond the facts that every namespace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProfileFacts<'a> {
    Kubernetes,
    CloudFoundry(&'a CloudFoundryLocation),
    Sutler,
}

impl<'a> NamespaceContext<'a> {
    /// The namespace by this profile, if it has all that the profile demands.
    pub fn new(profile: Profile, namespace: &'a Namespace) -> Result<Self, NamespaceProfileError> {
        let facts = match (profile, &namespace.cloud_foundry) {
            (Profile::Kubernetes, _) => ProfileFacts::Kubernetes,
            (Profile::CloudFoundry, Some(location)) => ProfileFacts::CloudFoundry(location),
            (Profile::CloudFoundry, None) => {
                return Err(NamespaceProfileError::NoCloudFoundryLocation {
                    namespace: namespace.name.clone(),
                });
            }
            (Profile::Sutler, _) => ProfileFacts::Sutler,
        };
        Ok(Self { namespace, facts })
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        match self.facts {
            ProfileFacts::Kubernetes => Profile::Kubernetes,
            ProfileFacts::CloudFoundry(_) => Profile::CloudFoundry,
            ProfileFacts::Sutler => Profile::Sutler,
        }
    }

    /// `context` of a provision and of an update.
    pub fn of_instance(
        &self,
        name: &NonEmptyText,
        annotations: &BTreeMap<String, String>,
    ) -> Context {
        let Context(mut context) = self.of_binding();
        add_text(&mut context, "instance_name", name);
        match self.facts {
            ProfileFacts::Kubernetes | ProfileFacts::CloudFoundry(_) => {
                add_annotations(&mut context, "instance_annotations", annotations);
            }
            ProfileFacts::Sutler => {}
        }
        Context(context)
    }

    /// `context` of a bind: that of an instance without the instance.
    pub fn of_binding(&self) -> Context {
        let (namespace, mut context) = (self.namespace, Map::new());
        let platform = Value::from(self.profile().platform());
        context.insert("platform".to_owned(), platform);
        match self.facts {
            ProfileFacts::Kubernetes => {
                add_text(&mut context, "namespace", &namespace.name);
                add_text(&mut context, "clusterid", &namespace.cluster_id);
                let annotations = namespace.annotations.as_map();
                add_annotations(&mut context, "namespace_annotations", annotations);
            }
            ProfileFacts::CloudFoundry(CloudFoundryLocation {
                organization,
                space,
            }) => {
                add_text(&mut context, "organization_guid", &organization.guid);
                add_text(&mut context, "organization_name", &organization.name);
                add_text(&mut context, "space_guid", &space.guid);
                add_text(&mut context, "space_name", &space.name);
                let annotations = organization.annotations.as_map();
                add_annotations(&mut context, "organization_annotations", annotations);
                let annotations = space.annotations.as_map();
                add_annotations(&mut context, "space_annotations", annotations);
            }
            ProfileFacts::Sutler => {
                add_text(&mut context, "namespace", &namespace.name);
                add_text(&mut context, "namespace_uid", &namespace.uid);
            }
        }
        Context(context)
    }

    /// `organization_guid` of a provision: on platforms without organizations the cluster, as in Service Catalog.
    pub fn organization_guid(&self) -> &'a NonEmptyText {
        match self.facts {
            ProfileFacts::CloudFoundry(location) => &location.organization.guid,
            ProfileFacts::Kubernetes | ProfileFacts::Sutler => &self.namespace.cluster_id,
        }
    }

    /// `space_guid` of a provision: on platforms without spaces the namespace, as in Service Catalog.
    pub fn space_guid(&self) -> &'a NonEmptyText {
        match self.facts {
            ProfileFacts::CloudFoundry(location) => &location.space.guid,
            ProfileFacts::Kubernetes | ProfileFacts::Sutler => &self.namespace.uid,
        }
    }

    /// `app_guid` of a bind whose broker demands an application: the namespace, which is unique within the platform
    /// (P-106).
    pub fn app_guid(&self) -> &'a NonEmptyText {
        &self.namespace.uid
    }
}

fn add_text(context: &mut Map<String, Value>, field: &str, text: &NonEmptyText) {
    context.insert(field.to_owned(), Value::from(text.as_str()));
}

/// Adds annotations as an object; they are optional, so none are left out.
fn add_annotations(
    context: &mut Map<String, Value>,
    field: &str,
    annotations: &BTreeMap<String, String>,
) {
    if annotations.is_empty() {
        return;
    }
    let entries = annotations.iter();
    let object = entries.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    context.insert(field.to_owned(), Value::Object(object.collect()));
}
