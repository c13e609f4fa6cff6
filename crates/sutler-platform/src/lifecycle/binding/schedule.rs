//! Which operation of a binding may be claimed: only that of the active intent. All others wait.
//!
//! At the end of every decision the operations follow from the active intent before and after it. No rule starts, wakes
//! or suspends an operation by itself.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    Binding, BindingEffect, IntentChange, OperationStart, PendingIntent,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};

impl Binding {
    /// The intent that the platform works on: the only one whose operation may be claimed.
    ///
    /// A delete waits for an answer to what is being sent and for the end of an unbind, and goes over a bind that is
    /// polled or unknown.
    pub fn active(&self) -> Option<IntentNumber> {
        self.first(|it| matches!(it.state, IntentState::Sending { .. }))
            .or_else(|| self.unbind_before_delete())
            .or(self.deletion.as_ref().map(|deletion| deletion.number))
            .or_else(|| self.first(has_begun))
            .or_else(|| self.first_queued())
    }

    /// The unbind of a retiring generation for which the delete waits: it does a part of the delete already.
    fn unbind_before_delete(&self) -> Option<IntentNumber> {
        let is_unbind = |it: &PendingIntent| matches!(it.change, IntentChange::Unbind(_));
        self.deletion.as_ref()?;
        self.first(|it| is_unbind(it) && has_begun(it))
    }

    fn first_queued(&self) -> Option<IntentNumber> {
        self.first(|it| {
            let waits = self.waits_for_orphan && it.change.bind().is_some();
            matches!(it.state, IntentState::Queued { .. }) && !waits
        })
    }

    fn first(&self, is_meant: impl Fn(&PendingIntent) -> bool) -> Option<IntentNumber> {
        let found = self.pending.iter().find(|intent| is_meant(intent));
        found.map(|intent| intent.number)
    }
}

fn has_begun(intent: &PendingIntent) -> bool {
    matches!(
        intent.state,
        IntentState::Unknown { .. } | IntentState::Polling { .. }
    )
}

impl Transition<'_> {
    /// Starts, wakes and suspends operations so that only that of the active intent can be claimed.
    pub(super) fn schedule(&mut self) {
        let active = self.next.active();
        let before = self.before.active.map(|(number, _)| number);
        let mut effects = Vec::from_iter(self.start(active));
        effects.extend(self.discarded_request());
        if before != active {
            let left = self
                .before
                .active
                .filter(|(number, _)| self.is_pending(*number));
            effects.extend(left.map(|(_, operation)| BindingEffect::Suspend(operation)));
            let woken = active.filter(|number| self.accepted != Some(*number));
            let woken = woken.and_then(|number| self.next.intent(number));
            effects.extend(woken.map(|intent| BindingEffect::Wake(intent.operation)));
        }
        if let Some((number, effect)) = self.again.take()
            && active == Some(number)
        {
            effects.push(effect);
        }
        self.effects.append(&mut effects);
    }

    fn is_pending(&self, number: IntentNumber) -> bool {
        self.next.intent(number).is_some()
    }

    /// How the operation of the intent begins that this decision accepts.
    fn start(&self, active: Option<IntentNumber>) -> Option<BindingEffect> {
        let accepted = self.next.intent(self.accepted?)?;
        let start = match active == Some(accepted.number) {
            true if accepted.waits_for_instance => OperationStart::Later,
            true => OperationStart::Ready,
            false => OperationStart::Waiting,
        };
        Some(BindingEffect::Start(accepted.operation, start))
    }

    /// The request of a delete that goes on with another generation.
    fn discarded_request(&self) -> Option<BindingEffect> {
        let deletion = self.next.deletion.as_ref()?;
        let goes_on = self.before.target.is_some() && deletion.target.is_none();
        let delete = self.next.intent(deletion.number).filter(|_| goes_on)?;
        Some(BindingEffect::DiscardRequest(delete.operation))
    }
}
