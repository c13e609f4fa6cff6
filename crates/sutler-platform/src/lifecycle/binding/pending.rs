//! An intent of a service binding: what it changes, and how far it has come. Types only.

use crate::author::Author;
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState, OperationId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sutler_osb::BindingId;

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
    /// What caused it.
    pub cause: IntentCause,
    /// Whether it waits until the instance is live and usable.
    pub waits_for_instance: bool,
    /// Requests of it that were written down to be sent.
    pub attempts: u32,
    /// When the first of them was. Of a delete: the first about its present generation.
    pub first_sent: Option<Timestamp>,
    /// Whether an attempt may have had an effect that no answer confirmed or excluded.
    pub in_doubt: bool,
    /// How far it has come.
    pub state: IntentState,
}

/// What an intent changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentChange {
    /// Adds a generation: the first one, or one that replaces the current one.
    Bind(BindChange),
    /// Unbinds a generation that was replaced.
    Unbind(BindingId),
    /// Unbinds all generations.
    Delete,
}

/// A bind of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindChange {
    /// The generation.
    pub osb_id: BindingId,
    /// The generation that the broker is to rotate (P-111); `None`: an ordinary bind.
    pub predecessor: Option<BindingId>,
}

/// What caused an intent of a binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentCause {
    /// A user asked for it.
    User,
    /// A user repeats an ended intent.
    Retry(IntentNumber),
    /// A user lets a held intent go on, in a new place.
    Resume(IntentNumber),
    /// The platform repeats a bind whose leftovers are deleted.
    AutoRetry(IntentNumber),
    /// Its rotation is due.
    Renewal,
    /// The overlap of a replaced generation is over.
    Retirement,
    /// The instance is deleted.
    Cascade,
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
    /// What caused it.
    pub cause: IntentCause,
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub end: IntentEnd,
}

impl IntentChange {
    /// The bind, if it is one.
    pub fn bind(&self) -> Option<&BindChange> {
        match self {
            Self::Bind(bind) => Some(bind),
            Self::Unbind(_) | Self::Delete => None,
        }
    }

    /// Whether it deletes the binding.
    pub fn is_delete(&self) -> bool {
        match self {
            Self::Delete => true,
            Self::Bind(_) | Self::Unbind(_) => false,
        }
    }

    /// Whether it is about this generation alone.
    pub fn concerns(&self, osb_id: &BindingId) -> bool {
        match self {
            Self::Bind(bind) => bind.osb_id == *osb_id,
            Self::Unbind(unbound) => unbound == osb_id,
            Self::Delete => false,
        }
    }
}
