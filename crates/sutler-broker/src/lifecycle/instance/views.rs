//! Reads of an instance's state: for fetches, bindings, lists and sweeps. Decides nothing.

use super::{BEING_CHANGED, BEING_CREATED, BEING_DELETED, Instance, InstanceData};
use crate::lifecycle::binding::Parent;
use crate::lifecycle::{AuthorState, Verb};
use crate::refusal::{Refusal, Resource};
use sutler_journal::OperationId;
use sutler_osb::PlanId;

/// B-152, B-153: the data that a fetch may return in this state.
pub(crate) fn fetch(at: &Instance) -> Result<&InstanceData, Refusal> {
    match at {
        Instance::Live { data } => Ok(data),
        Instance::Updating { .. } => Err(Refusal::Busy(BEING_CHANGED)),
        Instance::Deleting { was_live: true, .. } => Err(Refusal::Busy(BEING_DELETED)),
        Instance::Absent
        | Instance::Creating { .. }
        | Instance::CreateFailed { .. }
        | Instance::Deleting {
            was_live: false, ..
        }
        | Instance::Gone { .. } => Err(Refusal::NotFound(Resource::Instance)),
    }
}

/// Whether the instance can take part in a binding's change now; `None` if there is no instance.
pub(crate) fn parent(at: &Instance) -> (Option<&InstanceData>, Parent) {
    match at {
        Instance::Absent | Instance::Gone { .. } | Instance::CreateFailed { .. } => {
            (None, Parent::Missing)
        }
        Instance::Live { data } => (Some(data), Parent::Live),
        Instance::Creating { data } => (Some(data), Parent::Busy(BEING_CREATED)),
        Instance::Updating { data, .. } => (Some(data), Parent::Busy(BEING_CHANGED)),
        Instance::Deleting { data, .. } => (Some(data), Parent::Busy(BEING_DELETED)),
    }
}

impl Instance {
    /// Name of the state of a tombstone whose id can be used again.
    pub(crate) const GONE: &'static str = "gone";
    /// Name of the state of a tombstone under which bindings may be left.
    pub(crate) const PURGING: &'static str = "purging";

    /// Tombstone of an instance that this operation deleted.
    pub(crate) fn gone(last: OperationId) -> Self {
        Self::Gone {
            last,
            never_made: false,
            purging: false,
        }
    }

    /// Tombstone of an instance that an operator purged and whose bindings may be left.
    pub(crate) fn purging(last: OperationId) -> Self {
        Self::Gone {
            last,
            never_made: false,
            purging: true,
        }
    }

    /// Whether it is a tombstone whose id can be used again.
    pub(crate) fn is_plain_tombstone(&self) -> bool {
        matches!(self, Self::Gone { purging: false, .. })
    }

    /// Whether bindings of a purged instance may be left.
    pub(crate) fn is_purging(&self) -> bool {
        matches!(self, Self::Gone { purging: true, .. })
    }

    /// Tombstone of an instance whose creation was refused.
    pub(crate) fn refused(last: OperationId) -> Self {
        Self::Gone {
            last,
            never_made: true,
            purging: false,
        }
    }

    /// The operation that may wait for bindings to end or to be removed. A delete that still waits for the creation
    /// of its instance is woken by the end of that alone.
    pub(crate) fn awaits_bindings(&self) -> Option<OperationId> {
        match self {
            Self::Updating { data, .. } => Some(data.last),
            Self::Deleting {
                data,
                pending_create,
                ..
            } => pending_create.is_none().then_some(data.last),
            Self::Absent
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Gone { .. } => None,
        }
    }

    /// The plan that a running update moves it to, if it differs.
    pub(crate) fn next_plan(&self) -> Option<&PlanId> {
        match self {
            Self::Updating { data, change, .. } => {
                let next = change.plan.as_ref().map(|(plan_id, _)| plan_id);
                next.filter(|it| **it != data.spec.plan_id)
            }
            Self::Absent
            | Self::Gone { .. }
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Deleting { .. } => None,
        }
    }

    /// Its data, unless it is absent or gone.
    pub(crate) fn data(&self) -> Option<&InstanceData> {
        match self {
            Self::Absent | Self::Gone { .. } => None,
            Self::Creating { data }
            | Self::CreateFailed { data }
            | Self::Live { data }
            | Self::Updating { data, .. }
            | Self::Deleting { data, .. } => Some(data),
        }
    }

    /// The instance with another state of its author. No change if it is absent or gone.
    pub(crate) fn with_state(mut self, state: AuthorState) -> Self {
        match &mut self {
            Self::Absent | Self::Gone { .. } => {}
            Self::Creating { data }
            | Self::CreateFailed { data }
            | Self::Live { data }
            | Self::Updating { data, .. }
            | Self::Deleting { data, .. } => data.state = Some(state),
        }
        self
    }

    /// The last operation of the lane.
    pub(crate) fn last(&self) -> Option<OperationId> {
        match self {
            Self::Gone { last, .. } => Some(*last),
            other => other.data().map(|data| data.last),
        }
    }

    /// The operation that runs, or is next to run; `None` at rest.
    pub(crate) fn executing(&self) -> Option<OperationId> {
        match self {
            Self::Absent | Self::CreateFailed { .. } | Self::Live { .. } | Self::Gone { .. } => {
                None
            }
            Self::Creating { data } | Self::Updating { data, .. } => Some(data.last),
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
            Self::Creating { .. } => Verb::Provision,
            Self::Updating { .. } => Verb::Update,
            Self::Deleting { pending_create, .. } => match pending_create {
                Some(_) => Verb::Provision,
                None => Verb::Deprovision,
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
            | Self::Updating { .. }
            | Self::Gone { .. } => None,
        }
    }

    /// Operations that the document refers to; the sweep must not delete them.
    pub(crate) fn pins(&self) -> Vec<OperationId> {
        let mut pins: Vec<OperationId> = match self {
            Self::Absent | Self::Gone { .. } => Vec::new(),
            Self::Deleting { pending_create, .. } => pending_create.iter().copied().collect(),
            Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Updating { .. } => Vec::new(),
        };
        pins.extend(self.data().map(|data| data.last));
        pins
    }

    /// Name of the state, for index terms and output.
    pub(crate) fn lifecycle(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { .. } => "creating",
            Self::CreateFailed { .. } => "create_failed",
            Self::Live { .. } => "live",
            Self::Updating { .. } => "updating",
            Self::Deleting { .. } => "deleting",
            Self::Gone { purging: false, .. } => Self::GONE,
            Self::Gone { purging: true, .. } => Self::PURGING,
        }
    }
}
