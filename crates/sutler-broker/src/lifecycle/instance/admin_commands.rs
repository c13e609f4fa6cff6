//! Decides commands of operators for an instance in each of its states (D-31 to D-34).
//!
//! Requests of the platform are decided in `instance.rs`. An abandon is decided like a failed run, in
//! `endings.rs`.

use super::endings::{on_ended, on_overdue};
use super::{Instance, InstanceData, delete};
use crate::lifecycle::admin_command::{
    AdminCommand, FailedOperation, nothing_failed, nothing_runs,
};
use crate::lifecycle::{Decision, Effect, End, Reply, ResponseMode, Verb, started};
use crate::refusal::{Refusal, Resource};
use sutler_journal::OperationId;

pub(super) fn on_command(
    at: Instance,
    command: AdminCommand,
    new: OperationId,
) -> Result<Decision<Instance>, Refusal> {
    match command {
        AdminCommand::Retry { failed } => retry(at, failed, new),
        AdminCommand::Cancel => cancel(at, new),
        AdminCommand::Abandon => abandon(at),
        AdminCommand::Purge => purge(&at, new),
    }
}

fn retry(
    at: Instance,
    failed: Option<FailedOperation>,
    new: OperationId,
) -> Result<Decision<Instance>, Refusal> {
    match at {
        Instance::Absent | Instance::Gone { .. } => Err(Refusal::NotFound(Resource::Instance)),
        Instance::CreateFailed { data } => match failed {
            Some(FailedOperation::Create) => Ok(create_again(data, new)),
            Some(FailedOperation::Delete) => Ok(delete(data, new, ResponseMode::Background, false)),
            Some(FailedOperation::Update(_)) | None => Err(nothing_failed()),
        },
        Instance::Live { mut data } => match failed {
            Some(FailedOperation::Update(again)) => {
                data.last = new;
                let next = Instance::Updating {
                    data,
                    change: again.change,
                    dashboard_url: again.dashboard_url,
                    given_up: false,
                };
                Ok(started(next, Verb::Update, new, ResponseMode::Background))
            }
            Some(FailedOperation::Delete) => Ok(delete(data, new, ResponseMode::Background, true)),
            Some(FailedOperation::Create) | None => Err(nothing_failed()),
        },
        // A delete that waits for a create is not waiting for its time, so it is never woken here.
        Instance::Creating { .. } | Instance::Updating { .. } | Instance::Deleting { .. } => {
            Ok(nudge(at))
        }
    }
}

/// Wakes an operation that waits for its next attempt.
fn nudge(at: Instance) -> Decision<Instance> {
    let effects = at.executing().map(Effect::Wake).into_iter().collect();
    let reply = at.last().map_or(Reply::AlreadyDone, Reply::Joined);
    Decision {
        next: at,
        effects,
        reply,
    }
}

fn create_again(mut data: InstanceData, new: OperationId) -> Decision<Instance> {
    data.last = new;
    started(
        Instance::Creating { data },
        Verb::Provision,
        new,
        ResponseMode::Background,
    )
}

/// Cancels a create and cleans up after it, and does not apply an update: as after the time limit of a
/// waiting request. Requests cancellation of a delete, whose end decides the next state.
fn cancel(at: Instance, new: OperationId) -> Result<Decision<Instance>, Refusal> {
    match at {
        Instance::Absent | Instance::Gone { .. } => Err(Refusal::NotFound(Resource::Instance)),
        Instance::CreateFailed { .. } | Instance::Live { .. } => Err(nothing_runs()),
        Instance::Creating { ref data } => {
            let creating = data.last;
            Ok(Decision {
                reply: Reply::Started(new, ResponseMode::Background),
                ..on_overdue(at, creating, new)
            })
        }
        Instance::Updating {
            ref data,
            given_up: false,
            ..
        } => {
            let updating = data.last;
            Ok(Decision {
                reply: Reply::Joined(updating),
                ..on_overdue(at, updating, new)
            })
        }
        Instance::Deleting {
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
        Instance::Updating { given_up: true, .. }
        | Instance::Deleting {
            pending_create: Some(_),
            ..
        } => Ok(Decision::stay(at, Reply::AlreadyDone)),
    }
}

fn abandon(at: Instance) -> Result<Decision<Instance>, Refusal> {
    if matches!(at, Instance::Absent | Instance::Gone { .. }) {
        return Err(Refusal::NotFound(Resource::Instance));
    }
    let (Some(stuck), Some(last)) = (at.executing(), at.last()) else {
        return Err(nothing_runs());
    };
    let mut decision = on_ended(at, stuck, End::Failed);
    decision.effects.insert(0, Effect::End(stuck));
    decision.reply = Reply::Joined(last);
    Ok(decision)
}

/// The tombstone has the id of an operation that never existed, so a poll reports the instance as gone. It keeps
/// the id until the bindings are purged too (`requests/purge.rs`).
fn purge(at: &Instance, tombstone: OperationId) -> Result<Decision<Instance>, Refusal> {
    match at {
        Instance::Absent => Err(Refusal::NotFound(Resource::Instance)),
        Instance::Gone { .. } => Ok(Decision::stay(at.clone(), Reply::AlreadyDone)),
        Instance::Creating { .. }
        | Instance::CreateFailed { .. }
        | Instance::Live { .. }
        | Instance::Updating { .. }
        | Instance::Deleting { .. } => {
            let unfinished = at.executing().into_iter().chain(at.waiting());
            Ok(Decision {
                next: Instance::purging(tombstone),
                effects: unfinished.map(Effect::End).collect(),
                reply: Reply::Nothing,
            })
        }
    }
}
