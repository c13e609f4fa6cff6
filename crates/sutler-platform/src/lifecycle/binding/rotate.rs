//! Rotations, and what the expiry chore asks for: renewals, and unbinds of what was replaced.
//!
//! A rotation is a bind of a new generation with the same parameters. If the plan rotates bindings, the broker learns
//! which one it replaces (P-110, P-111). Until it succeeded nothing changes.

use crate::author::Author;
use crate::lifecycle::binding::create::check_facts;
use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    BindFacts, Binding, BindingDecision, BindingEventError, BindingReply, Context, GENERATIONS_MAX,
    IntentCause, IntentChange, RotateRequest,
};
use crate::lifecycle::intent::IntentState;

/// A person asks for other credentials.
pub(super) fn rotate(
    binding: Binding,
    request: RotateRequest,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let key = request.idempotency_key;
    if let Some(number) = binding.accepted_under(key.as_ref())? {
        let reply = BindingReply::AcceptedBefore(number);
        return Ok(Transition::of(binding, context).decision(reply));
    }
    if binding.deletion.is_some() {
        return Err(BindingEventError::Deleting);
    }
    if binding.current().is_none() {
        return Err(BindingEventError::NotBound);
    }
    if let Some(pending) = binding.pending_bind() {
        let number = pending.number;
        if matches!(pending.state, IntentState::OnHold(_)) {
            return Err(BindingEventError::WrongIntent(
                number,
                "rotates the binding and is on hold; resume or cancel it",
            ));
        }
        return Ok(Transition::of(binding, context).decision(BindingReply::Joined(number)));
    }
    let (by, cause) = (request.by, IntentCause::User);
    let mut transition = accept_rotation(binding, by, cause, &request.facts, context)?;
    if let Some(number) = transition.accepted {
        transition.remember(key, number);
    }
    Ok(accepted(transition))
}

/// The expiry chore found that the credentials are to be replaced.
pub(super) fn renewal_due(
    binding: Binding,
    facts: &BindFacts,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    if binding.renewal_due().is_none_or(|due| due > context.now) {
        return Err(BindingEventError::NotDue);
    }
    let (by, cause) = (binding.author.clone(), IntentCause::Renewal);
    accept_rotation(binding, by, cause, facts, context).map(accepted)
}

/// Accepts a bind that replaces the current generation.
pub(super) fn accept_rotation<'a>(
    binding: Binding,
    by: Author,
    cause: IntentCause,
    facts: &BindFacts,
    context: &'a Context<'a>,
) -> Result<Transition<'a>, BindingEventError> {
    check_facts(facts)?;
    if binding.bound_generations() >= GENERATIONS_MAX {
        return Err(BindingEventError::TooManyGenerations);
    }
    let mut transition = Transition::of(binding, context);
    transition.accept_bind(by, cause, facts);
    Ok(transition)
}

/// The decision that accepts an intent.
pub(super) fn accepted(transition: Transition<'_>) -> BindingDecision {
    let reply = transition
        .accepted
        .map_or(BindingReply::Nothing, BindingReply::Accepted);
    transition.decision(reply)
}

/// The expiry chore found that the overlap of a retiring generation is over.
pub(super) fn retirement_due(
    binding: Binding,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let due = binding.next_retirement();
    let due = due.filter(|(until, _)| *until <= context.now);
    let Some(osb_id) = due.map(|(_, osb_id)| osb_id.clone()) else {
        return Err(BindingEventError::NotDue);
    };
    let by = binding.author.clone();
    let mut transition = Transition::of(binding, context);
    transition.accept(IntentChange::Unbind(osb_id), by, IntentCause::Retirement);
    Ok(accepted(transition))
}
