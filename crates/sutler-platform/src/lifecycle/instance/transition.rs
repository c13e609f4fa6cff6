//! A decision under way: the next state with its effects, and what every decision has in common.
//!
//! At the end of a decision local changes whose turn has come are applied, the revision grows if another specification
//! is shown, and the operations are started, woken and suspended so that only the active intent can be claimed. No rule
//! does that by itself.

use crate::lifecycle::instance::bounds::byte_len;
use crate::lifecycle::instance::{
    Basis, ChangeRequest, Context, ENDED_BYTES_MAX, ENDED_KEPT, EarlierRevision, EndedIntent,
    Exposure, FORMER_IDS_KEPT, Instance, InstanceDecision, InstanceEffect, InstanceOrphan,
    InstanceReply, IntentChange, Origin, PendingIntent, REVISIONS_BYTES_MAX, REVISIONS_KEPT,
    Tombstone,
};
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use crate::spec::{self, Spec, SpecPatch};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The next state of an instance and what follows from it.
pub(super) struct Transition<'a> {
    pub(super) next: Instance,
    pub(super) context: &'a Context<'a>,
    pub(super) effects: Vec<InstanceEffect>,
    /// The intent that this decision accepts.
    pub(super) accepted: Option<IntentNumber>,
    /// How the operation of an intent is claimed again, if it is still the active one.
    pub(super) again: Option<(IntentNumber, InstanceEffect)>,
    pub(super) before: Before,
}

/// What was so before the decision.
pub(super) struct Before {
    spec: Spec,
    folded: Vec<IntentNumber>,
    pub(super) active: Option<IntentNumber>,
    /// Names that it holds.
    pub(super) names: BTreeSet<String>,
}

impl<'a> Transition<'a> {
    pub(super) fn of(instance: Instance, context: &'a Context<'a>) -> Self {
        let before = Before {
            spec: instance.projection().spec,
            folded: instance.folded(),
            active: instance.active(),
            names: instance.names(),
        };
        Self {
            next: instance,
            context,
            effects: Vec::new(),
            accepted: None,
            again: None,
            before,
        }
    }

    pub(super) fn effect(&mut self, effect: InstanceEffect) {
        self.effects.push(effect);
    }

    /// The operation of this intent is claimed again as the effect says, unless another one is active then.
    pub(super) fn again(&mut self, number: IntentNumber, effect: InstanceEffect) {
        self.again = Some((number, effect));
    }

    /// Accepts an intent at the end of the queue.
    pub(super) fn accept(
        &mut self,
        change: IntentChange,
        request: &ChangeRequest,
        catalog_revision: u64,
    ) -> IntentNumber {
        let stands_on = self.next.folded();
        self.next.generation += 1;
        let number = IntentNumber(self.next.generation);
        self.next.pending.push(PendingIntent {
            number,
            operation: self.context.ids.operation,
            change,
            author: request.author.clone(),
            accepted: self.context.now,
            stands_on,
            on_failure: request.on_failure,
            cause: request.cause.clone(),
            catalog_revision,
            attempts: 0,
            first_sent: None,
            in_doubt: false,
            details: None,
            state: IntentState::Queued { last: None },
        });
        self.accepted = Some(number);
        number
    }

    /// Changes a pending intent.
    pub(super) fn edit(&mut self, number: IntentNumber, edit: impl FnOnce(&mut PendingIntent)) {
        let mut intents = self.next.pending.iter_mut();
        if let Some(intent) = intents.find(|intent| intent.number == number) {
            edit(intent);
        }
    }

    pub(super) fn set_state(&mut self, number: IntentNumber, state: IntentState) {
        self.edit(number, |intent| intent.state = state);
    }

    /// Changes the state of every pending intent for which that is meant.
    pub(super) fn set_states(
        &mut self,
        next_state: impl Fn(&PendingIntent) -> Option<IntentState>,
    ) {
        for intent in &mut self.next.pending {
            if let Some(state) = next_state(intent) {
                intent.state = state;
            }
        }
    }

    /// Ends a pending intent. Returns it as it was.
    pub(super) fn end(&mut self, number: IntentNumber, end: IntentEnd) -> Option<PendingIntent> {
        self.end_with(number, end, None)
    }

    /// Ends a pending intent that changed what is confirmed; `undo` leads back.
    pub(super) fn end_with(
        &mut self,
        number: IntentNumber,
        end: IntentEnd,
        undo: Option<SpecPatch>,
    ) -> Option<PendingIntent> {
        let place = self.next.pending.iter();
        let place = place.clone().position(|intent| intent.number == number)?;
        let intent = self.next.pending.remove(place);
        let rejected_as = match &end {
            IntentEnd::Rejected(_) => intent
                .change
                .patch()
                .map(|patch| fingerprint(&self.next.basis, patch, intent.catalog_revision)),
            IntentEnd::Succeeded
            | IntentEnd::Failed(_)
            | IntentEnd::Superseded(_)
            | IntentEnd::Cancelled(_) => None,
        };
        if end == IntentEnd::Succeeded {
            self.next.applied = self.next.applied.max(Some(number));
        }
        self.effects
            .push(InstanceEffect::End(intent.operation, end.clone()));
        self.next.ended.push_back(EndedIntent {
            number,
            change: intent.change.clone(),
            author: intent.author.clone(),
            at: self.context.now,
            end,
            undo,
            rejected_as,
        });
        while self.next.ended.len() > ENDED_KEPT
            || self.next.ended.iter().map(byte_len).sum::<usize>() > ENDED_BYTES_MAX
        {
            self.next.ended.pop_front();
        }
        Some(intent)
    }

    /// What may exist under the present id goes to the ledger. Nothing that existed before the platform is deleted by it.
    pub(super) fn record_orphan(&mut self, cause: OrphanCause) {
        let is_adopted = self.next.origin == Origin::Adopted;
        let mode = match is_adopted || self.context.policy.manual_cleanup {
            true => CleanupMode::Manual,
            false => CleanupMode::Automatic,
        };
        self.effects
            .push(InstanceEffect::RecordOrphan(InstanceOrphan {
                osb_id: self.next.osb_id.clone(),
                cause,
                mode,
                create_sent: self.next.create_sent,
            }));
    }

    /// The next create has an id that was never used (P-007), unless a person chose the id.
    pub(super) fn renew_osb_id(&mut self) {
        if self.next.osb_id_is_chosen {
            return;
        }
        let fresh = self.context.ids.osb_id.clone();
        let former = std::mem::replace(&mut self.next.osb_id, fresh);
        self.next.former_ids.push(former);
        let surplus = self.next.former_ids.len().saturating_sub(FORMER_IDS_KEPT);
        self.next.former_ids.drain(..surplus);
        self.next.create_sent = None;
    }

    /// A local change takes effect.
    pub(super) fn apply_local(&mut self, number: IntentNumber) {
        let patch = self.next.intent(number);
        let Some(patch) = patch.and_then(|intent| intent.change.patch()).cloned() else {
            return;
        };
        let undo = self.confirm(&patch);
        self.end_with(number, IntentEnd::Succeeded, Some(undo));
    }

    /// Applies a patch to the basis. Returns the way back.
    pub(super) fn confirm(&mut self, patch: &SpecPatch) -> SpecPatch {
        let spec = match &mut self.next.basis {
            Basis::Requested(spec) => spec.as_mut(),
            Basis::Confirmed(confirmed) => &mut confirmed.spec,
        };
        let undo = spec::undo(spec, patch);
        *spec = spec.apply(patch);
        undo
    }

    /// The instance is no more, and the broker has nothing.
    pub(super) fn bury(&mut self, tombstone: Tombstone) {
        self.next.tombstone = Some(tombstone);
        self.next.exposure = Exposure::Nothing;
        self.next.waits_for_orphan = false;
        self.next.deletion = None;
    }

    /// Completes the decision.
    pub(super) fn decision(mut self, reply: InstanceReply) -> InstanceDecision {
        self.hold_updates_without_create();
        self.apply_local_changes();
        self.count_revision();
        self.take_and_free_names();
        self.schedule();
        InstanceDecision {
            next: self.next,
            effects: self.effects,
            reply,
        }
    }

    /// Names follow from the instance before and after: its own, and those of pending changes of the name.
    fn take_and_free_names(&mut self) {
        let names = self.next.names();
        let taken = names.difference(&self.before.names).cloned();
        self.effects.extend(taken.map(InstanceEffect::TakeName));
        let freed = self.before.names.difference(&names).cloned();
        self.effects.extend(freed.map(InstanceEffect::FreeName));
    }

    fn count_revision(&mut self) {
        let shown = self.next.projection().spec;
        if shown == self.before.spec {
            return;
        }
        let revisions = &mut self.next.revisions;
        revisions.push_back(EarlierRevision {
            revision: self.next.revision,
            undo: spec::diff(&shown, &self.before.spec),
            folded: std::mem::take(&mut self.before.folded),
        });
        self.next.revision += 1;
        let bytes = |it: &EarlierRevision| it.undo.byte_len();
        while revisions.len() > REVISIONS_KEPT
            || revisions.iter().map(bytes).sum::<usize>() > REVISIONS_BYTES_MAX
        {
            revisions.pop_front();
        }
    }
}

/// Identifies a change of a specification under a catalog.
pub(super) fn fingerprint(basis: &Basis, patch: &SpecPatch, catalog_revision: u64) -> String {
    let spec = serde_json::to_vec(basis.spec()).unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(patch.digest());
    hash.update(catalog_revision.to_be_bytes());
    hash.update(spec);
    let bytes = hash.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
