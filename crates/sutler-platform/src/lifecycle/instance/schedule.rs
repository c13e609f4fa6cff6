//! Which operation of an instance may be claimed: only that of the active intent. All others wait.
//!
//! At the end of every decision the operations follow from the active intent before and after it. No rule starts, wakes
//! or suspends an operation by itself.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Instance, InstanceEffect, IntentChange, OperationStart, PendingIntent,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};

impl Instance {
    /// The intent that the platform works on: the only one whose operation may be claimed.
    ///
    /// A delete waits for an answer to what is being sent, and goes over what is polled or unknown. Until the broker
    /// confirmed the create, an update waits for it.
    pub fn active(&self) -> Option<IntentNumber> {
        self.first(|it| matches!(it.state, IntentState::Sending { .. }))
            .or_else(|| self.update_before_delete())
            .or(self.deletion.as_ref().map(|deletion| deletion.number))
            .or_else(|| self.first(has_begun))
            .or_else(|| self.first_queued())
    }

    /// The update in progress for which the delete waits, if it does.
    fn update_before_delete(&self) -> Option<IntentNumber> {
        let waits = self.deletion.as_ref().is_some_and(|it| it.waits_for_update);
        let is_update = |it: &PendingIntent| matches!(it.change, IntentChange::Update(_));
        self.first(|it| waits && is_update(it) && has_begun(it))
    }

    fn first_queued(&self) -> Option<IntentNumber> {
        if self.confirmed().is_some() {
            return self.first(is_queued);
        }
        let is_create = |it: &PendingIntent| it.change == IntentChange::Provision && is_queued(it);
        match self.first(is_create) {
            Some(_) if self.waits_for_orphan => None,
            Some(create) => Some(create),
            None => self.first(|it| matches!(it.change, IntentChange::Local(_)) && is_queued(it)),
        }
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

fn is_queued(intent: &PendingIntent) -> bool {
    matches!(intent.state, IntentState::Queued { .. })
}

impl Transition<'_> {
    /// A local change takes effect with the end of what was before it. One that is accepted now has its own turn.
    pub(super) fn apply_local_changes(&mut self) {
        while let Some(number) = self.next.active() {
            let is_local = self.next.intent(number).is_some_and(|intent| {
                matches!(intent.change, IntentChange::Local(_))
                    && matches!(intent.state, IntentState::Queued { .. })
            });
            let waits = self.accepted == Some(number) || self.before.active == Some(number);
            if !is_local || waits {
                return;
            }
            self.apply_local(number);
        }
    }

    /// Starts, wakes and suspends operations so that only that of the active intent can be claimed.
    pub(super) fn schedule(&mut self) {
        let active = self.next.active();
        let operation = |number| self.next.intent(number).map(|intent| intent.operation);
        let mut effects = Vec::new();
        if let Some(accepted) = self.accepted
            && let Some(id) = operation(accepted)
        {
            let start = match active == Some(accepted) {
                true => OperationStart::Ready,
                false => OperationStart::Waiting,
            };
            effects.push(InstanceEffect::Start(id, start));
        }
        if self.before.active != active {
            let left = self.before.active.and_then(operation);
            effects.extend(left.map(InstanceEffect::Suspend));
            let woken = active.filter(|number| self.accepted != Some(*number));
            effects.extend(woken.and_then(operation).map(InstanceEffect::Wake));
        }
        if let Some((number, effect)) = self.again.take()
            && active == Some(number)
        {
            effects.push(effect);
        }
        self.effects.append(&mut effects);
    }
}
