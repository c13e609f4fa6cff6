//! Which rule for which event. The rules themselves are in the files of the events.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    Binding, BindingBody, BindingCommand, BindingDecision, BindingEventError, BindingReply,
    Context, Event, IntentChange, commands, create, delete, repeated_bind, rotate, turn,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use sutler_client::Meaning;

/// What follows from an event; `None` as the binding: there is none of this name.
///
/// # Errors
/// Nothing is written, and the refusal says why.
pub fn decide(
    binding: Option<Binding>,
    event: Event,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let Some(binding) = binding else {
        return match event {
            Event::Command(command) => match *command {
                BindingCommand::Create(request) => create::create(*request, context),
                BindingCommand::Delete(_)
                | BindingCommand::Cascade(_)
                | BindingCommand::Undelete(_)
                | BindingCommand::Cancel(..)
                | BindingCommand::Resume(..)
                | BindingCommand::Retry(..)
                | BindingCommand::Rotate(_)
                | BindingCommand::Abandon(_) => Err(BindingEventError::NotFound),
            },
            Event::RenewalDue(_)
            | Event::RetirementDue
            | Event::InstanceLive
            | Event::Turn(..)
            | Event::Answer(..)
            | Event::OrphanSettled(..) => Err(BindingEventError::NotFound),
        };
    };
    if binding.tombstone.is_some() {
        return Err(match event {
            Event::Command(_) => BindingEventError::Gone,
            Event::RenewalDue(_)
            | Event::RetirementDue
            | Event::InstanceLive
            | Event::Turn(..)
            | Event::Answer(..)
            | Event::OrphanSettled(..) => BindingEventError::OutOfDate,
        });
    }
    match event {
        Event::Command(command) => obey(binding, *command, context),
        Event::RenewalDue(facts) => rotate::renewal_due(binding, &facts, context),
        Event::RetirementDue => rotate::retirement_due(binding, context),
        Event::InstanceLive => create::instance_live(binding, context),
        Event::Turn(number, prepared) => turn::turn(binding, number, prepared, context),
        Event::Answer(number, answer) => answered(binding, number, *answer, context),
        Event::OrphanSettled(orphan, result) => {
            repeated_bind::orphan_settled(binding, &orphan, result, context)
        }
    }
}

fn obey(
    binding: Binding,
    command: BindingCommand,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    match command {
        BindingCommand::Create(_) => Err(BindingEventError::AlreadyExists),
        BindingCommand::Delete(by) => Ok(delete::delete(binding, by, context)),
        BindingCommand::Cascade(by) => Ok(delete::cascade(binding, by, context)),
        BindingCommand::Undelete(by) => delete::undelete(binding, by, context),
        BindingCommand::Cancel(number, by) => commands::cancel(binding, number, by, context),
        BindingCommand::Resume(number, by, facts) => {
            commands::resume(binding, number, by, &facts, context)
        }
        BindingCommand::Retry(number, by, facts) => {
            commands::retry(binding, number, by, &facts, context)
        }
        BindingCommand::Rotate(request) => rotate::rotate(binding, request, context),
        BindingCommand::Abandon(given_up) => Ok(delete::abandon(binding, given_up, context)),
    }
}

/// The answer to what is being sent or polled.
fn answered(
    binding: Binding,
    number: IntentNumber,
    answer: Meaning<BindingBody>,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let Some(intent) = binding.intent(number).cloned() else {
        return Err(BindingEventError::OutOfDate);
    };
    let was_asked = match intent.state {
        IntentState::Polling { .. } => {
            binding.active() == Some(number) || binding.polls_under_delete()
        }
        IntentState::Sending { .. } => true,
        IntentState::Queued { .. }
        | IntentState::OnHold(_)
        | IntentState::Suspended
        | IntentState::Unknown { .. } => false,
    };
    if !was_asked {
        return Err(BindingEventError::OutOfDate);
    }
    let is_under_delete = binding.active() != Some(number);
    let mut transition = Transition::of(binding, context);
    match &intent.change {
        IntentChange::Bind(bind) => transition.bind_answered(&intent, bind, answer)?,
        IntentChange::Unbind(osb_id) => transition.unbind_answered(&intent, osb_id, answer)?,
        IntentChange::Delete => transition.delete_answered(&intent, answer)?,
    }
    if is_under_delete {
        transition.polled_under_delete(number);
    }
    Ok(transition.decision(BindingReply::Nothing))
}
