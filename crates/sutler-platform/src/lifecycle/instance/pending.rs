//! An intent of a service instance: what it changes, and how far it has come.

use crate::author::Author;
use crate::lifecycle::instance::ResourceDetails;
use crate::lifecycle::intent::{
    IntentCause, IntentEnd, IntentNumber, IntentState, OnFailure, OperationId,
};
use crate::spec::SpecPatch;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An intent that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingIntent {
    /// Number.
    pub number: IntentNumber,
    /// The operation that carries it out.
    pub operation: OperationId,
    /// What it changes.
    pub change: IntentChange,
    /// The person behind it; every request of it carries this identity.
    pub author: Author,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// The pending intents that its author saw.
    pub stands_on: Vec<IntentNumber>,
    /// What happens to those behind it if it fails.
    pub on_failure: OnFailure,
    /// What caused it.
    pub cause: IntentCause,
    /// Number of the catalog under which it was accepted.
    pub catalog_revision: u64,
    /// Requests of it that were written down to be sent.
    pub attempts: u32,
    /// When the first of them was.
    pub first_sent: Option<Timestamp>,
    /// Whether an attempt may have had an effect that no answer confirmed or excluded.
    pub in_doubt: bool,
    /// What the broker said of the resource when it accepted the request.
    pub details: Option<ResourceDetails>,
    /// How far it has come.
    pub state: IntentState,
}

/// What an intent changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentChange {
    /// Creates the instance as the basis describes it.
    Provision,
    /// Changes it at the broker. An empty patch is sent as well: the broker is asked to look again.
    Update(SpecPatch),
    /// Changes what only the platform knows: labels, annotations, the name.
    Local(SpecPatch),
    /// Deletes it.
    Delete,
}

/// An intent that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedIntent {
    /// Number.
    pub number: IntentNumber,
    /// What it changed or was to change.
    pub change: IntentChange,
    /// The person behind it.
    pub author: Author,
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub end: IntentEnd,
    /// Leads from what it confirmed back to what was confirmed before.
    pub undo: Option<SpecPatch>,
    /// Digest of a rejected change, of what it was to change, and of the catalog: the same is not sent again.
    pub rejected_as: Option<String>,
}

impl IntentChange {
    /// The difference that it makes to the specification, if any.
    pub fn patch(&self) -> Option<&SpecPatch> {
        match self {
            Self::Update(patch) | Self::Local(patch) => Some(patch),
            Self::Provision | Self::Delete => None,
        }
    }

    /// Whether it deletes the instance.
    pub fn is_delete(&self) -> bool {
        match self {
            Self::Delete => true,
            Self::Provision | Self::Update(_) | Self::Local(_) => false,
        }
    }

    /// The change that a patch makes: local if no broker has to know of it.
    pub(super) fn of(patch: SpecPatch) -> Self {
        if patch.is_local() && !patch.is_empty() {
            Self::Local(patch)
        } else {
            Self::Update(patch)
        }
    }
}

impl PendingIntent {
    /// Whether no request of it was ever sent.
    pub fn is_unsent(&self) -> bool {
        self.first_sent.is_none()
    }
}
