//! Registries of bundles. The keys are those of Automation Broker, so that its blocks load unchanged;
//! `config/registries.rs` converts them.

use crate::config::secret::SecretSource;
use crate::config::value_types::{DurationText, FilePath};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A registry that bundles are found in.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RegistryBlock")]
pub struct RegistryConfig {
    /// Its name, of small letters, digits and `-`. Records of what was found are kept under it.
    pub name: String,
    /// What sort of registry it is.
    #[serde(rename = "type")]
    pub kind: RegistryKind,
    /// Where it is: of an `oci` everything before `/v2`, of an `index` the file, of an `openshift` the API
    /// server. `dockerhub` and `quay` know their own.
    #[serde(default)]
    pub url: Option<String>,
    /// Where images are, if it is not where they are listed; for `dockerhub` and `quay`.
    #[serde(default)]
    pub registry_url: Option<String>,
    /// The host in the names of images when they are pulled, if it is not the host of the URL.
    #[serde(default)]
    pub pull_from: Option<String>,
    /// Whose images, for `dockerhub` and `quay`; of an `oci`, only those below this name.
    #[serde(default)]
    pub org: Option<String>,
    /// The images, by their whole names. Then nothing is asked for a list of them.
    #[serde(default)]
    pub images: Vec<String>,
    /// Namespaces that image streams are looked for in, for `openshift`.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// The tag that every image has, or `{default, named}`: more tags of some images, each an offering of its own.
    #[serde(default)]
    pub tag: ImageTags,
    /// Regular expressions of images that are wanted. Without this list all are.
    #[serde(default, alias = "allow")]
    pub white_list: Option<Vec<String>>,
    /// Regular expressions of images that are not wanted, whatever the other list says.
    #[serde(default, alias = "deny")]
    pub black_list: Vec<String>,
    /// The user, where one is asked for.
    #[serde(default)]
    pub user: Option<String>,
    /// The user's password.
    #[serde(default)]
    pub pass: Option<SecretSource>,
    /// A token in place of user and password.
    #[serde(default)]
    pub token: Option<SecretSource>,
    /// Where user and password are.
    #[serde(default)]
    pub auth_type: RegistryAuth,
    /// The file with `username` and `password`, or `token`, if `auth_type` says so.
    #[serde(default)]
    pub auth_name: Option<FilePath>,
    /// Certificate authorities to trust besides the system's, in PEM form.
    #[serde(default)]
    pub ca: Option<FilePath>,
    /// A proxy in place of the one that `HTTP_PROXY` and `HTTPS_PROXY` name. It may hold a password.
    #[serde(default)]
    pub proxy: Option<SecretSource>,
    /// The platform that is chosen where an image has several; `linux/amd64` if none is given.
    #[serde(default)]
    pub platform: Option<String>,
    /// How long one answer may take.
    #[serde(default = "answer_within")]
    pub answer_within: DurationText,
    /// Taken and without effect: a registry that fails never keeps the broker from starting.
    #[serde(default)]
    pub fail_on_error: bool,
    /// Taken and without effect: it was for sorts of registries that are not here.
    #[serde(default)]
    pub runner: Option<String>,
    /// Must not be true: name the authority under `ca` instead.
    #[serde(default)]
    pub skip_verify_tls: bool,
}

fn answer_within() -> DurationText {
    DurationText::seconds(30)
}

/// What sort of registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegistryKind {
    /// Whatever speaks the distribution API; also written `apiv2`, `partner_rhcc` or `registry_proxy`.
    Oci,
    /// Docker Hub.
    Dockerhub,
    /// Quay.
    Quay,
    /// Image streams of OpenShift; also written `local_openshift`.
    Openshift,
    /// One file of YAML at a URL.
    Index,
}

const KINDS: &[&str] = &["oci", "dockerhub", "quay", "openshift", "index"];

impl<'de> Deserialize<'de> for RegistryKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        match word.as_str() {
            "oci" | "apiv2" | "partner_rhcc" | "registry_proxy" => Ok(Self::Oci),
            "dockerhub" => Ok(Self::Dockerhub),
            "quay" => Ok(Self::Quay),
            "openshift" | "local_openshift" => Ok(Self::Openshift),
            "index" => Ok(Self::Index),
            "rhcc" => Err(D::Error::custom(
                "must be `oci`: Red Hat's catalog cannot be searched in the old way any more; list `images`",
            )),
            "helm" | "galaxy" => Err(D::Error::custom(
                "must be another one: charts and roles are no bundles by themselves; build an image of each, or \
                 make folders of them, with `sutler bundle new`",
            )),
            "mock" => Err(D::Error::custom(
                "must be another one: put bundles into `bundles.folder`, or into an `index`",
            )),
            other => Err(D::Error::unknown_variant(other, KINDS)),
        }
    }
}

/// Where user and password are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegistryAuth {
    /// In `user` and `pass`, or `token`.
    #[default]
    Config,
    /// In the file that `auth_name` names.
    File,
}

impl<'de> Deserialize<'de> for RegistryAuth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        match word.as_str() {
            "" | "config" => Ok(Self::Config),
            "file" => Ok(Self::File),
            "secret" => Err(D::Error::custom(
                "must be `file`: mount the secret, and name a file with `username` and `password` under `auth_name`",
            )),
            other => Err(D::Error::unknown_variant(other, &["config", "file"])),
        }
    }
}

/// The tags that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImageTags {
    /// The one that every image has; `latest` if none is given.
    pub default: Option<String>,
    /// More, by image.
    pub named: BTreeMap<String, Vec<String>>,
}

impl JsonSchema for ImageTags {
    fn schema_name() -> Cow<'static, str> {
        "Tags".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object"], "format": "tags" })
    }
}

impl<'de> Deserialize<'de> for ImageTags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TagsVisitor)
    }
}

struct TagsVisitor;

/// Both, as a mapping.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagSections {
    default: Option<String>,
    #[serde(default)]
    named: NamedTags,
}

impl<'de> Visitor<'de> for TagsVisitor {
    type Value = ImageTags;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tag in quotes, or `default` and `named`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ImageTags, E> {
        let default = Some(String::deserialize(StrDeserializer::<E>::new(text))?);
        let named = BTreeMap::new();
        Ok(ImageTags { default, named })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ImageTags, A::Error> {
        let TagSections { default, named } =
            TagSections::deserialize(MapAccessDeserializer::new(map))?;
        let named = named.0;
        Ok(ImageTags { default, named })
    }
}

/// Tags by image: a mapping, or a list of mappings, as Automation Broker's proposal has it.
#[derive(Default)]
struct NamedTags(BTreeMap<String, Vec<String>>);

impl<'de> Deserialize<'de> for NamedTags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamedTagsVisitor)
    }
}

struct NamedTagsVisitor;

impl<'de> Visitor<'de> for NamedTagsVisitor {
    type Value = NamedTags;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of images, each with a list of tags")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NamedTags, A::Error> {
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(images) = items.next_element::<BTreeMap<String, Vec<String>>>()? {
            for (image, tags) in images {
                named.entry(image).or_default().extend(tags);
            }
        }
        Ok(NamedTags(named))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NamedTags, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(NamedTags)
    }
}
