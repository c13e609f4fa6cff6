//! Which rule handles which event. The rules themselves are in the files of the events.

use crate::lifecycle::instance::change::{self, WantedSpec};
use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Context, Event, Instance, InstanceCommand, InstanceDecision, InstanceEventError, InstanceReply,
    IntentChange, ResourceDetails, commands, create, delete, repeated_create, turn, update_answer,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use sutler_client::Meaning;

/// What follows from an event; `None` as the instance: there is none of this name.
///
/// # Errors
/// Nothing is written, and the refusal says why.
pub fn decide(
    instance: Option<Instance>,
    event: Event,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    let Some(instance) = instance else {
        return match event {
            Event::Command(command) => match *command {
                InstanceCommand::Create(request) => create::create(request, context),
                InstanceCommand::Adopt(request) => create::adopt(request, context),
                _ => Err(InstanceEventError::NotFound),
            },
            Event::Turn(..) | Event::Answer(..) | Event::OrphanSettled(..) | Event::Fetched(_) => {
                Err(InstanceEventError::NotFound)
            }
        };
    };
    if instance.tombstone.is_some() {
        return Err(match event {
            Event::Command(_) => InstanceEventError::Gone,
            Event::Turn(..) | Event::Answer(..) | Event::OrphanSettled(..) | Event::Fetched(_) => {
                InstanceEventError::OutOfDate
            }
        });
    }
    match event {
        Event::Command(command) => obey(instance, *command, context),
        Event::Turn(number, prepared) => turn::turn(instance, number, prepared, context),
        Event::Answer(number, answer) => answered(instance, number, *answer, context),
        Event::OrphanSettled(orphan, result) => {
            repeated_create::orphan_settled(instance, &orphan, result, context)
        }
        Event::Fetched(found) => update_answer::fetched(instance, *found, context),
    }
}

fn obey(
    instance: Instance,
    command: InstanceCommand,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    match command {
        InstanceCommand::Create(_) | InstanceCommand::Adopt(_) => {
            Err(InstanceEventError::AlreadyExists)
        }
        InstanceCommand::Patch(patch, facts) => {
            change::change(instance, WantedSpec::Patch(patch), &facts, context)
        }
        InstanceCommand::Replace(spec, facts) => {
            change::change(instance, WantedSpec::Whole(spec), &facts, context)
        }
        InstanceCommand::Apply(manager, spec, facts) => change::change(
            instance,
            WantedSpec::Applied(manager, spec),
            &facts,
            context,
        ),
        InstanceCommand::Touch(facts) => {
            change::change(instance, WantedSpec::Touch, &facts, context)
        }
        InstanceCommand::Delete {
            by,
            cascade,
            bindings,
        } => delete::delete(instance, by, cascade, bindings, context),
        InstanceCommand::Undelete(by) => delete::undelete(instance, by, context),
        InstanceCommand::Cancel(number, by) => commands::cancel(instance, number, by, context),
        InstanceCommand::Resume(number, facts) => {
            commands::resume(instance, number, &facts, context)
        }
        InstanceCommand::Retry(number, facts) => commands::retry(instance, number, &facts, context),
        InstanceCommand::Rollback(number, facts) => {
            commands::rollback(instance, number, &facts, context)
        }
        InstanceCommand::Abandon(given_up) => Ok(delete::abandon(instance, given_up, context)),
        InstanceCommand::Follow(source) => Ok(commands::follow(instance, source, context)),
        InstanceCommand::Protect(on) => Ok(commands::protect(instance, on, context)),
    }
}

/// The answer to what is being sent or polled.
fn answered(
    instance: Instance,
    number: IntentNumber,
    answer: Meaning<ResourceDetails>,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    let Some(intent) = instance.intent(number).cloned() else {
        return Err(InstanceEventError::OutOfDate);
    };
    let was_asked = match intent.state {
        IntentState::Polling { .. } => {
            instance.active() == Some(number) || instance.polls_under_delete()
        }
        IntentState::Sending { .. } => true,
        IntentState::Queued { .. }
        | IntentState::OnHold(_)
        | IntentState::Suspended
        | IntentState::Unknown { .. } => false,
    };
    if !was_asked {
        return Err(InstanceEventError::OutOfDate);
    }
    let is_under_delete = instance.active() != Some(number);
    let mut transition = Transition::of(instance, context);
    match &intent.change {
        IntentChange::Provision => transition.create_answered(&intent, answer)?,
        IntentChange::Update(patch) => transition.update_answered(&intent, patch, answer)?,
        IntentChange::Delete => transition.delete_answered(&intent, answer)?,
        IntentChange::Local(_) => return Err(InstanceEventError::OutOfDate),
    }
    if is_under_delete {
        transition.polled_under_delete(number);
    }
    Ok(transition.decision(InstanceReply::Nothing))
}
