//! Catalog, retention of operations, and answers of older versions of the specification.

use crate::config::value_types::{CronText, DurationText, FilePath};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use sutler_broker::CleanupSettings;

/// What is offered: in a file of its own, or here.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CatalogSource")]
pub struct CatalogConfig {
    /// A file with `services`, or an `application.yaml` of Spring Cloud Open Service Broker. Read
    /// again at a reload.
    pub file: Option<FilePath>,
    /// The offerings, as `GET /v2/catalog` lists them. Read again at a reload.
    pub services: Option<InlineCatalog>,
}

/// A list of offerings in the file itself. It is read with the rules of a catalog; here it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineCatalog(pub usize);

impl<'de> Deserialize<'de> for InlineCatalog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = InlineCatalog;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of offerings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<InlineCatalog, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(InlineCatalog(count))
    }
}

impl Serialize for InlineCatalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("({} in the file)", self.0))
    }
}

impl JsonSchema for InlineCatalog {
    fn schema_name() -> Cow<'static, str> {
        "Offerings".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "format": "catalog", "items": { "type": "object" } })
    }
}

/// Unknown ids, and how long operations are kept.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Records")]
pub struct ResourceConfig {
    /// Whether the delete of an unknown id succeeds.
    pub force_delete_unknown: bool,
    /// When finished operations are removed. Those that an instance or a binding refers to stay.
    pub cleanup: CleanupConfig,
}

/// When finished operations are removed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CleanupTimes")]
pub struct CleanupConfig {
    /// How long finished operations are kept at most, with or without a schedule, and never shorter than `age`. To
    /// keep them for ever, name a long time such as `3650d`.
    pub kept: DurationText,
    /// How long an operation must have been finished before a schedule removes it.
    pub age: DurationText,
    /// When all operations of that age are removed.
    pub all: Option<CronText>,
    /// When those that succeeded are removed.
    pub succeeded: Option<CronText>,
    /// When those that failed are removed.
    pub failed: Option<CronText>,
}

impl Default for CleanupConfig {
    fn default() -> Self {
        let CleanupSettings { kept, age, .. } = CleanupSettings::default();
        Self {
            kept: DurationText(kept),
            age: DurationText(age),
            all: None,
            succeeded: None,
            failed: None,
        }
    }
}

/// Answers of older versions of the specification.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Compat")]
pub struct CompatConfig {
    /// What a request without `X-Broker-API-Version` is answered with (D-01).
    pub missing_version: MissingVersionAnswer,
    /// What a poll of a finished asynchronous delete is answered with (D-02).
    pub deleted_poll: DeletedPollAnswer,
}

/// What a missing version header is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MissingVersionAnswer {
    /// Bad request, as the specification says since 2.16.
    #[default]
    #[serde(rename = "400")]
    BadRequest,
    /// Precondition failed, as it said before.
    #[serde(rename = "412")]
    PreconditionFailed,
}

/// What a poll of a finished delete is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeletedPollAnswer {
    /// 200, and 410 once the operation is cleaned up.
    #[default]
    Succeeded,
    /// 410 at once.
    Gone,
}
