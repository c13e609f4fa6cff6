//! Commands about intents: cancel, resume, retry.
//!
//! None of them changes an intent that was accepted: resume and retry begin a new one with its own author.

use crate::author::Author;
use crate::lifecycle::binding::create::check_facts;
use crate::lifecycle::binding::delete::{accept_delete, undelete};
use crate::lifecycle::binding::rotate::{accept_rotation, accepted};
use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    BindFacts, Binding, BindingDecision, BindingEventError, BindingReply, Context,
    InstanceReadiness, IntentCause, IntentChange,
};
use crate::lifecycle::intent::{CancelledBy, IntentEnd, IntentNumber, IntentState};

/// Ends an intent that has had no effect.
pub(super) fn cancel(
    binding: Binding,
    number: IntentNumber,
    by: Author,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let Some(intent) = binding.intent(number).cloned() else {
        return Err(BindingEventError::WrongIntent(number, "is not pending"));
    };
    if intent.change.is_delete() {
        return undelete(binding, by, context);
    }
    let is_waiting = match intent.state {
        IntentState::Queued { .. } | IntentState::OnHold(_) | IntentState::Suspended => true,
        IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. } => {
            false
        }
    };
    if intent.in_doubt || !is_waiting {
        return Err(BindingEventError::WrongIntent(
            number,
            "was sent, so it cannot be cancelled; delete the binding",
        ));
    }
    let mut transition = Transition::of(binding, context);
    transition.cancel(number, CancelledBy::Person(by));
    if let IntentChange::Unbind(osb_id) = &intent.change {
        transition.put_off_retirement(osb_id);
    }
    Ok(transition.decision(BindingReply::Done))
}

/// Lets a bind on hold go on: a new intent binds the same generation. If an earlier attempt may have had an effect, the
/// answer of the broker tells, because the id is the same.
pub(super) fn resume(
    binding: Binding,
    number: IntentNumber,
    by: Author,
    facts: &BindFacts,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let Some(held) = binding.intent(number).cloned() else {
        return Err(BindingEventError::WrongIntent(number, "is not pending"));
    };
    if !matches!(held.state, IntentState::OnHold(_)) {
        return Err(BindingEventError::WrongIntent(number, "is not on hold"));
    }
    if binding.deletion.is_some() {
        return Err(BindingEventError::Deleting);
    }
    check_facts(facts)?;
    let mut transition = Transition::of(binding, context);
    let next = transition.accept(held.change, by, IntentCause::Resume(number));
    transition.edit(next, |intent| {
        intent.in_doubt = held.in_doubt;
        intent.waits_for_instance = facts.instance == InstanceReadiness::NotLiveYet;
    });
    transition.end(number, IntentEnd::Superseded(next));
    Ok(transition.decision(BindingReply::Accepted(next)))
}

/// Begins an intent with the change of one that was rejected or failed.
pub(super) fn retry(
    binding: Binding,
    number: IntentNumber,
    by: Author,
    facts: &BindFacts,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let refused = |why| Err(BindingEventError::WrongIntent(number, why));
    let ended = binding.ended.iter().find(|it| it.number == number);
    let Some(ended) = ended.cloned() else {
        return refused("has not ended or is not kept any more");
    };
    match ended.end {
        IntentEnd::Rejected(_) | IntentEnd::Failed(_) => {}
        IntentEnd::Succeeded | IntentEnd::Superseded(_) | IntentEnd::Cancelled(_) => {
            return refused("was not rejected and did not fail");
        }
    }
    if binding.deletion.is_some() {
        return Err(BindingEventError::Deleting);
    }
    let cause = IntentCause::Retry(number);
    match ended.change {
        IntentChange::Bind(_) if !binding.needs_bind() => refused("is a bind that is not needed"),
        IntentChange::Bind(_) => accept_rotation(binding, by, cause, facts, context).map(accepted),
        IntentChange::Unbind(osb_id) => {
            let retiring = binding.generation(&osb_id).and_then(|it| it.retirement());
            if retiring.is_none() || binding.unbind_of(&osb_id).is_some() {
                return refused("is an unbind that is not needed");
            }
            let mut transition = Transition::of(binding, context);
            transition.accept(IntentChange::Unbind(osb_id), by, cause);
            Ok(accepted(transition))
        }
        IntentChange::Delete => Ok(accept_delete(binding, by, cause, context)),
    }
}

impl Binding {
    /// Whether a bind can be repeated: there are no credentials yet, or they were to be replaced; and no bind is pending.
    fn needs_bind(&self) -> bool {
        let is_wanted = self.current().is_none() || self.failed_rotations.is_some();
        is_wanted && self.pending_bind().is_none()
    }
}
