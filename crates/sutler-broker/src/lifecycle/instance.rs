//! The life of one service instance.
//!
//! One function per event, every state written out. Checks that need the catalog arrive as facts in
//! the event; checks of bodies were made before (`http/`). The table of all states and events is
//! `tests/transitions/instance.txt`.

mod admin_commands;
mod endings;
mod views;

pub(crate) use views::{fetch, parent};

use super::admin_command::AdminCommand;
use super::{AsyncRequest, AuthorState, Decision, Effect, End, Reply, ResponseMode, Verb, started};
use crate::refusal::{Refusal, Resource};
use endings::{on_ended, on_overdue, on_saved};
use serde::{Deserialize, Serialize};
use sutler_journal::OperationId;
use sutler_osb::{Context, InstanceMetadata, Parameters, PlanId, ServiceId};

/// What the platform asked an instance to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// The offering.
    pub service_id: ServiceId,
    /// The plan.
    pub plan_id: PlanId,
    /// Names the copy of the plan this instance was made with, whatever becomes of the catalog.
    pub plan: String,
    /// The user's parameters; those of updates are merged in, key by key.
    #[serde(default)]
    pub parameters: Parameters,
    /// Deprecated by the specification, still compared.
    pub organization_guid: String,
    /// Deprecated by the specification, still compared.
    pub space_guid: String,
    /// Where in the platform it lives; the last one sent.
    #[serde(default)]
    pub context: Option<Context>,
    /// The maintenance version it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_version: Option<String>,
}

impl InstanceSpec {
    /// Whether a PUT asks for what is there (D-04). The context may differ: an update changes it.
    pub fn same_request(&self, wanted: &Self) -> bool {
        self.service_id == wanted.service_id
            && self.plan_id == wanted.plan_id
            && self.parameters == wanted.parameters
            && self.organization_guid == wanted.organization_guid
            && self.space_guid == wanted.space_guid
    }

    /// Whether it was accepted before its plan was offered, and has no copy of it yet.
    pub(crate) fn waits_for_plan(&self) -> bool {
        self.plan.is_empty()
    }

    /// What it is after a change.
    pub(crate) fn changed_by(&self, change: &Change) -> Self {
        let mut next = self.clone();
        if let Some((plan_id, plan)) = &change.plan {
            next.plan_id = plan_id.clone();
            next.plan = plan.clone();
            next.maintenance_version = None;
        }
        if let Some(parameters) = &change.parameters {
            for (name, value) in &parameters.0 {
                next.parameters.0.insert(name.clone(), value.clone());
            }
        }
        if let Some(context) = &change.context {
            next.context = Some(context.clone());
        }
        if let Some(version) = &change.maintenance_version {
            next.maintenance_version = Some(version.clone());
        }
        next
    }
}

/// What a PATCH asks to be different. What it does not name stays (B-161).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The new plan, and the name of its copy; the same plan, if the instance moves on to another version.
    #[serde(default)]
    pub plan: Option<(PlanId, String)>,
    /// The parameters the user named.
    #[serde(default)]
    pub parameters: Option<Parameters>,
    /// The new context.
    #[serde(default)]
    pub context: Option<Context>,
    /// The maintenance version to move to.
    #[serde(default)]
    pub maintenance_version: Option<String>,
}

impl Change {
    /// Whether nothing but the context changes.
    pub fn is_context_only(&self) -> bool {
        self.plan.is_none() && self.parameters.is_none() && self.maintenance_version.is_none()
    }

    /// Whether it moves an instance on to another maintenance version.
    pub fn upgrades(&self, there: &InstanceSpec) -> bool {
        let version = &self.maintenance_version;
        version.is_some() && *version != there.maintenance_version
    }

    /// Whether another PATCH of the same instance asks for the same. Which copy of a plan it would be given
    /// does not count: the catalog may have moved on since.
    pub(crate) fn same_request(&self, other: &Self, there: &InstanceSpec) -> bool {
        let plan_id = |it: &Self| {
            it.plan
                .as_ref()
                .map_or_else(|| there.plan_id.clone(), |it| it.0.clone())
        };
        plan_id(self) == plan_id(other)
            && self.parameters == other.parameters
            && self.context == other.context
            && self.maintenance_version == other.maintenance_version
    }
}

/// An instance and all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstanceData {
    pub spec: InstanceSpec,
    /// The author's own state.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::state_there"
    )]
    pub state: Option<AuthorState>,
    #[serde(default)]
    pub dashboard_url: Option<String>,
    #[serde(default)]
    pub metadata: Option<InstanceMetadata>,
    /// The operation that made it (until one has, the first that tried), and the last one.
    pub made: OperationId,
    pub last: OperationId,
}

/// Where an instance stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Instance {
    /// Never seen, or forgotten.
    #[default]
    Absent,
    /// A provision runs.
    Creating {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// A provision failed; something may be left behind.
    CreateFailed {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// It is there.
    Live {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// An update runs. `given_up`: the caller was told it failed, so its success is not applied.
    Updating {
        #[serde(rename = "thing")]
        data: InstanceData,
        change: Change,
        dashboard_url: Option<String>,
        given_up: bool,
    },
    /// A deprovision is accepted. `pending_create`: the provision that must end first.
    Deleting {
        #[serde(rename = "thing")]
        data: InstanceData,
        #[serde(rename = "over")]
        pending_create: Option<OperationId>,
        was_live: bool,
    },
    /// It was there; kept for a while so that polls and repeats find out.
    /// `never_made`: its creation was refused, so a poll must not say that it was deleted.
    Gone {
        last: OperationId,
        #[serde(default)]
        never_made: bool,
    },
}

/// What happened, or what was asked.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// PUT.
    Provision(Box<Provision>),
    /// PATCH.
    Update(Box<Update>),
    /// DELETE. `force`: an unknown instance counts as deleted.
    Deprovision {
        async_request: AsyncRequest,
        force: bool,
    },
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
    /// The caller waited as long as it may for this operation. `cleanup`: the id for a deprovision.
    Overdue {
        operation: OperationId,
        cleanup: OperationId,
    },
    /// An operator orders something. `new`: the id of whatever it starts or leaves behind.
    Command {
        command: AdminCommand,
        new: OperationId,
    },
}

/// A PUT and the facts it is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Provision {
    pub wanted: InstanceSpec,
    /// Whether it asks for what is there; the author may have the last word.
    pub same: bool,
    pub maintenance_conflict: bool,
    pub dashboard_url: Option<String>,
    pub async_request: AsyncRequest,
}

/// A PATCH and the facts it is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub service_id: ServiceId,
    pub change: Change,
    pub facts: UpdateFacts,
    /// The dashboard after the update, where it changes.
    pub dashboard_url: Option<String>,
    pub async_request: AsyncRequest,
}

/// What the instance's plan and service say about updates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateFacts {
    /// The service offers updates at all.
    pub offered: bool,
    /// The present plan may be left for another.
    pub plan_updateable: bool,
    /// The context alone may change.
    pub context_updates: bool,
    /// The maintenance version asked for is not the catalog's.
    pub maintenance_conflict: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HookOutput {
    /// The author's state from now on; `None` leaves it.
    pub state: Option<AuthorState>,
    pub metadata: Option<InstanceMetadata>,
}

const BEING_CHANGED: &str =
    "The service instance is being updated; wait for that to end, then repeat.";
const BEING_DELETED: &str =
    "The service instance is being deleted; wait for that to end, then repeat.";
const BEING_CREATED: &str =
    "The service instance is being created; wait for that to end, then repeat.";

/// Decides what one event means for one instance.
pub(crate) fn decide(at: Instance, event: Event) -> Result<Decision<Instance>, Refusal> {
    match event {
        Event::Provision(asked) => on_provision(at, *asked),
        Event::Update(asked) => on_update(at, *asked),
        Event::Deprovision {
            async_request,
            force,
        } => on_deprovision(at, async_request, force),
        Event::Saved { operation, state } => Ok(on_saved(at, operation, state)),
        Event::Ended { operation, end } => Ok(on_ended(at, operation, end)),
        Event::Overdue { operation, cleanup } => Ok(on_overdue(at, operation, cleanup)),
        Event::Command { command, new } => admin_commands::on_command(at, command, new),
    }
}

fn on_provision(at: Instance, asked: Provision) -> Result<Decision<Instance>, Refusal> {
    match &at {
        // B-121, B-122, B-132; over a failed create a new attempt begins, with what the old one saved.
        Instance::Absent | Instance::Gone { .. } => create(None, asked),
        Instance::CreateFailed { data } => create(Some(data), asked),
        Instance::Creating { data } if asked.same => {
            let reply = asked.async_request.join(data.last)?;
            Ok(Decision::stay(at, reply))
        }
        Instance::Live { .. } if asked.same => Ok(Decision::stay(at, Reply::AlreadyDone)),
        Instance::Creating { .. } | Instance::Live { .. } => {
            Err(Refusal::Conflict(Resource::Instance))
        }
        Instance::Updating { .. } if asked.same => Err(Refusal::Busy(BEING_CHANGED)),
        Instance::Updating { .. } => Err(Refusal::Conflict(Resource::Instance)),
        Instance::Deleting { .. } => Err(Refusal::Busy(BEING_DELETED)),
    }
}

/// `failed`: what an earlier attempt may have left behind.
fn create(failed: Option<&InstanceData>, asked: Provision) -> Result<Decision<Instance>, Refusal> {
    if asked.maintenance_conflict {
        return Err(Refusal::MaintenanceConflict);
    }
    let mode = asked.async_request.response_mode()?;
    let operation = asked.async_request.operation;
    let data = InstanceData {
        spec: asked.wanted,
        state: failed.and_then(|data| data.state.clone()),
        dashboard_url: asked.dashboard_url,
        metadata: None,
        made: failed.map_or(operation, |data| data.made),
        last: operation,
    };
    Ok(started(
        Instance::Creating { data },
        Verb::Provision,
        operation,
        mode,
    ))
}

fn on_update(at: Instance, asked: Update) -> Result<Decision<Instance>, Refusal> {
    let (data, why) = match at {
        Instance::Absent | Instance::Gone { .. } | Instance::CreateFailed { .. } => {
            return Err(Refusal::NotFound(Resource::Instance));
        }
        Instance::Live { data } => return update_live(data, asked),
        Instance::Updating {
            ref data,
            ref change,
            given_up: false,
            ..
        } if change.same_request(&asked.change, &data.spec)
            && data.spec.service_id == asked.service_id =>
        {
            let reply = asked.async_request.join(data.last)?;
            return Ok(Decision::stay(at, reply));
        }
        Instance::Updating { data, .. } => (data, BEING_CHANGED),
        Instance::Creating { data } => (data, BEING_CREATED),
        Instance::Deleting { data, .. } => (data, BEING_DELETED),
    };
    // D-06: "wait and repeat" comes last, after all that no waiting mends.
    of_service(&data, &asked.service_id)?;
    if asked.facts.maintenance_conflict {
        return Err(Refusal::MaintenanceConflict);
    }
    asked.async_request.response_mode()?;
    Err(Refusal::Busy(why))
}

fn of_service(data: &InstanceData, service_id: &ServiceId) -> Result<(), Refusal> {
    if *service_id == data.spec.service_id {
        return Ok(());
    }
    let sentence = "service_id is not the one this service instance was created with.";
    Err(Refusal::Invalid(sentence.to_owned()))
}

fn update_live(mut data: InstanceData, asked: Update) -> Result<Decision<Instance>, Refusal> {
    let Update {
        service_id,
        change,
        facts,
        dashboard_url,
        async_request,
    } = asked;
    of_service(&data, &service_id)?;
    let moves = change
        .plan
        .as_ref()
        .is_some_and(|(plan_id, _)| *plan_id != data.spec.plan_id);
    if moves && !facts.plan_updateable {
        return Err(unsupported(
            "The plan of this service instance cannot be changed.",
        ));
    }
    if facts.maintenance_conflict {
        return Err(Refusal::MaintenanceConflict);
    }
    let next = data.spec.changed_by(&change);
    if next == data.spec {
        return Ok(Decision::stay(Instance::Live { data }, Reply::AlreadyDone));
    }
    if change.is_context_only() && !facts.context_updates {
        return Err(unsupported(
            "This service does not accept updates of the context alone.",
        ));
    }
    if !change.is_context_only() && !facts.offered {
        return Err(unsupported("This service does not support updates."));
    }
    let mode = async_request.response_mode()?;
    data.last = async_request.operation;
    let next = Instance::Updating {
        data,
        change,
        dashboard_url,
        given_up: false,
    };
    Ok(started(next, Verb::Update, async_request.operation, mode))
}

fn unsupported(sentence: &str) -> Refusal {
    Refusal::Unsupported(sentence.to_owned())
}

fn on_deprovision(
    at: Instance,
    async_request: AsyncRequest,
    force: bool,
) -> Result<Decision<Instance>, Refusal> {
    // D-06: what can only be asynchronous says so even for an unknown id.
    let mode = async_request.response_mode()?;
    match at {
        Instance::Absent | Instance::Gone { .. } if force => {
            Ok(Decision::stay(at, Reply::AlreadyDone))
        }
        Instance::Absent | Instance::Gone { .. } => Err(Refusal::Gone(Resource::Instance)),
        Instance::Creating { data } => Ok(halt(data, async_request.operation, mode)),
        Instance::CreateFailed { data } => Ok(delete(data, async_request.operation, mode, false)),
        Instance::Live { data } => Ok(delete(data, async_request.operation, mode, true)),
        Instance::Updating { .. } => Err(Refusal::Busy(BEING_CHANGED)),
        Instance::Deleting { ref data, .. } => {
            let reply = async_request.join(data.last)?;
            Ok(Decision::stay(at, reply))
        }
    }
}

fn delete(
    mut data: InstanceData,
    operation: OperationId,
    mode: ResponseMode,
    live: bool,
) -> Decision<Instance> {
    data.last = operation;
    let next = Instance::Deleting {
        data,
        pending_create: None,
        was_live: live,
    };
    started(next, Verb::Deprovision, operation, mode)
}

/// B-255: the creation is halted; the deletion begins when it has ended.
fn halt(mut data: InstanceData, operation: OperationId, mode: ResponseMode) -> Decision<Instance> {
    let creating = data.last;
    data.last = operation;
    Decision {
        next: Instance::Deleting {
            data,
            pending_create: Some(creating),
            was_live: false,
        },
        effects: vec![
            Effect::Cancel(creating),
            Effect::StartWaiting(Verb::Deprovision, operation),
        ],
        reply: Reply::Started(operation, mode),
    }
}
