//! State machine of one service instance.
//!
//! One function per event, every state written out. Results of checks against the catalog are part of the
//! event; bodies were checked before (`http/`). The table of all states and events is
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
use std::sync::Arc;
use sutler_journal::OperationId;
use sutler_osb::{Context, InstanceMetadata, Parameters, PlanId, ServiceId};

/// An instance as the platform requested it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// The offering.
    pub service_id: ServiceId,
    /// The plan.
    pub plan_id: PlanId,
    /// Digest of the plan copy that the instance was created with; independent of later catalogs.
    pub plan: String,
    /// The user's parameters; those of updates are merged in, key by key.
    #[serde(default)]
    pub parameters: Parameters,
    /// Deprecated by the specification, still compared.
    pub organization_guid: String,
    /// Deprecated by the specification, still compared.
    pub space_guid: String,
    /// Platform context: the last one sent.
    #[serde(default)]
    pub context: Option<Context>,
    /// Current maintenance version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_version: Option<String>,
}

impl InstanceSpec {
    /// Whether a PUT is identical to this instance (D-04). The context may differ, since updates change it.
    pub fn same_request(&self, wanted: &Self) -> bool {
        self.service_id == wanted.service_id
            && self.plan_id == wanted.plan_id
            && self.parameters == wanted.parameters
            && self.organization_guid == wanted.organization_guid
            && self.space_guid == wanted.space_guid
    }

    /// Whether the instance was accepted before its plan was offered and has no plan copy yet.
    pub(crate) fn waits_for_plan(&self) -> bool {
        self.plan.is_empty()
    }

    /// The spec after a change.
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

/// Changes requested by a PATCH. Attributes it does not name stay (B-161).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The new plan and the digest of its copy. The plan id is unchanged if only the version changes.
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

    /// Whether the change upgrades the instance to another maintenance version.
    pub fn upgrades(&self, there: &InstanceSpec) -> bool {
        let version = &self.maintenance_version;
        version.is_some() && *version != there.maintenance_version
    }

    /// Whether another PATCH of the same instance is identical. The digest of the plan copy is not compared:
    /// the catalog may have been replaced since.
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

/// Stored data of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstanceData {
    /// Shared by the request, the document and the run: a state is copied without its parameters.
    pub spec: Arc<InstanceSpec>,
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
    /// The operation that created it (until one succeeds, the first attempt), and the last operation.
    pub made: OperationId,
    pub last: OperationId,
}

/// State of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Instance {
    /// No record exists.
    #[default]
    Absent,
    /// A provision runs.
    Creating {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// A provision failed; it may have left resources behind.
    CreateFailed {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// The instance exists and no operation runs.
    Live {
        #[serde(rename = "thing")]
        data: InstanceData,
    },
    /// An update runs. `given_up`: its failure was already reported, so its success is not applied.
    Updating {
        #[serde(rename = "thing")]
        data: InstanceData,
        change: Arc<Change>,
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
    /// Deleted; kept for a while to answer polls and repeated deletes.
    /// `never_made`: its creation was refused, so a poll must not report a deletion. `purging`: an operator purged
    /// it, and bindings of it may be left; the id is free again when they are purged too.
    Gone {
        last: OperationId,
        #[serde(default)]
        never_made: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        purging: bool,
    },
}

/// A request, a command or a result of a run.
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
    /// The time limit of a waiting request has passed. `cleanup`: id for a deprovision.
    Overdue {
        operation: OperationId,
        cleanup: OperationId,
    },
    /// A command of an operator. `new`: id of the operation or tombstone it creates.
    Command {
        command: AdminCommand,
        new: OperationId,
    },
}

/// A PUT and the facts that its decision needs.
#[derive(Clone, Debug)]
pub(crate) struct Provision {
    pub wanted: Arc<InstanceSpec>,
    /// Whether it is identical to the existing resource; the author can override the comparison.
    pub same: bool,
    /// Refusal of the plan or of the service for a *new* instance like this.
    pub against: Option<Refusal>,
    pub maintenance_conflict: bool,
    pub dashboard_url: Option<String>,
    pub async_request: AsyncRequest,
}

/// A PATCH and the facts that its decision needs.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub service_id: ServiceId,
    pub change: Arc<Change>,
    /// Refusal of the plan or of the service for a *new* update like this.
    pub against: Option<Refusal>,
    pub facts: UpdateFacts,
    /// Dashboard URL after the update, if it changes.
    pub dashboard_url: Option<String>,
    pub async_request: AsyncRequest,
}

/// Updates that the plan and the service of the instance allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateFacts {
    /// The service implements updates.
    pub offered: bool,
    /// The current plan can be changed.
    pub plan_updateable: bool,
    /// The context alone may change.
    pub context_updates: bool,
    /// The requested maintenance version differs from the catalog's.
    pub maintenance_conflict: bool,
}

/// Output of a successful hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HookOutput {
    /// New state of the author; `None` keeps the old one.
    pub state: Option<AuthorState>,
    pub metadata: Option<InstanceMetadata>,
}

const BEING_CHANGED: &str =
    "The service instance is being updated; wait for that to end, then repeat.";
const BEING_DELETED: &str =
    "The service instance is being deleted; wait for that to end, then repeat.";
const BEING_PURGED: &str = "An operator purges the service instance of this id and its service bindings; wait for \
     that to end, then repeat.";
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
        // B-121, B-122, B-132; after a failed create a new attempt starts with the state that the old one saved.
        Instance::Gone { purging: true, .. } => Err(Refusal::Busy(BEING_PURGED)),
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

/// `failed`: data of an earlier attempt, which may have left resources behind.
fn create(failed: Option<&InstanceData>, asked: Provision) -> Result<Decision<Instance>, Refusal> {
    if let Some(refusal) = asked.against {
        return Err(refusal);
    }
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
    // D-06: "wait and repeat" is the last refusal, after all that waiting cannot resolve.
    of_service(&data, &asked.service_id)?;
    if let Some(refusal) = asked.against {
        return Err(refusal);
    }
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
        against,
        facts,
        dashboard_url,
        async_request,
    } = asked;
    of_service(&data, &service_id)?;
    let changes_nothing = data.spec.changed_by(&change) == *data.spec;
    if let Some(refusal) = against.filter(|_| !changes_nothing) {
        return Err(refusal);
    }
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
    if changes_nothing {
        // D-18: a platform that cannot wait learns it from every PATCH of such a plan.
        let reply = async_request.response_mode().map(|_| Reply::AlreadyDone)?;
        return Ok(Decision::stay(Instance::Live { data }, reply));
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
    // D-06: `AsyncRequired` precedes the lookup, so it is returned for an unknown id too.
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

/// B-255: cancels the creation; the deletion starts when that has ended.
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
