//! What happens to the intents behind one that does not take effect: they go on, unless they depend on it or it asked
//! them to wait.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{IntentChange, PendingIntent};
use crate::lifecycle::intent::{
    DependencyReason, HoldReason, IntentEnd, IntentNumber, IntentState, OnFailure,
};
use crate::projection;
use crate::spec::Spec;

impl Transition<'_> {
    /// Ends an intent that leaves the specification, and puts on hold what depends on it.
    pub(super) fn drop_intent(&mut self, number: IntentNumber, end: IntentEnd) {
        let halts = matches!(end, IntentEnd::Rejected(_) | IntentEnd::Failed(_));
        let Some(dropped) = self.end(number, end) else {
            return;
        };
        if halts && dropped.on_failure == OnFailure::Halt {
            self.set_states(|intent| {
                (intent.number > number && can_be_held(intent))
                    .then_some(IntentState::OnHold(HoldReason::HaltedBy(number)))
            });
        }
        self.hold_dependents(&dropped);
    }

    /// Puts on hold what depends on an intent that does not take effect for now, and what depends on that.
    pub(super) fn hold_dependents(&mut self, dropped: &PendingIntent) {
        let mut dropped = vec![(dropped.number, dropped.change.clone())];
        while let Some((number, change)) = dropped.pop() {
            let later: Vec<_> = self
                .next
                .pending
                .iter()
                .filter(|intent| intent.number > number && can_be_held(intent))
                .filter_map(|intent| {
                    let reason = self.dependency(intent, (number, &change))?;
                    Some((intent.number, intent.change.clone(), reason))
                })
                .collect();
            for (later, change, because) in later {
                let reason = HoldReason::DependsOn {
                    dropped: number,
                    because,
                };
                self.set_state(later, IntentState::OnHold(reason));
                dropped.push((later, change));
            }
        }
    }

    /// At the end of every decision: updates wait for a person if there is nothing to update, and nothing will create it.
    pub(super) fn hold_updates_without_create(&mut self) {
        let will_exist = self.next.confirmed().is_some()
            || self.next.is_being_created()
            || self.next.waits_for_orphan
            || self.next.deletion.is_some();
        if will_exist {
            return;
        }
        let is_create = |change: &IntentChange| *change == IntentChange::Provision;
        let pending = self.next.pending.iter().filter(|it| is_create(&it.change));
        let ended = self.next.ended.iter().filter(|it| is_create(&it.change));
        let numbers = pending.map(|it| it.number).chain(ended.map(|it| it.number));
        let dropped = numbers.max().unwrap_or_default();
        self.set_states(|intent| {
            let waits = matches!(intent.state, IntentState::Queued { .. })
                && matches!(intent.change, IntentChange::Update(_));
            waits.then_some(IntentState::OnHold(HoldReason::DependsOn {
                dropped,
                because: DependencyReason::Creation,
            }))
        });
    }

    /// Why an intent cannot go on without one that was dropped.
    fn dependency(
        &self,
        later: &PendingIntent,
        dropped: (IntentNumber, &IntentChange),
    ) -> Option<DependencyReason> {
        let (patch, dropped_patch) = later.change.patch().zip(dropped.1.patch())?;
        let is_local = matches!(later.change, IntentChange::Local(_));
        let fits = is_local || (self.context.fits)(&self.refolded_up_to(later));
        projection::dependency(patch, &later.stands_on, (dropped.0, dropped_patch), fits)
    }

    /// The specification that an intent leads to, without those that were dropped.
    fn refolded_up_to(&self, last: &PendingIntent) -> Spec {
        let counted = self.next.pending.iter().filter_map(|intent| {
            let counts = projection::counts(&intent.state) && intent.number < last.number;
            let patch = intent.change.patch()?;
            (counts || intent.number == last.number).then_some((intent.number, patch))
        });
        projection::fold(self.next.basis.spec(), counted).spec
    }
}

/// Whether an intent has not begun, so that it can be put on hold.
fn can_be_held(intent: &PendingIntent) -> bool {
    match intent.state {
        IntentState::Queued { .. } | IntentState::Suspended => !intent.change.is_delete(),
        IntentState::OnHold(_)
        | IntentState::Sending { .. }
        | IntentState::Unknown { .. }
        | IntentState::Polling { .. } => false,
    }
}
