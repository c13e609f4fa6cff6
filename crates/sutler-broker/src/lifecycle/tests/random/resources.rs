//! Turns the steps of the random test into events of an instance and of a binding.

use super::{CommandKind, ModelledResource, Outcome, RequestVariant, Step};
use crate::lifecycle::admin_command::{AdminCommand, FailedOperation, FailedUpdate};
use crate::lifecycle::binding::{self, Bind, Binding, Parent, Unbind};
use crate::lifecycle::instance::{self, Change, Instance, Provision, Update, UpdateFacts};
use crate::lifecycle::tests::fixtures::{
    binding_output, binding_spec, instance_output, saved, spec, value,
};
use crate::lifecycle::{AsyncRequest, Decision, End, Verb};
use crate::refusal::Refusal;
use serde_json::json;
use sutler_journal::OperationId;

impl ModelledResource for Instance {
    type Event = instance::Event;
    const CREATE: Verb = Verb::Provision;
    const DELETE: Verb = Verb::Deprovision;

    fn request(step: &Step, async_request: AsyncRequest) -> Option<Self::Event> {
        match *step {
            Step::Create { same, odd, .. } => {
                Some(instance::Event::Provision(Box::new(Provision {
                    wanted: spec().into(),
                    same,
                    against: (odd == RequestVariant::NoIds).then_some(Refusal::RequiresApp),
                    maintenance_conflict: odd == RequestVariant::Objection,
                    dashboard_url: None,
                    async_request,
                })))
            }
            Step::Update { size, odd, .. } => Some(instance::Event::Update(Box::new(Update {
                service_id: spec().service_id,
                change: Change {
                    parameters: Some(value(json!({"size": size}))),
                    ..Change::default()
                }
                .into(),
                against: (odd == RequestVariant::Forced).then_some(Refusal::RequiresApp),
                facts: UpdateFacts {
                    offered: odd != RequestVariant::NoIds,
                    plan_updateable: true,
                    context_updates: false,
                    maintenance_conflict: odd == RequestVariant::Objection,
                },
                dashboard_url: None,
                async_request,
            }))),
            Step::Delete { odd, .. } => Some(instance::Event::Deprovision {
                async_request,
                force: odd == RequestVariant::Forced,
            }),
            Step::Saved(_) | Step::Ended(..) | Step::Overdue(_) | Step::Command(_) => None,
        }
    }

    fn occurrence(step: &Step, about: OperationId, new: OperationId) -> Option<Self::Event> {
        match *step {
            Step::Saved(_) => Some(instance::Event::Saved {
                operation: about,
                state: saved(),
            }),
            Step::Ended(_, outcome) => Some(instance::Event::Ended {
                operation: about,
                end: end(outcome, instance_output()),
            }),
            Step::Overdue(_) => Some(instance::Event::Overdue {
                operation: about,
                cleanup: new,
            }),
            Step::Create { .. } | Step::Update { .. } | Step::Delete { .. } | Step::Command(_) => {
                None
            }
        }
    }

    fn command(command: CommandKind, failed: Option<Verb>, new: OperationId) -> Self::Event {
        let command = ordered(command, failed);
        instance::Event::Command { command, new }
    }

    fn decide(self, event: Self::Event) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, event)
    }

    fn pinned(&self) -> Vec<OperationId> {
        self.pins()
    }

    fn purged(self) -> Self {
        match self {
            Self::Gone {
                last,
                purging: true,
                ..
            } => Self::gone(last),
            other => other,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { data } if data.made == data.last => "creating",
            Self::Creating { .. } => "creating again",
            Self::CreateFailed { .. } => "create-failed",
            Self::Live { .. } => "live",
            Self::Updating { given_up: true, .. } => "updating (given up)",
            Self::Updating { .. } => "updating",
            Self::Deleting {
                pending_create: Some(_),
                ..
            } => "deleting over a create",
            Self::Deleting { was_live: true, .. } => "deleting",
            Self::Deleting { .. } => "deleting a failed create",
            Self::Gone { purging: true, .. } => "purging",
            Self::Gone { .. } => "gone",
        }
    }
}

impl ModelledResource for Binding {
    type Event = binding::Event;
    const CREATE: Verb = Verb::Bind;
    const DELETE: Verb = Verb::Unbind;

    fn request(step: &Step, async_request: AsyncRequest) -> Option<Self::Event> {
        match *step {
            Step::Create { same, odd, .. } => Some(binding::Event::Bind(Box::new(Bind {
                wanted: binding_spec().into(),
                same,
                parent: parent(odd),
                against: (odd == RequestVariant::Objection).then_some(Refusal::RequiresApp),
                async_request,
            }))),
            Step::Delete { odd, .. } => Some(binding::Event::Unbind(Unbind {
                ids_given: odd != RequestVariant::NoIds,
                parent: parent(odd),
                cascade: odd == RequestVariant::Cascade,
                force: odd == RequestVariant::Forced,
                async_request,
            })),
            // A binding has no update.
            Step::Update { .. }
            | Step::Saved(_)
            | Step::Ended(..)
            | Step::Overdue(_)
            | Step::Command(_) => None,
        }
    }

    fn occurrence(step: &Step, about: OperationId, new: OperationId) -> Option<Self::Event> {
        match *step {
            Step::Saved(_) => Some(binding::Event::Saved {
                operation: about,
                state: saved(),
            }),
            Step::Ended(_, outcome) => Some(binding::Event::Ended {
                operation: about,
                end: end(outcome, binding_output()),
            }),
            Step::Overdue(_) => Some(binding::Event::Overdue {
                operation: about,
                cleanup: new,
            }),
            Step::Create { .. } | Step::Update { .. } | Step::Delete { .. } | Step::Command(_) => {
                None
            }
        }
    }

    fn command(command: CommandKind, failed: Option<Verb>, new: OperationId) -> Self::Event {
        binding::Event::Command {
            command: ordered(command, failed),
            parent: Parent::Live,
            new,
        }
    }

    fn decide(self, event: Self::Event) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, event)
    }

    fn pinned(&self) -> Vec<OperationId> {
        self.pins()
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { data } if data.made == data.last => "creating",
            Self::Creating { .. } => "creating again",
            Self::CreateFailed { .. } => "create-failed",
            Self::Live { .. } => "live",
            Self::Deleting {
                pending_create: Some(_),
                ..
            } => "deleting over a create",
            Self::Deleting { was_live: true, .. } => "deleting",
            Self::Deleting { .. } => "deleting a failed create",
            Self::Gone { .. } => "gone",
        }
    }
}

fn parent(odd: RequestVariant) -> Parent {
    match odd {
        RequestVariant::ParentMissing => Parent::Missing,
        RequestVariant::ParentBusy | RequestVariant::Cascade => {
            Parent::Busy("The service instance is being changed.")
        }
        RequestVariant::No
        | RequestVariant::Objection
        | RequestVariant::NoIds
        | RequestVariant::Forced => Parent::Live,
    }
}

fn end<T>(outcome: Outcome, made: T) -> End<T> {
    match outcome {
        Outcome::Succeeded => End::Succeeded(made),
        Outcome::Failed => End::Failed,
        Outcome::Refused => End::Refused,
    }
}

fn ordered(command: CommandKind, failed: Option<Verb>) -> AdminCommand {
    match command {
        CommandKind::Retry => AdminCommand::Retry {
            failed: failed.map(|verb| match verb {
                Verb::Provision | Verb::Bind => FailedOperation::Create,
                Verb::Deprovision | Verb::Unbind => FailedOperation::Delete,
                Verb::Update => FailedOperation::Update(Box::new(FailedUpdate {
                    change: Change::default().into(),
                    dashboard_url: None,
                })),
            }),
        },
        CommandKind::Cancel => AdminCommand::Cancel,
        CommandKind::Abandon => AdminCommand::Abandon,
        CommandKind::Purge => AdminCommand::Purge,
    }
}
