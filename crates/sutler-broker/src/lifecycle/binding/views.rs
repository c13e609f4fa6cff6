//! Reads of a binding's state: for fetches, lists and sweeps. Decides nothing; see `binding.rs`.

use super::{Binding, BindingData};
use crate::lifecycle::Verb;
use crate::refusal::{Refusal, Resource};
use sutler_journal::OperationId;

/// B-232: the data that a fetch may return in this state.
pub(crate) fn fetch(at: &Binding) -> Result<&BindingData, Refusal> {
    match at {
        Binding::Live { data } => Ok(data),
        Binding::Absent
        | Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => Err(Refusal::NotFound(Resource::Binding)),
    }
}

impl Binding {
    /// Tombstone of a binding that this operation deleted.
    pub(crate) fn gone(last: OperationId) -> Self {
        let never_made = false;
        Self::Gone { last, never_made }
    }

    /// Tombstone of a binding whose creation was refused.
    pub(crate) fn refused(last: OperationId) -> Self {
        let never_made = true;
        Self::Gone { last, never_made }
    }

    /// Its data, unless it is absent or gone.
    pub(crate) fn data(&self) -> Option<&BindingData> {
        match self {
            Self::Absent | Self::Gone { .. } => None,
            Self::Creating { data }
            | Self::CreateFailed { data }
            | Self::Live { data }
            | Self::Deleting { data, .. } => Some(data),
        }
    }

    /// The last operation of the lane.
    pub(crate) fn last(&self) -> Option<OperationId> {
        match self {
            Self::Gone { last, .. } => Some(*last),
            other => other.data().map(|data| data.last),
        }
    }

    /// Operations that the document refers to; the sweep must not delete them.
    pub(crate) fn pins(&self) -> Vec<OperationId> {
        let mut pins: Vec<OperationId> = match self {
            Self::Deleting { pending_create, .. } => pending_create.iter().copied().collect(),
            Self::Absent
            | Self::Gone { .. }
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. } => Vec::new(),
        };
        pins.extend(self.data().map(|data| data.last));
        pins
    }

    /// Whether an operation of this lane runs, so that operations with exclusive use of the instance must wait.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Creating { .. } | Self::Deleting { .. } => true,
            Self::Absent | Self::CreateFailed { .. } | Self::Live { .. } | Self::Gone { .. } => {
                false
            }
        }
    }

    /// Name of the state, for index terms and output.
    pub(crate) fn lifecycle(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { .. } => "creating",
            Self::CreateFailed { .. } => "create_failed",
            Self::Live { .. } => "live",
            Self::Deleting { .. } => "deleting",
            Self::Gone { .. } => "gone",
        }
    }

    /// The operation that runs, or is next to run; `None` at rest.
    pub(crate) fn executing(&self) -> Option<OperationId> {
        match self {
            Self::Absent | Self::CreateFailed { .. } | Self::Live { .. } | Self::Gone { .. } => {
                None
            }
            Self::Creating { data } => Some(data.last),
            Self::Deleting {
                data,
                pending_create,
                ..
            } => Some(pending_create.unwrap_or(data.last)),
        }
    }

    /// Whether an operation runs, or is next to run, and has this verb.
    pub(crate) fn is_executing(&self, verb: Verb, id: OperationId) -> bool {
        let own = match self {
            Self::Absent | Self::CreateFailed { .. } | Self::Live { .. } | Self::Gone { .. } => {
                return false;
            }
            Self::Creating { .. } => Verb::Bind,
            Self::Deleting { pending_create, .. } => match pending_create {
                Some(_) => Verb::Bind,
                None => Verb::Unbind,
            },
        };
        verb == own && self.executing() == Some(id)
    }

    /// The operation that waits for the executing one.
    pub(crate) fn waiting(&self) -> Option<OperationId> {
        match self {
            Self::Deleting {
                data,
                pending_create: Some(_),
                ..
            } => Some(data.last),
            Self::Deleting {
                pending_create: None,
                ..
            }
            | Self::Absent
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Gone { .. } => None,
        }
    }
}
