//! The generations of a binding: which is current, which is unbound next, how they come and go.

use crate::author::Author;
use crate::lifecycle::binding::rotation_policy::{failure_pause, later};
use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    BindExposure, Binding, BindingDetails, BindingEffect, BindingOrphan, BoundDetails,
    FailedRotations, Generation, GenerationState, IntentChange, PendingIntent, Retirement,
};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use jiff::Timestamp;
use sutler_osb::BindingId;

impl Binding {
    /// What is delivered: the credentials of the current generation.
    pub fn current(&self) -> Option<&BoundDetails> {
        self.generations.iter().find_map(|it| match &it.state {
            GenerationState::Current(details) => Some(details),
            GenerationState::Binding(_) | GenerationState::Retiring(..) => None,
        })
    }

    /// The id of the current generation at the broker.
    pub fn current_id(&self) -> Option<&BindingId> {
        let is_current = |it: &&Generation| matches!(it.state, GenerationState::Current(_));
        self.generations
            .iter()
            .find(is_current)
            .map(|it| &it.osb_id)
    }

    /// A generation.
    pub fn generation(&self, osb_id: &BindingId) -> Option<&Generation> {
        self.generations.iter().find(|it| it.osb_id == *osb_id)
    }

    /// The pending unbind of a retiring generation.
    pub fn unbind_of(&self, osb_id: &BindingId) -> Option<&PendingIntent> {
        self.pending.iter().find(|intent| match &intent.change {
            IntentChange::Unbind(unbound) => unbound == osb_id,
            IntentChange::Bind(_) | IntentChange::Delete => false,
        })
    }

    /// How many generations have credentials.
    pub(super) fn bound_generations(&self) -> usize {
        self.generations
            .iter()
            .filter(|it| it.bound().is_some())
            .count()
    }

    /// The generation that a delete unbinds next: one that was not confirmed, then those that were replaced, and the
    /// current one last, so that a refusal leaves as much as possible.
    pub(super) fn next_to_unbind(&self) -> Option<&Generation> {
        let existing = self.generations.iter().filter(|it| it.may_exist());
        existing.min_by_key(|it| match it.state {
            GenerationState::Binding(_) => 0,
            GenerationState::Retiring(..) => 1,
            GenerationState::Current(_) => 2,
        })
    }
}

impl Transition<'_> {
    /// Changes a generation.
    pub(super) fn edit_generation(
        &mut self,
        osb_id: &BindingId,
        edit: impl FnOnce(&mut Generation),
    ) {
        let mut generations = self.next.generations.iter_mut();
        if let Some(generation) = generations.find(|it| it.osb_id == *osb_id) {
            edit(generation);
        }
    }

    /// A generation is no more, nor are its credentials. A delete of it goes on with the next one.
    pub(super) fn remove_generation(&mut self, osb_id: &BindingId) -> Option<Generation> {
        let place = self.next.generations.iter();
        let place = place.clone().position(|it| it.osb_id == *osb_id)?;
        let removed = self.next.generations.remove(place);
        if let Some(deletion) = &mut self.next.deletion
            && deletion.target.as_ref() == Some(osb_id)
        {
            deletion.target = None;
            let number = deletion.number;
            self.edit(number, |delete| {
                delete.in_doubt = false;
                delete.first_sent = None;
            });
        }
        Some(removed)
    }

    /// What may exist of a generation goes to the ledger. Its id is never used again.
    pub(super) fn record_orphan(
        &mut self,
        generation: &Generation,
        cause: OrphanCause,
        by: Option<Author>,
        cleanup: CleanupMode,
    ) {
        if self.next.chosen_id.as_ref() == Some(&generation.osb_id) {
            self.next.chosen_id = None;
        }
        let orphan = BindingOrphan {
            osb_id: generation.osb_id.clone(),
            cause,
            by,
            cleanup,
            guarded_until: self.guarded_until(generation),
        };
        self.effect(BindingEffect::RecordOrphan(Box::new(orphan)));
    }

    /// Until when a bind of a generation may still arrive.
    pub(super) fn guarded_until(&self, generation: &Generation) -> Option<Timestamp> {
        let within = self.context.policy.late_create_within;
        let until = generation.bind_sent.map(|sent| later(sent, within));
        until.filter(|until| *until > self.context.now)
    }

    /// All generations that may exist go to the ledger, and none is left.
    pub(super) fn abandon_generations(&mut self, by: Option<&Author>) {
        for generation in std::mem::take(&mut self.next.generations) {
            if generation.may_exist() {
                let cause = OrphanCause::Abandoned;
                self.record_orphan(&generation, cause, by.cloned(), CleanupMode::Automatic);
            }
        }
    }

    /// What failed binds may have left goes to the ledger, before there is another bind.
    pub(super) fn abandon_leftovers(&mut self) {
        let pending = self
            .next
            .pending_bind()
            .and_then(|it| it.change.bind())
            .cloned();
        let is_leftover = |it: &&Generation| {
            let is_pending = pending
                .as_ref()
                .is_some_and(|bind| bind.osb_id == it.osb_id);
            it.bound().is_none() && !is_pending
        };
        let leftovers = self.next.generations.iter().filter(is_leftover);
        for leftover in leftovers.cloned().collect::<Vec<_>>() {
            self.remove_generation(&leftover.osb_id);
            if leftover.may_exist() {
                let cause = OrphanCause::FailedCreate;
                self.record_orphan(&leftover, cause, None, CleanupMode::Automatic);
            }
        }
    }

    /// The broker confirmed a generation: it replaces the current one, which is retiring from now on.
    pub(super) fn make_current(&mut self, osb_id: &BindingId, details: BindingDetails) {
        let now = self.context.now;
        let policy = self.next.rotation.map(|policy| policy.overlap());
        let retirement = Retirement {
            until: later(now, policy.unwrap_or(self.context.policy.overlap)),
            failures: 0,
        };
        for generation in &mut self.next.generations {
            if let GenerationState::Current(replaced) = &generation.state {
                generation.state = GenerationState::Retiring(retirement, replaced.clone());
            }
        }
        self.edit_generation(osb_id, |generation| {
            generation.state = GenerationState::Current(BoundDetails {
                credentials: details.credentials,
                bound_at: now,
                expires_at: details.expires_at,
                renew_before: details.renew_before,
            });
        });
    }

    /// An answer proves that no bind of a generation had an effect.
    pub(super) fn nothing_bound(&mut self, osb_id: &BindingId) {
        self.edit_generation(osb_id, |generation| {
            generation.bind_sent = None;
            generation.state = GenerationState::Binding(BindExposure::Nothing);
        });
    }

    /// A retiring generation is unbound later.
    pub(super) fn put_off_retirement(&mut self, osb_id: &BindingId) {
        let now = self.context.now;
        self.edit_generation(osb_id, |generation| {
            if let GenerationState::Retiring(retirement, _) = &mut generation.state {
                retirement.until = later(now, failure_pause(retirement.failures));
                retirement.failures = retirement.failures.saturating_add(1);
            }
        });
    }

    /// If there is a current generation, the bind that failed was to replace it: that is tried again later only.
    pub(super) fn count_failed_rotation(&mut self) {
        if self.next.current().is_some() {
            let earlier = self.next.failed_rotations;
            let failed = FailedRotations::after(earlier, self.context.now);
            self.next.failed_rotations = Some(failed);
        }
    }
}
