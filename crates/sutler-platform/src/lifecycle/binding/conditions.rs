//! Phase and conditions of a binding and its generations, derived from its document. Never stored, so they cannot
//! disagree with it.

use crate::lifecycle::binding::{Binding, EndedIntent, GenerationState, IntentCause};
use crate::lifecycle::instance::ConditionStatus;
use crate::lifecycle::intent::{IntentEnd, IntentState};
use jiff::Timestamp;
use sutler_osb::BindingId;

/// Where a binding is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingPhase {
    /// The broker has not been asked, or has refused.
    New,
    /// The first bind is pending.
    Binding,
    /// It has credentials.
    Bound,
    /// A delete is pending.
    Deleting,
    /// It is no more.
    Gone,
}

/// How far a generation has come, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationPhase {
    /// The broker has not confirmed it.
    Binding,
    /// Its credentials are delivered.
    Current,
    /// It was replaced, and is unbound at this moment at the earliest.
    Retiring(Timestamp),
    /// An unbind of it was sent.
    Unbinding,
}

/// The conditions of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// It has credentials.
    pub ready: ConditionStatus,
    /// A person has to decide something, or a rotation failed.
    pub stalled: ConditionStatus,
    /// A rotation is pending.
    pub rotating: ConditionStatus,
    /// A delete is pending.
    pub deleting: ConditionStatus,
}

impl Binding {
    /// Where it is in its life.
    pub fn phase(&self) -> BindingPhase {
        if self.tombstone.is_some() {
            BindingPhase::Gone
        } else if self.deletion.is_some() {
            BindingPhase::Deleting
        } else if self.current().is_some() {
            BindingPhase::Bound
        } else if self.pending_bind().is_some() {
            BindingPhase::Binding
        } else {
            BindingPhase::New
        }
    }

    /// How far a generation has come.
    pub fn generation_phase(&self, osb_id: &BindingId) -> Option<GenerationPhase> {
        let generation = self.generation(osb_id)?;
        if self.is_unbinding(osb_id) {
            return Some(GenerationPhase::Unbinding);
        }
        Some(match &generation.state {
            GenerationState::Binding(_) => GenerationPhase::Binding,
            GenerationState::Current(_) => GenerationPhase::Current,
            GenerationState::Retiring(retirement, _) => GenerationPhase::Retiring(retirement.until),
        })
    }

    /// Whether an unbind of a generation was sent.
    fn is_unbinding(&self, osb_id: &BindingId) -> bool {
        let deletion = self.deletion.as_ref();
        let is_target = deletion.is_some_and(|it| it.target.as_ref() == Some(osb_id));
        is_target
            || self
                .unbind_of(osb_id)
                .is_some_and(|it| it.first_sent.is_some())
    }

    /// Its conditions.
    pub fn conditions(&self) -> Conditions {
        let is_rotating = self.pending_bind().is_some() && self.current().is_some();
        Conditions {
            ready: self.ready(),
            stalled: self.stalled(),
            rotating: is_so(is_rotating, "NotRequested"),
            deleting: is_so(self.deletion.is_some(), "NotRequested"),
        }
    }

    fn ready(&self) -> ConditionStatus {
        match self.phase() {
            BindingPhase::Gone => ConditionStatus::False("Gone"),
            BindingPhase::Bound | BindingPhase::Deleting if self.current().is_some() => {
                ConditionStatus::True
            }
            BindingPhase::Binding => ConditionStatus::False("Binding"),
            BindingPhase::New | BindingPhase::Bound | BindingPhase::Deleting => {
                ConditionStatus::False("NotBound")
            }
        }
    }

    fn stalled(&self) -> ConditionStatus {
        let is_held = |state: &IntentState| matches!(state, IntentState::OnHold(_));
        let has_failed = match self.last_result().map(|ended| &ended.end) {
            Some(IntentEnd::Rejected(_) | IntentEnd::Failed(_)) => true,
            Some(IntentEnd::Succeeded | IntentEnd::Superseded(_) | IntentEnd::Cancelled(_))
            | None => false,
        };
        let is_stalled = has_failed
            || self.failed_rotations.is_some()
            || self.pending.iter().any(|it| is_held(&it.state));
        is_so(is_stalled, "NothingFailed")
    }

    /// The last intent that was not put aside.
    fn last_result(&self) -> Option<&EndedIntent> {
        self.ended.iter().rev().find(|ended| match ended.end {
            IntentEnd::Succeeded | IntentEnd::Rejected(_) | IntentEnd::Failed(_) => true,
            IntentEnd::Superseded(_) | IntentEnd::Cancelled(_) => false,
        })
    }

    /// When a delete failed that the deletion of the instance caused, if nothing happened since: the instance cannot be
    /// deleted either.
    pub fn failed_cascade(&self) -> Option<Timestamp> {
        let last = self.last_result().filter(|_| self.deletion.is_none())?;
        let is_cascade = last.change.is_delete() && last.cause == IntentCause::Cascade;
        (is_cascade && last.end != IntentEnd::Succeeded).then_some(last.at)
    }
}

fn is_so(holds: bool, otherwise: &'static str) -> ConditionStatus {
    match holds {
        true => ConditionStatus::True,
        false => ConditionStatus::False(otherwise),
    }
}
