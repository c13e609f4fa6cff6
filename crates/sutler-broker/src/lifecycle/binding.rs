//! The life of one service binding.
//!
//! Like `instance.rs`, with two differences: a binding cannot be updated, and what its instance is
//! doing matters. The table of all states and events is `tests/transitions/binding.txt`.

mod admin_commands;

use super::admin_command::AdminCommand;
use super::{AsyncRequest, AuthorState, Decision, Effect, End, Reply, ResponseMode, Verb, started};
use crate::refusal::{Refusal, Resource};
use serde::{Deserialize, Serialize};
use sutler_journal::OperationId;
use sutler_osb::{BindResource, BindResponse, BindingId, Context, Parameters, PlanId, ServiceId};

/// What the platform asked a binding to be.
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
    /// The application, wherever it was named.
    #[serde(default)]
    pub app_guid: Option<String>,
    /// Where in the platform it lives.
    #[serde(default)]
    pub context: Option<Context>,
    /// The binding this one succeeds.
    #[serde(default)]
    pub predecessor: Option<BindingId>,
}

impl BindingSpec {
    /// Whether a PUT asks for what is there (B-183, B-186).
    pub fn same_request(&self, wanted: &Self) -> bool {
        self.service_id == wanted.service_id
            && self.plan_id == wanted.plan_id
            && self.parameters == wanted.parameters
            && self.bind_resource == wanted.bind_resource
            && self.app_guid == wanted.app_guid
            && self.predecessor == wanted.predecessor
    }
}

/// A binding and all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BindingData {
    pub spec: BindingSpec,
    /// The author's own state.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::state_there"
    )]
    pub state: Option<AuthorState>,
    /// What the platform is given, once there.
    #[serde(default)]
    pub given: Option<BindResponse>,
    /// The operation that made it (until one has, the first that tried), and the last one (seed
    /// 001, second option).
    pub made: OperationId,
    pub last: OperationId,
}

/// Where a binding stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Binding {
    /// Never seen, or forgotten.
    #[default]
    Absent,
    /// A bind runs.
    Creating {
        #[serde(rename = "bond")]
        data: BindingData,
    },
    /// A bind failed; something may be left behind.
    CreateFailed {
        #[serde(rename = "bond")]
        data: BindingData,
    },
    /// It is there.
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
    /// It was there.
    /// `never_made`: its creation was refused, so a poll must not say that it was deleted.
    Gone {
        last: OperationId,
        #[serde(default)]
        never_made: bool,
    },
}

/// What the instance is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// There is none.
    Missing,
    /// It is there and at rest.
    Live,
    /// An operation holds it alone.
    Busy(&'static str),
}

/// What happened, or what was asked.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// PUT.
    Bind(Box<Bind>),
    /// DELETE.
    Unbind(Unbind),
    /// The author saved state in the middle of an operation.
    Saved {
        operation: OperationId,
        state: AuthorState,
    },
    /// A run ended.
    Ended {
        operation: OperationId,
        end: End<HookOutput>,
    },
    /// The caller waited as long as it may. `cleanup`: the id for an unbind.
    Overdue {
        operation: OperationId,
        cleanup: OperationId,
    },
    /// An operator orders something. `new`: the id of whatever it starts or leaves behind.
    Command {
        command: AdminCommand,
        parent: Parent,
        new: OperationId,
    },
}

/// A PUT and the facts it is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub wanted: BindingSpec,
    /// Whether it asks for what is there; the author may have the last word.
    pub same: bool,
    pub parent: Parent,
    /// What the plan says against a *new* binding like this.
    pub against: Option<Refusal>,
    pub async_request: AsyncRequest,
}

/// A DELETE and the facts it is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbind {
    /// The query named service and plan.
    pub ids_given: bool,
    pub parent: Parent,
    /// The instance itself is being deleted and takes its bindings along.
    pub cascade: bool,
    /// An unknown binding counts as deleted.
    pub force: bool,
    pub async_request: AsyncRequest,
}

/// What came of a run.
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

/// `failed`: what an earlier attempt may have left behind.
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
    // D-06: what can only be asynchronous says so even for an unknown id.
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

/// B-245: the creation is halted; the deletion begins when it has ended.
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
        // It made nothing, but the failed attempt before it may have.
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
        // Its caller gets an error, so nobody is told of the clean-up.
        Binding::Creating { data } if data.last == late => Decision {
            reply: Reply::Nothing,
            ..halt(data, cleanup, ResponseMode::Background)
        },
        // An unbind goes on; a repeat joins it.
        Binding::Absent
        | Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Live { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => Decision::stay(at, Reply::Nothing),
    }
}

/// B-232: what a fetch may show now.
pub(crate) fn fetch(at: &Binding) -> Result<&BindingData, Refusal> {
    match at {
        Binding::Live { data } => Ok(data),
        Binding::Absent
        | Binding::Creating { .. }
        | Binding::CreateFailed { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => Err(Refusal::NotFound(Resource::Binding)),
    }
}

impl Binding {
    /// It was deleted, by this operation.
    pub(crate) fn gone(last: OperationId) -> Self {
        let never_made = false;
        Self::Gone { last, never_made }
    }

    /// Its creation was refused, so it never was.
    pub(crate) fn refused(last: OperationId) -> Self {
        let never_made = true;
        Self::Gone { last, never_made }
    }

    /// What is known of it, where anything is.
    pub(crate) fn data(&self) -> Option<&BindingData> {
        match self {
            Self::Absent | Self::Gone { .. } => None,
            Self::Creating { data }
            | Self::CreateFailed { data }
            | Self::Live { data }
            | Self::Deleting { data, .. } => Some(data),
        }
    }

    /// The last operation of the lane.
    pub(crate) fn last(&self) -> Option<OperationId> {
        match self {
            Self::Gone { last, .. } => Some(*last),
            other => other.data().map(|data| data.last),
        }
    }

    /// The operations the document points to: sweeping leaves them.
    pub(crate) fn pins(&self) -> Vec<OperationId> {
        let mut pins: Vec<OperationId> = match self {
            Self::Deleting { pending_create, .. } => pending_create.iter().copied().collect(),
            Self::Absent
            | Self::Gone { .. }
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. } => Vec::new(),
        };
        pins.extend(self.data().map(|data| data.last));
        pins
    }

    /// Whether an operation of this lane runs, so that one that wants the instance alone must wait.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Creating { .. } | Self::Deleting { .. } => true,
            Self::Absent | Self::CreateFailed { .. } | Self::Live { .. } | Self::Gone { .. } => {
                false
            }
        }
    }

    /// Its word, for index terms and people.
    pub(crate) fn lifecycle(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { .. } => "creating",
            Self::CreateFailed { .. } => "create_failed",
            Self::Live { .. } => "live",
            Self::Deleting { .. } => "deleting",
            Self::Gone { .. } => "gone",
        }
    }
}
