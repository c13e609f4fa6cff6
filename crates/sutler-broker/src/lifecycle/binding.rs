//! State machine of one service binding.
//!
//! Like `instance.rs`, with two differences: a binding cannot be updated, and decisions depend on the state
//! of its instance. The table of all states and events is `tests/transitions/binding.txt`.

mod admin_commands;
mod views;

pub(crate) use views::fetch;

use super::admin_command::AdminCommand;
use super::{AsyncRequest, AuthorState, Decision, Effect, End, Reply, ResponseMode, Verb, started};
use crate::refusal::{Refusal, Resource};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sutler_journal::OperationId;
use sutler_osb::{BindResource, BindResponse, BindingId, Context, Parameters, PlanId, ServiceId};

/// A binding as the platform requested it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BindingSpec {
    /// The offering.
    pub service_id: ServiceId,
    /// The plan.
    pub plan_id: PlanId,
    /// The user's parameters; a rotated binding has its predecessor's.
    #[serde(default)]
    pub parameters: Parameters,
    /// The application or route it is for.
    #[serde(default)]
    pub bind_resource: Option<BindResource>,
    /// The application, from `bind_resource` or from the deprecated field.
    #[serde(default)]
    pub app_guid: Option<String>,
    /// Platform context.
    #[serde(default)]
    pub context: Option<Context>,
    /// The binding that this one replaces (rotation).
    #[serde(default)]
    pub predecessor: Option<BindingId>,
}

impl BindingSpec {
    /// Whether a PUT is identical to this binding (B-183, B-186).
    pub fn same_request(&self, wanted: &Self) -> bool {
        self.service_id == wanted.service_id
            && self.plan_id == wanted.plan_id
            && self.parameters == wanted.parameters
            && self.bind_resource == wanted.bind_resource
            && self.app_guid == wanted.app_guid
            && self.predecessor == wanted.predecessor
    }
}

/// Stored data of a binding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BindingData {
    /// Shared by the request, the document and the run.
    pub spec: Arc<BindingSpec>,
    /// The author's own state.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::state_there"
    )]
    pub state: Option<AuthorState>,
    /// Response of the bind: credentials and endpoints. `None` until a bind succeeds.
    #[serde(default)]
    pub given: Option<BindResponse>,
    /// The operation that created it (until one succeeds, the first attempt), and the last operation (seed
    /// 001, second option).
    pub made: OperationId,
    pub last: OperationId,
}

/// State of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Binding {
    /// No record exists.
    #[default]
    Absent,
    /// A bind runs.
    Creating {
        #[serde(rename = "bond")]
        data: BindingData,
    },
    /// A bind failed; it may have left resources behind.
    CreateFailed {
        #[serde(rename = "bond")]
        data: BindingData,
    },
    /// The binding exists and no operation runs.
    Live {
        #[serde(rename = "bond")]
        data: BindingData,
    },
    /// An unbind is accepted. `pending_create`: the bind that must end first.
    Deleting {
        #[serde(rename = "bond")]
        data: BindingData,
        #[serde(rename = "over")]
        pending_create: Option<OperationId>,
        was_live: bool,
    },
    /// Deleted.
    /// `never_made`: its creation was refused, so a poll must not report a deletion.
    Gone {
        last: OperationId,
        #[serde(default)]
        never_made: bool,
    },
}

/// State of the binding's instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// The instance does not exist.
    Missing,
    /// The instance exists and no operation runs.
    Live,
    /// An operation has exclusive use of the instance.
    Busy(&'static str),
}

/// A request, a command or a result of a run.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// PUT.
    Bind(Box<Bind>),
    /// DELETE.
    Unbind(Unbind),
    /// The author saved state during an operation.
    Saved {
        operation: OperationId,
        state: AuthorState,
    },
    /// A run ended.
    Ended {
        operation: OperationId,
        end: End<HookOutput>,
    },
    /// The time limit of a waiting request has passed. `cleanup`: id for an unbind.
    Overdue {
        operation: OperationId,
        cleanup: OperationId,
    },
    /// A command of an operator. `new`: id of the operation or tombstone it creates.
    Command {
        command: AdminCommand,
        parent: Parent,
        new: OperationId,
    },
}

/// A PUT and the facts that its decision needs.
#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub wanted: Arc<BindingSpec>,
    /// Whether it is identical to the existing resource; the author can override the comparison.
    pub same: bool,
    pub parent: Parent,
    /// Refusal of the plan for a *new* binding like this.
    pub against: Option<Refusal>,
    pub async_request: AsyncRequest,
}

/// A DELETE and the facts that its decision needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbind {
    /// The query named service and plan.
    pub ids_given: bool,
    pub parent: Parent,
    /// The unbind is part of the deletion of the instance.
    pub cascade: bool,
    /// An unknown binding counts as deleted.
    pub force: bool,
    pub async_request: AsyncRequest,
}

/// Output of a successful hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HookOutput {
    pub state: Option<AuthorState>,
    pub given: Box<BindResponse>,
}

const BEING_DELETED: &str =
    "The service binding is being deleted; wait for that to end, then repeat.";

/// Decides what one event means for one binding.
pub(crate) fn decide(at: Binding, event: Event) -> Result<Decision<Binding>, Refusal> {
    match event {
        Event::Bind(asked) => on_bind(at, *asked),
        Event::Unbind(asked) => on_unbind(at, asked),
        Event::Saved { operation, state } => Ok(on_saved(at, operation, state)),
        Event::Ended { operation, end } => Ok(on_ended(at, operation, end)),
        Event::Overdue { operation, cleanup } => Ok(on_overdue(at, operation, cleanup)),
        Event::Command {
            command,
            parent,
            new,
        } => admin_commands::on_command(at, command, parent, new),
    }
}

fn on_bind(at: Binding, asked: Bind) -> Result<Decision<Binding>, Refusal> {
    // D-12: no instance, no binding.
    if asked.parent == Parent::Missing {
        return Err(Refusal::NotFound(Resource::Instance));
    }
    match &at {
        Binding::Absent | Binding::Gone { .. } => create(None, asked),
        Binding::CreateFailed { data } => create(Some(data), asked),
        Binding::Creating { data } if asked.same => {
            let reply = asked.async_request.join(data.last)?;
            Ok(Decision::stay(at, reply))
        }
        Binding::Live { .. } if asked.same => Ok(Decision::stay(at, Reply::AlreadyDone)),
        Binding::Creating { .. } | Binding::Live { .. } => {
            Err(Refusal::Conflict(Resource::Binding))
        }
        Binding::Deleting { .. } => Err(Refusal::Busy(BEING_DELETED)),
    }
}

/// `failed`: data of an earlier attempt, which may have left resources behind.
fn create(failed: Option<&BindingData>, asked: Bind) -> Result<Decision<Binding>, Refusal> {
    if let Some(refusal) = asked.against {
        return Err(refusal);
    }
    let mode = asked.async_request.response_mode()?;
    if let Parent::Busy(why) = asked.parent {
        return Err(Refusal::Busy(why));
    }
    let operation = asked.async_request.operation;
    let data = BindingData {
        spec: asked.wanted,
        state: failed.and_then(|data| data.state.clone()),
        given: None,
        made: failed.map_or(operation, |data| data.made),
        last: operation,
    };
    Ok(started(
        Binding::Creating { data },
        Verb::Bind,
        operation,
        mode,
    ))
}

fn on_unbind(at: Binding, asked: Unbind) -> Result<Decision<Binding>, Refusal> {
    let Unbind {
        ids_given,
        parent,
        cascade,
        force,
        async_request,
    } = asked;
    // D-06: `AsyncRequired` precedes the lookup, so it is returned for an unknown id too.
    let mode = async_request.response_mode()?;
    if matches!(at, Binding::Absent | Binding::Gone { .. }) {
        return if force {
            Ok(Decision::stay(at, Reply::AlreadyDone))
        } else {
            Err(Refusal::Gone(Resource::Binding))
        };
    }
    if !ids_given {
        let sentence = "The query must name service_id and plan_id of the service binding.";
        return Err(Refusal::Invalid(sentence.to_owned()));
    }
    if let Binding::Deleting { data, .. } = &at {
        let reply = async_request.join(data.last)?;
        return Ok(Decision::stay(at, reply));
    }
    if let (Parent::Busy(why), false) = (parent, cascade) {
        return Err(Refusal::Busy(why));
    }
    match at {
        Binding::Creating { data } => Ok(halt(data, async_request.operation, mode)),
        Binding::CreateFailed { data } => Ok(delete(data, async_request.operation, mode, false)),
        Binding::Live { data } => Ok(delete(data, async_request.operation, mode, true)),
        // Answered above.
        Binding::Absent | Binding::Gone { .. } => Err(Refusal::Gone(Resource::Binding)),
        Binding::Deleting { .. } => Err(Refusal::Busy(BEING_DELETED)),
    }
}

fn delete(
    mut data: BindingData,
    operation: OperationId,
    mode: ResponseMode,
    live: bool,
) -> Decision<Binding> {
    data.last = operation;
    let next = Binding::Deleting {
        data,
        pending_create: None,
        was_live: live,
    };
    started(next, Verb::Unbind, operation, mode)
}

/// B-245: cancels the creation; the deletion starts when that has ended.
fn halt(mut data: BindingData, operation: OperationId, mode: ResponseMode) -> Decision<Binding> {
    let creating = data.last;
    data.last = operation;
    Decision {
        next: Binding::Deleting {
            data,
            pending_create: Some(creating),
            was_live: false,
        },
        effects: vec![
            Effect::Cancel(creating),
            Effect::StartWaiting(Verb::Unbind, operation),
        ],
        reply: Reply::Started(operation, mode),
    }
}

fn on_saved(mut at: Binding, operation: OperationId, saved: AuthorState) -> Decision<Binding> {
    match &mut at {
        Binding::Creating { data } if data.last == operation => data.state = Some(saved),
        Binding::Deleting {
            data,
            pending_create,
            ..
        } if pending_create.unwrap_or(data.last) == operation => {
            data.state = Some(saved);
        }
        Binding::Creating { .. }
        | Binding::Deleting { .. }
        | Binding::Absent
        | Binding::CreateFailed { .. }
        | Binding::Live { .. }
        | Binding::Gone { .. } => {}
    }
    Decision::stay(at, Reply::Nothing)
}

fn on_ended(at: Binding, ended: OperationId, end: End<HookOutput>) -> Decision<Binding> {
    match at {
        Binding::Creating { data } if data.last == ended => created(data, end),
        Binding::Deleting {
            data,
            pending_create: Some(creating),
            was_live,
        } if creating == ended => create_halted(data, was_live, end),
        Binding::Deleting {
            data,
            pending_create: None,
            was_live,
        } if data.last == ended => deleted(data, was_live, &end),
        // A late result of another operation changes nothing.
        Binding::Absent
        | Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Live { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}

fn created(mut data: BindingData, end: End<HookOutput>) -> Decision<Binding> {
    let next = match end {
        End::Succeeded(made) => {
            take_over(&mut data, made);
            data.made = data.last;
            Binding::Live { data }
        }
        End::Failed => Binding::CreateFailed { data },
        // This attempt created nothing, but the failed attempt before it may have.
        End::Refused if data.made != data.last => Binding::CreateFailed { data },
        End::Refused => Binding::refused(data.last),
    };
    Decision::stay(next, Reply::Nothing)
}

fn create_halted(mut data: BindingData, was_live: bool, end: End<HookOutput>) -> Decision<Binding> {
    match end {
        End::Succeeded(made) => take_over(&mut data, made),
        End::Failed | End::Refused => {}
    }
    let effects = vec![Effect::Wake(data.last)];
    let next = Binding::Deleting {
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

fn deleted(data: BindingData, was_live: bool, end: &End<HookOutput>) -> Decision<Binding> {
    let next = match (end, was_live) {
        (End::Succeeded(_), _) => Binding::gone(data.last),
        (End::Failed | End::Refused, true) => Binding::Live { data },
        (End::Failed | End::Refused, false) => Binding::CreateFailed { data },
    };
    Decision::stay(next, Reply::Nothing)
}

fn take_over(data: &mut BindingData, made: HookOutput) {
    data.state = made.state.or(data.state.take());
    data.given = Some(*made.given);
}

fn on_overdue(at: Binding, late: OperationId, cleanup: OperationId) -> Decision<Binding> {
    match at {
        // Its caller gets an error, so the clean-up needs no reply.
        Binding::Creating { data } if data.last == late => Decision {
            reply: Reply::Nothing,
            ..halt(data, cleanup, ResponseMode::Background)
        },
        // An unbind continues; a repeated request joins it.
        Binding::Absent
        | Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Live { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}
