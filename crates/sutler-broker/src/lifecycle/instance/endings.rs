//! Decides events of a running operation of an instance: saved state, its end, its time limit.
//!
//! Requests are decided in `instance.rs`, which calls these.

use super::{Change, HookOutput, Instance, InstanceData, halt};
use crate::lifecycle::{AuthorState, Decision, Effect, End, Reply, ResponseMode};
use std::sync::Arc;
use sutler_journal::OperationId;

pub(super) fn on_saved(
    mut at: Instance,
    operation: OperationId,
    saved: AuthorState,
) -> Decision<Instance> {
    match &mut at {
        Instance::Creating { data } | Instance::Updating { data, .. } if data.last == operation => {
            data.state = Some(saved);
        }
        Instance::Deleting {
            data,
            pending_create,
            ..
        } if pending_create.unwrap_or(data.last) == operation => {
            data.state = Some(saved);
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

pub(super) fn on_ended(
    at: Instance,
    ended: OperationId,
    end: End<HookOutput>,
) -> Decision<Instance> {
    match at {
        Instance::Creating { data } if data.last == ended => created(data, end),
        Instance::Updating {
            data,
            change,
            dashboard_url,
            given_up,
        } if data.last == ended => updated(data, &change, dashboard_url, given_up, end),
        Instance::Deleting {
            data,
            pending_create: Some(creating),
            was_live,
        } if creating == ended => create_halted(data, was_live, end),
        Instance::Deleting {
            data,
            pending_create: None,
            was_live,
        } if data.last == ended => deleted(data, was_live, &end),
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

fn created(mut data: InstanceData, end: End<HookOutput>) -> Decision<Instance> {
    let next = match end {
        End::Succeeded(made) => {
            take_over(&mut data, made);
            data.made = data.last;
            Instance::Live { data }
        }
        End::Failed => Instance::CreateFailed { data },
        // This attempt created nothing, but the failed attempt before it may have.
        End::Refused if data.made != data.last => Instance::CreateFailed { data },
        // B-035: a refusal created nothing, so the platform has nothing to delete.
        End::Refused => Instance::refused(data.last),
    };
    Decision::stay(next, Reply::Nothing)
}

fn updated(
    mut data: InstanceData,
    change: &Change,
    dashboard_url: Option<String>,
    given_up: bool,
    end: End<HookOutput>,
) -> Decision<Instance> {
    match end {
        End::Succeeded(made) => {
            take_over(&mut data, made);
            // B-037: an update whose failure was reported must not be applied.
            if !given_up {
                data.spec = Arc::new(data.spec.changed_by(change));
                data.dashboard_url = dashboard_url.or(data.dashboard_url);
            }
        }
        End::Failed | End::Refused => {}
    }
    Decision::stay(Instance::Live { data }, Reply::Nothing)
}

/// A late result is state for the delete and never makes the instance live.
fn create_halted(
    mut data: InstanceData,
    was_live: bool,
    end: End<HookOutput>,
) -> Decision<Instance> {
    match end {
        End::Succeeded(made) => take_over(&mut data, made),
        End::Failed | End::Refused => {}
    }
    let effects = vec![Effect::Wake(data.last)];
    let next = Instance::Deleting {
        data,
        pending_create: None,
        was_live,
    };
    Decision {
        next,
        effects,
        reply: Reply::Nothing,
    }
}

fn deleted(data: InstanceData, was_live: bool, end: &End<HookOutput>) -> Decision<Instance> {
    let next = match (end, was_live) {
        (End::Succeeded(_), _) => Instance::gone(data.last),
        (End::Failed | End::Refused, true) => Instance::Live { data },
        (End::Failed | End::Refused, false) => Instance::CreateFailed { data },
    };
    Decision::stay(next, Reply::Nothing)
}

fn take_over(data: &mut InstanceData, made: HookOutput) {
    data.state = made.state.or(data.state.take());
    data.metadata = made.metadata.or(data.metadata.take());
}

pub(super) fn on_overdue(
    at: Instance,
    late: OperationId,
    cleanup: OperationId,
) -> Decision<Instance> {
    match at {
        // Its caller gets an error, so the clean-up needs no reply.
        Instance::Creating { data } if data.last == late => Decision {
            reply: Reply::Nothing,
            ..halt(data, cleanup, ResponseMode::Background)
        },
        Instance::Updating {
            data,
            change,
            dashboard_url,
            given_up: false,
        } if data.last == late => Decision {
            next: Instance::Updating {
                data,
                change,
                dashboard_url,
                given_up: true,
            },
            effects: vec![Effect::Cancel(late)],
            reply: Reply::Nothing,
        },
        // A delete continues; a repeated request joins it.
        Instance::Absent
        | Instance::Creating { .. }
        | Instance::CreateFailed { .. }
        | Instance::Live { .. }
        | Instance::Updating { .. }
        | Instance::Deleting { .. }
        | Instance::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}
