//! Who asks for a change, under which conditions, and what is wanted. Types only.

use crate::author::Author;
use crate::lifecycle::instance::{ChangeRequest, Source};
use crate::lifecycle::intent::{IntentCause, OnFailure};
use crate::lifecycle::request_key::RequestKey;
use crate::records::ResourceName;
use crate::spec::{ParameterSource, Parameters, ParametersPatch};
use std::collections::BTreeMap;
use sutler_osb::InstanceId;
use uuid::Uuid;

/// Who asks for a change, and under which conditions.
#[derive(Clone, Debug)]
pub struct ChangeOptions {
    /// The person.
    pub author: Author,
    /// The uid that the instance must have.
    pub if_uid: Option<Uuid>,
    /// The revision that must be shown still.
    pub if_revision: Option<u64>,
    /// Key under which the same request is accepted once.
    pub idempotency_key: Option<RequestKey>,
    /// What happens to those behind it if it fails.
    pub on_failure: OnFailure,
    /// Sends a change that was rejected before.
    pub forced: bool,
    /// The object and its generation that the change follows.
    pub source: Option<Source>,
    /// Decides, and writes nothing.
    pub dry_run: bool,
}

/// What a person wants of an instance.
#[derive(Clone, Debug)]
pub struct WantedInstance {
    /// Its name.
    pub name: ResourceName,
    /// The broker, if several offer the class.
    pub broker: Option<ResourceName>,
    /// Name or id of the offering.
    pub class: String,
    /// Name or id of the plan.
    pub plan: String,
    /// The maintenance version; `None`: that of the plan.
    pub maintenance_version: Option<String>,
    /// Parameters that are written out.
    pub parameters: Parameters,
    /// Secrets with further parameters.
    pub parameter_sources: Vec<ParameterSource>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The id that the broker knows or shall know; `None`: a new one.
    pub osb_id: Option<InstanceId>,
}

/// What a person changes of an instance. What is not named stays.
#[derive(Clone, Debug, Default)]
pub struct InstancePatch {
    /// Name or id of the plan.
    pub plan: Option<String>,
    /// The maintenance version; `Some(None)` removes it.
    pub maintenance_version: Option<Option<String>>,
    /// Parameters, as a merge patch.
    pub parameters: ParametersPatch,
    /// Secrets with further parameters, all of them.
    pub parameter_sources: Option<Vec<ParameterSource>>,
    /// Labels; `None` removes one.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations; `None` removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// The name.
    pub name: Option<ResourceName>,
}

impl ChangeOptions {
    /// A change of a person without further conditions.
    #[must_use]
    pub fn by(author: Author) -> Self {
        Self {
            author,
            if_uid: None,
            if_revision: None,
            idempotency_key: None,
            on_failure: OnFailure::Skip,
            forced: false,
            source: None,
            dry_run: false,
        }
    }

    /// As the rules see it.
    pub(super) fn request(&self) -> ChangeRequest {
        ChangeRequest {
            author: self.author.clone(),
            if_revision: self.if_revision,
            idempotency_key: self.idempotency_key.clone(),
            source: self.source.clone(),
            on_failure: self.on_failure,
            forced: self.forced,
            cause: IntentCause::User,
        }
    }
}
