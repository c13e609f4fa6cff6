//! What becomes of an instance when a run saves state, ends, or is waited for too long.
//!
//! Requests are decided in `instance.rs`, which calls these.

use super::{Change, Instance, Made, Thing, halt};
use crate::lifecycle::{AuthorState, Decision, Effect, End, Pace, Reply};
use sutler_journal::OperationId;

pub(super) fn on_saved(
    mut at: Instance,
    operation: OperationId,
    saved: AuthorState,
) -> Decision<Instance> {
    match &mut at {
        Instance::Creating { thing } | Instance::Updating { thing, .. }
            if thing.last == operation =>
        {
            thing.state = Some(saved);
        }
        Instance::Deleting { thing, over, .. } if over.unwrap_or(thing.last) == operation => {
            thing.state = Some(saved);
        }
        Instance::Creating { .. }
        | Instance::Updating { .. }
        | Instance::Deleting { .. }
        | Instance::Absent
        | Instance::CreateFailed { .. }
        | Instance::Live { .. }
        | Instance::Gone { .. } => {}
    }
    Decision::stay(at, Reply::Nothing)
}

pub(super) fn on_ended(at: Instance, ended: OperationId, end: End<Made>) -> Decision<Instance> {
    match at {
        Instance::Creating { thing } if thing.last == ended => created(thing, end),
        Instance::Updating {
            thing,
            change,
            dashboard_url,
            given_up,
        } if thing.last == ended => updated(thing, &change, dashboard_url, given_up, end),
        Instance::Deleting {
            thing,
            over: Some(creating),
            was_live,
        } if creating == ended => create_halted(thing, was_live, end),
        Instance::Deleting {
            thing,
            over: None,
            was_live,
        } if thing.last == ended => deleted(thing, was_live, &end),
        // A late result of another operation changes nothing.
        Instance::Absent
        | Instance::Creating { .. }
        | Instance::CreateFailed { .. }
        | Instance::Live { .. }
        | Instance::Updating { .. }
        | Instance::Deleting { .. }
        | Instance::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}

fn created(mut thing: Thing, end: End<Made>) -> Decision<Instance> {
    let next = match end {
        End::Succeeded(made) => {
            take_over(&mut thing, made);
            thing.made = thing.last;
            Instance::Live { thing }
        }
        End::Failed => Instance::CreateFailed { thing },
        // It made nothing, but the failed attempt before it may have.
        End::Refused if thing.made != thing.last => Instance::CreateFailed { thing },
        // B-035: a refusal made nothing, so nothing is left that a platform would have to delete.
        End::Refused => Instance::refused(thing.last),
    };
    Decision::stay(next, Reply::Nothing)
}

fn updated(
    mut thing: Thing,
    change: &Change,
    dashboard_url: Option<String>,
    given_up: bool,
    end: End<Made>,
) -> Decision<Instance> {
    match end {
        End::Succeeded(made) => {
            take_over(&mut thing, made);
            // B-037: a caller that was told it failed must not find it applied.
            if !given_up {
                thing.spec = thing.spec.changed_by(change);
                thing.dashboard_url = dashboard_url.or(thing.dashboard_url);
            }
        }
        End::Failed | End::Refused => {}
    }
    Decision::stay(Instance::Live { thing }, Reply::Nothing)
}

/// A late result becomes state for the delete, never a live instance.
fn create_halted(mut thing: Thing, was_live: bool, end: End<Made>) -> Decision<Instance> {
    match end {
        End::Succeeded(made) => take_over(&mut thing, made),
        End::Failed | End::Refused => {}
    }
    let effects = vec![Effect::Wake(thing.last)];
    let next = Instance::Deleting {
        thing,
        over: None,
        was_live,
    };
    Decision {
        next,
        effects,
        reply: Reply::Nothing,
    }
}

fn deleted(thing: Thing, was_live: bool, end: &End<Made>) -> Decision<Instance> {
    let next = match (end, was_live) {
        (End::Succeeded(_), _) => Instance::gone(thing.last),
        (End::Failed | End::Refused, true) => Instance::Live { thing },
        (End::Failed | End::Refused, false) => Instance::CreateFailed { thing },
    };
    Decision::stay(next, Reply::Nothing)
}

fn take_over(thing: &mut Thing, made: Made) {
    thing.state = made.state.or(thing.state.take());
    thing.metadata = made.metadata.or(thing.metadata.take());
}

pub(super) fn on_overdue(
    at: Instance,
    late: OperationId,
    cleanup: OperationId,
) -> Decision<Instance> {
    match at {
        // Its caller gets an error, so nobody is told of the clean-up.
        Instance::Creating { thing } if thing.last == late => Decision {
            reply: Reply::Nothing,
            ..halt(thing, cleanup, Pace::Background)
        },
        Instance::Updating {
            thing,
            change,
            dashboard_url,
            given_up: false,
        } if thing.last == late => Decision {
            next: Instance::Updating {
                thing,
                change,
                dashboard_url,
                given_up: true,
            },
            effects: vec![Effect::Cancel(late)],
            reply: Reply::Nothing,
        },
        // A delete goes on; a repeat joins it.
        Instance::Absent
        | Instance::Creating { .. }
        | Instance::CreateFailed { .. }
        | Instance::Live { .. }
        | Instance::Updating { .. }
        | Instance::Deleting { .. }
        | Instance::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}
