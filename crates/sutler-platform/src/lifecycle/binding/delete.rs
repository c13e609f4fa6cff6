//! Requests to delete a binding, to take that back, and to give the binding up.
//!
//! A delete is an intent like others: credentials stay as they are until the broker confirmed the unbind of their
//! generation. It goes before everything that was not sent. The answers of the broker are in `delete_answer.rs`.

use crate::author::Author;
use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    Binding, BindingDecision, BindingEffect, BindingEventError, BindingReply, Context, Deletion,
    Generation, IntentCause, IntentChange, PendingIntent,
};
use crate::lifecycle::instance::Tombstone;
use crate::lifecycle::intent::{Abandonment, CancelledBy, IntentEnd, IntentNumber, IntentState};
use sutler_osb::BindingId;

/// A request to delete.
pub(super) fn delete(binding: Binding, by: Author, context: &Context<'_>) -> BindingDecision {
    join_or_accept(binding, by, IntentCause::User, context)
}

/// The person deletes the instance with its bindings.
pub(super) fn cascade(binding: Binding, by: Author, context: &Context<'_>) -> BindingDecision {
    join_or_accept(binding, by, IntentCause::Cascade, context)
}

fn join_or_accept(
    binding: Binding,
    by: Author,
    cause: IntentCause,
    context: &Context<'_>,
) -> BindingDecision {
    if let Some(number) = binding.deletion.as_ref().map(|deletion| deletion.number) {
        return Transition::of(binding, context).decision(BindingReply::Joined(number));
    }
    accept_delete(binding, by, cause, context)
}

/// Accepts a delete.
pub(super) fn accept_delete(
    binding: Binding,
    by: Author,
    cause: IntentCause,
    context: &Context<'_>,
) -> BindingDecision {
    let mut transition = Transition::of(binding, context);
    let number = transition.accept(IntentChange::Delete, by, cause);
    transition.next.deletion = Some(Deletion {
        number,
        target: None,
        undelete: None,
        polls_next: false,
    });
    for intent in &mut transition.next.pending {
        let is_queued = matches!(intent.state, IntentState::Queued { .. });
        if is_queued && !intent.change.is_delete() {
            intent.state = IntentState::Suspended;
        }
    }
    transition.decision(BindingReply::Accepted(number))
}

/// A request to take a delete back.
pub(super) fn undelete(
    binding: Binding,
    by: Author,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let Some(number) = binding.deletion.as_ref().map(|deletion| deletion.number) else {
        return Err(BindingEventError::NotDeleting);
    };
    let has_begun = binding.intent(number).is_none_or(|intent| {
        intent.in_doubt || !matches!(intent.state, IntentState::Queued { .. })
    });
    let mut transition = Transition::of(binding, context);
    if has_begun {
        if let Some(deletion) = &mut transition.next.deletion {
            deletion.undelete.get_or_insert(by);
        }
        return Ok(transition.decision(BindingReply::Noted));
    }
    transition.take_delete_back(number, by);
    Ok(transition.decision(BindingReply::Done))
}

/// A request to give the binding up: it ends here, and the ledger has what the broker may have.
pub(super) fn abandon(
    binding: Binding,
    abandonment: Abandonment,
    context: &Context<'_>,
) -> BindingDecision {
    let by = &abandonment.by;
    let mut transition = Transition::of(binding, context);
    transition.end_all(|_| IntentEnd::Cancelled(CancelledBy::Abandon(by.clone())));
    transition.abandon_generations(Some(by));
    transition.close(Tombstone::Abandoned(context.now));
    transition.next.abandoned = Some(abandonment);
    transition.decision(BindingReply::Done)
}

impl Binding {
    /// The generation that the next request of the delete is about; `None` if its turn sends none, because the broker
    /// cannot have anything or the bind under it is polled first.
    pub fn unbound_next(&self) -> Option<&BindingId> {
        let deletion = self.deletion.as_ref()?;
        let next = self.next_to_unbind()?;
        match deletion.polls_next && self.polled_bind().is_some() {
            true => None,
            false => Some(deletion.target.as_ref().unwrap_or(&next.osb_id)),
        }
    }
}

impl Transition<'_> {
    /// Ends the delete as if it had not been asked for. What it has unbound already stays unbound.
    pub(super) fn take_delete_back(&mut self, number: IntentNumber, by: Author) {
        self.end(number, IntentEnd::Cancelled(CancelledBy::Person(by)));
        self.next.deletion = None;
        self.resume_suspended();
    }

    /// The delete did not happen: everything is as it was, except what its author asked for before the delete.
    pub(super) fn delete_failed(&mut self, number: IntentNumber, end: IntentEnd) {
        let Some(delete) = self.next.intent(number).cloned() else {
            return;
        };
        self.end(number, end);
        self.next.deletion = None;
        let is_own = |intent: &&PendingIntent| {
            intent.state == IntentState::Suspended && intent.author.is_same_person(&delete.author)
        };
        let own = self.next.pending.iter().filter(is_own);
        let own: Vec<_> = own.map(|intent| intent.number).collect();
        for intent in own {
            self.cancel(intent, CancelledBy::Delete(number));
        }
        self.resume_suspended();
    }

    fn resume_suspended(&mut self) {
        for intent in &mut self.next.pending {
            if intent.state == IntentState::Suspended {
                intent.state = IntentState::Queued { last: None };
            }
        }
    }

    /// The broker has nothing: the binding is gone, and everything that was pending has ended.
    pub(super) fn gone(&mut self, number: IntentNumber) {
        self.end_all(|intent| match intent.number == number {
            true => IntentEnd::Succeeded,
            false => IntentEnd::Cancelled(CancelledBy::Delete(number)),
        });
        self.close(Tombstone::Deleted(self.context.now));
    }

    /// Whether the broker cannot have any generation.
    pub(super) fn needs_no_call(&self) -> bool {
        !self.next.generations.iter().any(Generation::may_exist)
    }

    /// The binding is no more, nor are its credentials, and its name is free.
    pub(super) fn close(&mut self, tombstone: Tombstone) {
        self.next.generations.clear();
        self.next.deletion = None;
        self.next.waits_for_orphan = false;
        self.next.awaited_orphan = None;
        self.next.tombstone = Some(tombstone);
        let name = self.next.name.clone();
        self.effect(BindingEffect::FreeName(name));
    }
}
