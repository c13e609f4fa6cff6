//! What an operator's order means for an instance in each of its states (D-31 to D-34).
//!
//! Requests of the platform are decided in `instance.rs`. An order to end what runs takes the way that
//! a failed run takes, in `endings.rs`.

use super::endings::{on_ended, on_overdue};
use super::{Instance, Thing, delete};
use crate::lifecycle::order::{Failed, Order, nothing_failed, nothing_runs};
use crate::lifecycle::{Decision, Effect, End, Pace, Reply, Verb, started};
use crate::refusal::{Refusal, Resource};
use sutler_journal::OperationId;

pub(super) fn on_ordered(
    at: Instance,
    order: Order,
    new: OperationId,
) -> Result<Decision<Instance>, Refusal> {
    match order {
        Order::Retry { failed } => retry(at, failed, new),
        Order::Cancel => cancel(at, new),
        Order::Abandon => abandon(at),
        Order::Purge => purge(&at, new),
    }
}

fn retry(
    at: Instance,
    failed: Option<Failed>,
    new: OperationId,
) -> Result<Decision<Instance>, Refusal> {
    match at {
        Instance::Absent | Instance::Gone { .. } => Err(Refusal::NotFound(Resource::Instance)),
        Instance::CreateFailed { thing } => match failed {
            Some(Failed::Create) => Ok(create_again(thing, new)),
            Some(Failed::Delete) => Ok(delete(thing, new, Pace::Background, false)),
            Some(Failed::Update(_)) | None => Err(nothing_failed()),
        },
        Instance::Live { mut thing } => match failed {
            Some(Failed::Update(again)) => {
                thing.last = new;
                let next = Instance::Updating {
                    thing,
                    change: again.change,
                    dashboard_url: again.dashboard_url,
                    given_up: false,
                };
                Ok(started(next, Verb::Update, new, Pace::Background))
            }
            Some(Failed::Delete) => Ok(delete(thing, new, Pace::Background, true)),
            Some(Failed::Create) | None => Err(nothing_failed()),
        },
        // The delete over a create waits for more than its time, and so is never woken here.
        Instance::Creating { .. } | Instance::Updating { .. } | Instance::Deleting { .. } => {
            Ok(nudge(at))
        }
    }
}

/// What waits for its next attempt need not wait any longer.
fn nudge(at: Instance) -> Decision<Instance> {
    let effects = at.executing().map(Effect::Wake).into_iter().collect();
    let reply = at.last().map_or(Reply::AlreadyDone, Reply::Joined);
    Decision {
        next: at,
        effects,
        reply,
    }
}

fn create_again(mut thing: Thing, new: OperationId) -> Decision<Instance> {
    thing.last = new;
    started(
        Instance::Creating { thing },
        Verb::Provision,
        new,
        Pace::Background,
    )
}

/// A create is halted and cleaned up after, an update is not applied: as when a caller has waited too
/// long. A delete is asked to stop, and its own end says what is left.
fn cancel(at: Instance, new: OperationId) -> Result<Decision<Instance>, Refusal> {
    match at {
        Instance::Absent | Instance::Gone { .. } => Err(Refusal::NotFound(Resource::Instance)),
        Instance::CreateFailed { .. } | Instance::Live { .. } => Err(nothing_runs()),
        Instance::Creating { ref thing } => {
            let creating = thing.last;
            Ok(Decision {
                reply: Reply::Started(new, Pace::Background),
                ..on_overdue(at, creating, new)
            })
        }
        Instance::Updating {
            ref thing,
            given_up: false,
            ..
        } => {
            let updating = thing.last;
            Ok(Decision {
                reply: Reply::Joined(updating),
                ..on_overdue(at, updating, new)
            })
        }
        Instance::Deleting {
            ref thing,
            over: None,
            ..
        } => {
            let deleting = thing.last;
            Ok(Decision {
                next: at,
                effects: vec![Effect::Cancel(deleting)],
                reply: Reply::Joined(deleting),
            })
        }
        Instance::Updating { given_up: true, .. } | Instance::Deleting { over: Some(_), .. } => {
            Ok(Decision::stay(at, Reply::AlreadyDone))
        }
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

/// The tombstone names an operation that never was, so that a poll finds the instance gone.
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
                next: Instance::gone(tombstone),
                effects: unfinished.map(Effect::End).collect(),
                reply: Reply::Nothing,
            })
        }
    }
}
