//! Decides commands of operators for a binding in each of its states (D-31 to D-34).
//!
//! Like `instance/admin_commands.rs`, but a retry needs an instance at which no operation runs.

use super::{Binding, BindingData, Parent, delete, on_ended, on_overdue};
use crate::lifecycle::admin_command::{
    AdminCommand, FailedOperation, nothing_failed, nothing_runs,
};
use crate::lifecycle::{Decision, Effect, End, Reply, ResponseMode, Verb, started};
use crate::refusal::{Refusal, Resource};
use sutler_journal::OperationId;

pub(super) fn on_command(
    at: Binding,
    command: AdminCommand,
    parent: Parent,
    new: OperationId,
) -> Result<Decision<Binding>, Refusal> {
    match command {
        AdminCommand::Retry { failed } => retry(at, failed, parent, new),
        AdminCommand::Cancel => cancel(at, new),
        AdminCommand::Abandon => abandon(at),
        AdminCommand::Purge => purge(&at, new),
    }
}

fn retry(
    at: Binding,
    failed: Option<FailedOperation>,
    parent: Parent,
    new: OperationId,
) -> Result<Decision<Binding>, Refusal> {
    let (data, live) = match at {
        Binding::Absent | Binding::Gone { .. } => {
            return Err(Refusal::NotFound(Resource::Binding));
        }
        // An unbind that waits for a bind is not waiting for its time, so it is never woken here.
        Binding::Creating { .. } | Binding::Deleting { .. } => return Ok(nudge(at)),
        Binding::CreateFailed { data } => (data, false),
        Binding::Live { data } => (data, true),
    };
    let again = match failed {
        Some(FailedOperation::Create) if !live => create_again(data, new),
        Some(FailedOperation::Delete) => delete(data, new, ResponseMode::Background, live),
        Some(FailedOperation::Create | FailedOperation::Update(_)) | None => {
            return Err(nothing_failed());
        }
    };
    match parent {
        Parent::Live => Ok(again),
        Parent::Busy(why) => Err(Refusal::Busy(why)),
        Parent::Missing => Err(Refusal::NotFound(Resource::Instance)),
    }
}

/// Wakes an operation that waits for its next attempt.
fn nudge(at: Binding) -> Decision<Binding> {
    let effects = at.executing().map(Effect::Wake).into_iter().collect();
    let reply = at.last().map_or(Reply::AlreadyDone, Reply::Joined);
    Decision {
        next: at,
        effects,
        reply,
    }
}

fn create_again(mut data: BindingData, new: OperationId) -> Decision<Binding> {
    data.last = new;
    let next = Binding::Creating { data };
    started(next, Verb::Bind, new, ResponseMode::Background)
}

/// Cancels a bind and cleans up after it; requests cancellation of an unbind, whose end decides the next
/// state.
fn cancel(at: Binding, new: OperationId) -> Result<Decision<Binding>, Refusal> {
    match at {
        Binding::Absent | Binding::Gone { .. } => Err(Refusal::NotFound(Resource::Binding)),
        Binding::CreateFailed { .. } | Binding::Live { .. } => Err(nothing_runs()),
        Binding::Creating { ref data } => {
            let creating = data.last;
            Ok(Decision {
                reply: Reply::Started(new, ResponseMode::Background),
                ..on_overdue(at, creating, new)
            })
        }
        Binding::Deleting {
            ref data,
            pending_create: None,
            ..
        } => {
            let deleting = data.last;
            Ok(Decision {
                next: at,
                effects: vec![Effect::Cancel(deleting)],
                reply: Reply::Joined(deleting),
            })
        }
        Binding::Deleting {
            pending_create: Some(_),
            ..
        } => Ok(Decision::stay(at, Reply::AlreadyDone)),
    }
}

fn abandon(at: Binding) -> Result<Decision<Binding>, Refusal> {
    if matches!(at, Binding::Absent | Binding::Gone { .. }) {
        return Err(Refusal::NotFound(Resource::Binding));
    }
    let (Some(stuck), Some(last)) = (at.executing(), at.last()) else {
        return Err(nothing_runs());
    };
    let mut decision = on_ended(at, stuck, End::Failed);
    decision.effects.insert(0, Effect::End(stuck));
    decision.reply = Reply::Joined(last);
    Ok(decision)
}

/// The tombstone has the id of an operation that never existed, so a poll reports the binding as gone.
fn purge(at: &Binding, tombstone: OperationId) -> Result<Decision<Binding>, Refusal> {
    match at {
        Binding::Absent => Err(Refusal::NotFound(Resource::Binding)),
        Binding::Gone { .. } => Ok(Decision::stay(at.clone(), Reply::AlreadyDone)),
        Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Live { .. }
        | Binding::Deleting { .. } => {
            let unfinished = at.executing().into_iter().chain(at.waiting());
            Ok(Decision {
                next: Binding::gone(tombstone),
                effects: unfinished.map(Effect::End).collect(),
                reply: Reply::Nothing,
            })
        }
    }
}
