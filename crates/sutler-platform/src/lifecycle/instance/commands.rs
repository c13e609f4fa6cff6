//! Commands about intents: cancel, resume, retry, and rollback; and what an instance follows.
//!
//! None of them changes an intent that was accepted: resume, retry and rollback begin a new one with its own author.

use crate::author::Author;
use crate::lifecycle::instance::change::{accept_patch, accepted_before, check_conditions};
use crate::lifecycle::instance::delete::{accept_delete, undelete};
use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    ChangeFacts, ChangeRequest, Context, Instance, InstanceDecision, InstanceEventError,
    InstanceReply, IntentChange, Source,
};
use crate::lifecycle::intent::{CancelledBy, IntentCause, IntentEnd, IntentNumber, IntentState};
use crate::spec::{self, SpecPatch};

/// Ends an intent that has had no effect.
pub(super) fn cancel(
    instance: Instance,
    number: IntentNumber,
    by: Author,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    let Some(intent) = instance.intent(number) else {
        return Err(InstanceEventError::WrongIntent(number, "is not pending"));
    };
    if intent.change.is_delete() {
        return undelete(instance, by, context);
    }
    let is_waiting = match intent.state {
        IntentState::Queued { .. } | IntentState::OnHold(_) | IntentState::Suspended => true,
        IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. } => {
            false
        }
    };
    if intent.in_doubt || !is_waiting {
        return Err(InstanceEventError::WrongIntent(
            number,
            "was sent, so it cannot be cancelled; delete the instance or roll back",
        ));
    }
    let mut transition = Transition::of(instance, context);
    transition.cancel(number, CancelledBy::Person(by));
    Ok(transition.decision(InstanceReply::Done))
}

/// Lets an intent on hold go on: a new intent with the same change takes its place at the end of the queue.
pub(super) fn resume(
    instance: Instance,
    number: IntentNumber,
    facts: &ChangeFacts,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if let Some(number) = accepted_before(&instance, &facts.request)? {
        let reply = InstanceReply::AcceptedBefore(number);
        return Ok(Transition::of(instance, context).decision(reply));
    }
    let Some(held) = instance.intent(number).cloned() else {
        return Err(InstanceEventError::WrongIntent(number, "is not pending"));
    };
    if !matches!(held.state, IntentState::OnHold(_)) {
        return Err(InstanceEventError::WrongIntent(number, "is not on hold"));
    }
    check_conditions(&instance, facts, context)?;
    let facts = caused(facts, IntentCause::Resume(number));
    let mut transition = Transition::of(instance, context);
    let place = transition.next.pending.iter();
    if let Some(place) = place.clone().position(|intent| intent.number == number) {
        transition.next.pending.remove(place);
    }
    let next = match held.change.clone() {
        IntentChange::Provision if held.in_doubt => {
            transition.accept_same_create(&facts.request, facts.catalog_revision)
        }
        IntentChange::Provision => transition.accept_create(&facts.request, facts.catalog_revision),
        IntentChange::Update(patch) | IntentChange::Local(patch) => {
            accept_patch(&mut transition, patch, &facts)?
        }
        IntentChange::Delete => return Err(InstanceEventError::WrongIntent(number, "is a delete")),
    };
    transition.edit(next, |intent| intent.in_doubt = held.in_doubt);
    transition.next.pending.push(held);
    transition.end(number, IntentEnd::Superseded(next));
    Ok(transition.decision(InstanceReply::Accepted(next)))
}

/// Begins an intent with the change of one that was rejected or failed.
pub(super) fn retry(
    instance: Instance,
    number: IntentNumber,
    facts: &ChangeFacts,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if let Some(number) = accepted_before(&instance, &facts.request)? {
        let reply = InstanceReply::AcceptedBefore(number);
        return Ok(Transition::of(instance, context).decision(reply));
    }
    let ended = instance.ended.iter().find(|it| it.number == number);
    let Some(ended) = ended.cloned() else {
        return Err(InstanceEventError::WrongIntent(
            number,
            "has not ended or is not kept any more",
        ));
    };
    match ended.end {
        IntentEnd::Rejected(_) | IntentEnd::Failed(_) => {}
        IntentEnd::Succeeded | IntentEnd::Superseded(_) | IntentEnd::Cancelled(_) => {
            return Err(InstanceEventError::WrongIntent(
                number,
                "was not rejected and did not fail",
            ));
        }
    }
    check_conditions(&instance, facts, context)?;
    let facts = caused(facts, IntentCause::Retry(number));
    let mut transition = Transition::of(instance, context);
    let next = match ended.change {
        IntentChange::Provision => {
            if transition.next.confirmed().is_some() || transition.next.is_being_created() {
                return Err(InstanceEventError::WrongIntent(
                    number,
                    "is a create that is not needed",
                ));
            }
            transition.accept_create(&facts.request, facts.catalog_revision)
        }
        IntentChange::Update(patch) | IntentChange::Local(patch) => {
            accept_patch(&mut transition, patch, &facts)?
        }
        IntentChange::Delete if transition.next.protected => {
            return Err(InstanceEventError::Protected);
        }
        IntentChange::Delete => {
            let Transition { next, .. } = transition;
            let ChangeRequest { author, cause, .. } = facts.request;
            return Ok(accept_delete(next, author, false, cause, context));
        }
    };
    Ok(transition.decision(InstanceReply::Accepted(next)))
}

/// Begins an update to the specification that an intent confirmed.
pub(super) fn rollback(
    instance: Instance,
    number: IntentNumber,
    facts: &ChangeFacts,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if let Some(number) = accepted_before(&instance, &facts.request)? {
        let reply = InstanceReply::AcceptedBefore(number);
        return Ok(Transition::of(instance, context).decision(reply));
    }
    let Some(confirmed) = instance.confirmed() else {
        return Err(InstanceEventError::NotLive);
    };
    let mut spec = confirmed.spec.clone();
    let mut is_kept = instance.applied == Some(number);
    // From the newest on: each leads from what it confirmed to what was confirmed before.
    for ended in instance.ended.iter().rev() {
        if ended.number == number && ended.end == IntentEnd::Succeeded {
            is_kept = true;
        }
        if is_kept {
            break;
        }
        if let Some(undo) = &ended.undo {
            spec = spec.apply(undo);
        }
    }
    if !is_kept {
        return Err(InstanceEventError::NotKept(number));
    }
    check_conditions(&instance, facts, context)?;
    let patch = spec::diff(&instance.projection().spec, &spec);
    if patch == SpecPatch::default() {
        return Ok(Transition::of(instance, context).decision(InstanceReply::Unchanged));
    }
    let facts = caused(facts, IntentCause::Rollback(number));
    let mut transition = Transition::of(instance, context);
    let next = accept_patch(&mut transition, patch, &facts)?;
    Ok(transition.decision(InstanceReply::Accepted(next)))
}

/// The instance follows another object, or none.
pub(super) fn follow(
    mut instance: Instance,
    source: Option<Source>,
    context: &Context<'_>,
) -> InstanceDecision {
    instance.source = source;
    Transition::of(instance, context).decision(InstanceReply::Done)
}

/// Deletes are refused, or not.
pub(super) fn protect(mut instance: Instance, on: bool, context: &Context<'_>) -> InstanceDecision {
    instance.protected = on;
    Transition::of(instance, context).decision(InstanceReply::Done)
}

fn caused(facts: &ChangeFacts, cause: IntentCause) -> ChangeFacts {
    let mut facts = facts.clone();
    facts.request.cause = cause;
    facts
}

impl Transition<'_> {
    /// Accepts a create that goes on with one whose outcome is not known: under the same id, so that the broker's answer
    /// tells.
    fn accept_same_create(
        &mut self,
        request: &ChangeRequest,
        catalog_revision: u64,
    ) -> IntentNumber {
        self.accept(IntentChange::Provision, request, catalog_revision)
    }
}
