//! Phase and conditions of an instance, derived from its document. Never stored, so they cannot disagree with it.
//!
//! `Ready` says that bindings can be made, and stays true after a rejected update; `Synced` says whether the shown
//! specification is what the broker confirmed.

use crate::lifecycle::instance::{Exposure, Instance};
use crate::lifecycle::intent::{IntentEnd, IntentState};

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancePhase {
    /// The broker has not been asked, or has refused.
    New,
    /// A create is pending.
    Provisioning,
    /// The broker confirmed it.
    Live,
    /// A delete is pending.
    Deleting,
    /// It is no more.
    Gone,
}

/// Whether something holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// Yes.
    True,
    /// No, with a word for programs.
    False(&'static str),
    /// It is not known, with a word for programs.
    Unknown(&'static str),
}

/// The conditions of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// It can be used, and bindings can be made.
    pub ready: ConditionStatus,
    /// The broker confirmed what is shown.
    pub synced: ConditionStatus,
    /// A person has to decide something.
    pub stalled: ConditionStatus,
    /// A delete is pending.
    pub deleting: ConditionStatus,
}

impl Instance {
    /// Where it is in its life.
    pub fn phase(&self) -> InstancePhase {
        if self.tombstone.is_some() {
            InstancePhase::Gone
        } else if self.deletion.is_some() {
            InstancePhase::Deleting
        } else if self.confirmed().is_some() {
            InstancePhase::Live
        } else if self.is_being_created() {
            InstancePhase::Provisioning
        } else {
            InstancePhase::New
        }
    }

    /// Its conditions.
    pub fn conditions(&self) -> Conditions {
        Conditions {
            ready: self.ready(),
            synced: self.synced(),
            stalled: self.stalled(),
            deleting: match self.deletion {
                Some(_) => ConditionStatus::True,
                None => ConditionStatus::False("NotRequested"),
            },
        }
    }

    fn ready(&self) -> ConditionStatus {
        match self.phase() {
            InstancePhase::Gone => ConditionStatus::False("Gone"),
            InstancePhase::New => ConditionStatus::False("NotCreated"),
            InstancePhase::Provisioning => ConditionStatus::False("Provisioning"),
            InstancePhase::Live | InstancePhase::Deleting if self.confirmed().is_none() => {
                ConditionStatus::False("NotCreated")
            }
            InstancePhase::Live | InstancePhase::Deleting if !self.usable => {
                ConditionStatus::False("Unusable")
            }
            InstancePhase::Live | InstancePhase::Deleting => ConditionStatus::True,
        }
    }

    fn synced(&self) -> ConditionStatus {
        let is_held = |state: &IntentState| matches!(state, IntentState::OnHold(_));
        if matches!(self.exposure, Exposure::Uncertain(_)) {
            ConditionStatus::Unknown("UpdateUncertain")
        } else if self.pending.iter().any(|it| !is_held(&it.state)) {
            ConditionStatus::False("Pending")
        } else if !self.pending.is_empty() {
            ConditionStatus::False("OnHold")
        } else if self.confirmed().is_none() {
            ConditionStatus::False("NotCreated")
        } else {
            ConditionStatus::True
        }
    }

    fn stalled(&self) -> ConditionStatus {
        if self
            .pending
            .iter()
            .any(|it| matches!(it.state, IntentState::OnHold(_)))
        {
            return ConditionStatus::True;
        }
        let last = self
            .ended
            .iter()
            .rev()
            .map(|ended| &ended.end)
            .find(|end| match end {
                IntentEnd::Succeeded | IntentEnd::Rejected(_) | IntentEnd::Failed(_) => true,
                IntentEnd::Superseded(_) | IntentEnd::Cancelled(_) => false,
            });
        match last {
            Some(IntentEnd::Rejected(_) | IntentEnd::Failed(_)) => ConditionStatus::True,
            _ => ConditionStatus::False("NothingFailed"),
        }
    }
}
