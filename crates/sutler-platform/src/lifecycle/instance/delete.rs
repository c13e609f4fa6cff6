//! Requests to delete an instance, to take that back, and to give the instance up.
//!
//! A delete is an intent like others: the instance stays as it is until the broker confirmed. It goes before everything
//! that was not sent. The answers of the broker are in `delete_answer.rs`.

use crate::author::Author;
use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    ChangeRequest, Context, Deletion, Exposure, Instance, InstanceDecision, InstanceEffect,
    InstanceEventError, InstanceReply, IntentChange, PendingIntent, Tombstone,
};
use crate::lifecycle::intent::{
    Abandonment, CancelledBy, IntentCause, IntentEnd, IntentNumber, IntentState,
};
use crate::lifecycle::orphan::OrphanCause;

/// A request to delete.
pub(super) fn delete(
    mut instance: Instance,
    by: Author,
    cascade: bool,
    bindings: Vec<String>,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if let Some(deletion) = &mut instance.deletion {
        if cascade {
            deletion.cascade.get_or_insert(by);
        }
        // The last person wants it deleted.
        deletion.undelete = None;
        let number = deletion.number;
        return Ok(Transition::of(instance, context).decision(InstanceReply::Joined(number)));
    }
    if instance.protected {
        return Err(InstanceEventError::Protected);
    }
    if !cascade && !bindings.is_empty() {
        return Err(InstanceEventError::HasBindings(bindings));
    }
    Ok(accept_delete(
        instance,
        by,
        cascade,
        IntentCause::User,
        context,
    ))
}

/// Accepts a delete: also one that is beyond the bound of pending intents, because deleting is always possible.
pub(super) fn accept_delete(
    instance: Instance,
    by: Author,
    cascade: bool,
    cause: IntentCause,
    context: &Context<'_>,
) -> InstanceDecision {
    let mut transition = Transition::of(instance, context);
    let request = ChangeRequest::of_platform(by.clone(), cause);
    let number = transition.accept(IntentChange::Delete, &request, 0);
    transition.next.deletion = Some(Deletion {
        number,
        cascade: cascade.then_some(by),
        waits_for_update: context.policy.delete_waits_for_update,
        undelete: None,
        polls_next: false,
    });
    transition.suspend_queued();
    transition.decision(InstanceReply::Accepted(number))
}

/// A request to take a delete back.
pub(super) fn undelete(
    instance: Instance,
    by: Author,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    let Some(number) = instance.deletion.as_ref().map(|deletion| deletion.number) else {
        return Err(InstanceEventError::NotDeleting);
    };
    let has_begun = instance.intent(number).is_none_or(|intent| {
        intent.in_doubt || !matches!(intent.state, IntentState::Queued { .. })
    });
    let mut transition = Transition::of(instance, context);
    if has_begun {
        if let Some(deletion) = &mut transition.next.deletion {
            deletion.undelete.get_or_insert(by);
        }
        return Ok(transition.decision(InstanceReply::Noted));
    }
    transition.take_delete_back(number, by);
    Ok(transition.decision(InstanceReply::Done))
}

/// A request to give the instance up: it ends here, and the ledger has what the broker may have.
pub(super) fn abandon(
    instance: Instance,
    abandonment: Abandonment,
    context: &Context<'_>,
) -> InstanceDecision {
    let by = abandonment.by.clone();
    let mut transition = Transition::of(instance, context);
    match transition.next.exposure {
        Exposure::MayExist | Exposure::Confirmed | Exposure::Uncertain(_) => {
            transition.record_orphan(OrphanCause::Abandoned);
        }
        Exposure::Nothing | Exposure::OnLedger => {}
    }
    transition.effect(InstanceEffect::AbandonBindings(by.clone()));
    transition.end_all(|_| IntentEnd::Cancelled(CancelledBy::Abandon(by.clone())));
    transition.bury(Tombstone::Abandoned(transition.context.now));
    transition.next.abandoned = Some(abandonment);
    transition.decision(InstanceReply::Done)
}

impl Transition<'_> {
    /// What was not sent waits for the end of the delete.
    pub(super) fn suspend_queued(&mut self) {
        self.set_states(|intent| {
            let is_queued = matches!(intent.state, IntentState::Queued { .. });
            (is_queued && !intent.change.is_delete()).then_some(IntentState::Suspended)
        });
    }

    /// Ends the delete as if it had not been asked for.
    pub(super) fn take_delete_back(&mut self, number: IntentNumber, by: Author) {
        self.end(number, IntentEnd::Cancelled(CancelledBy::Person(by)));
        self.next.deletion = None;
        self.resume_suspended();
    }

    /// The delete did not happen: the instance is as it was, except what its author asked for before the delete.
    pub(super) fn delete_failed(&mut self, number: IntentNumber, end: IntentEnd, usable: bool) {
        let Some(delete) = self.end(number, end) else {
            return;
        };
        self.next.deletion = None;
        if !usable {
            self.next.usable = false;
        }
        let is_own = |intent: &&PendingIntent| {
            intent.state == IntentState::Suspended && intent.author.is_same_person(&delete.author)
        };
        let own = self.next.pending.iter().filter(is_own);
        let own: Vec<_> = own.map(|intent| intent.number).collect();
        self.resume_suspended();
        for intent in own {
            self.leave_in_doubt(intent);
            self.cancel(intent, CancelledBy::Delete(number));
        }
    }

    fn resume_suspended(&mut self) {
        self.set_states(|intent| {
            (intent.state == IntentState::Suspended).then_some(IntentState::Queued { last: None })
        });
    }

    /// The broker has nothing: the instance is gone, and everything that was pending has ended.
    pub(super) fn gone(&mut self, number: IntentNumber) {
        let now = self.context.now;
        if self.next.create_sent.is_some_and(|sent| {
            now.duration_since(sent).unsigned_abs() < self.context.policy.late_create_within
        }) {
            self.record_orphan(OrphanCause::LateCreate);
        }
        self.end_all(|intent| match intent.number == number {
            true => IntentEnd::Succeeded,
            false => IntentEnd::Cancelled(CancelledBy::Delete(number)),
        });
        self.bury(Tombstone::Deleted(now));
    }

    fn end_all(&mut self, how: impl Fn(&PendingIntent) -> IntentEnd) {
        let pending = self.next.pending.iter();
        let ends: Vec<_> = pending.map(|intent| (intent.number, how(intent))).collect();
        for (number, end) in ends {
            self.end(number, end);
        }
    }
}
