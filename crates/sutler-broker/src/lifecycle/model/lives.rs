//! What the model's steps mean to an instance and to a binding.

use super::{Life, Odd, Ordered, Outcome, Step};
use crate::lifecycle::binding::{self, Bind, Binding, Parent, Unbind};
use crate::lifecycle::instance::{self, Change, Instance, Provision, Update, UpdateFacts};
use crate::lifecycle::order::{Again, Failed, Order};
use crate::lifecycle::sample::{binding_made, binding_spec, instance_made, saved, spec, value};
use crate::lifecycle::{Ask, Decision, End, Verb};
use crate::refusal::Refusal;
use serde_json::json;
use sutler_journal::OperationId;

impl Life for Instance {
    type Event = instance::Event;
    const CREATE: Verb = Verb::Provision;
    const DELETE: Verb = Verb::Deprovision;

    fn request(step: &Step, ask: Ask) -> Option<Self::Event> {
        match *step {
            Step::Create { same, odd, .. } => {
                Some(instance::Event::Provision(Box::new(Provision {
                    wanted: spec(),
                    same,
                    maintenance_conflict: odd == Odd::Objection,
                    dashboard_url: None,
                    ask,
                })))
            }
            Step::Update { size, odd, .. } => Some(instance::Event::Update(Box::new(Update {
                service_id: spec().service_id,
                change: Change {
                    parameters: Some(value(json!({"size": size}))),
                    ..Change::default()
                },
                facts: UpdateFacts {
                    offered: odd != Odd::NoIds,
                    plan_updateable: true,
                    context_updates: false,
                    maintenance_conflict: odd == Odd::Objection,
                },
                dashboard_url: None,
                ask,
            }))),
            Step::Delete { odd, .. } => Some(instance::Event::Deprovision {
                ask,
                force: odd == Odd::Forced,
            }),
            Step::Saved(_) | Step::Ended(..) | Step::Overdue(_) | Step::Ordered(_) => None,
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
                end: end(outcome, instance_made()),
            }),
            Step::Overdue(_) => Some(instance::Event::Overdue {
                operation: about,
                cleanup: new,
            }),
            Step::Create { .. } | Step::Update { .. } | Step::Delete { .. } | Step::Ordered(_) => {
                None
            }
        }
    }

    fn order(order: Ordered, failed: Option<Verb>, new: OperationId) -> Self::Event {
        let order = ordered(order, failed);
        instance::Event::Ordered { order, new }
    }

    fn decide(self, event: Self::Event) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, event)
    }

    fn pinned(&self) -> Vec<OperationId> {
        self.pins()
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Creating { thing } if thing.made == thing.last => "creating",
            Self::Creating { .. } => "creating again",
            Self::CreateFailed { .. } => "create-failed",
            Self::Live { .. } => "live",
            Self::Updating { given_up: true, .. } => "updating (given up)",
            Self::Updating { .. } => "updating",
            Self::Deleting { over: Some(_), .. } => "deleting over a create",
            Self::Deleting { was_live: true, .. } => "deleting",
            Self::Deleting { .. } => "deleting a failed create",
            Self::Gone { .. } => "gone",
        }
    }
}

impl Life for Binding {
    type Event = binding::Event;
    const CREATE: Verb = Verb::Bind;
    const DELETE: Verb = Verb::Unbind;

    fn request(step: &Step, ask: Ask) -> Option<Self::Event> {
        match *step {
            Step::Create { same, odd, .. } => Some(binding::Event::Bind(Box::new(Bind {
                wanted: binding_spec(),
                same,
                parent: parent(odd),
                against: (odd == Odd::Objection).then_some(Refusal::RequiresApp),
                ask,
            }))),
            Step::Delete { odd, .. } => Some(binding::Event::Unbind(Unbind {
                ids_given: odd != Odd::NoIds,
                parent: parent(odd),
                cascade: odd == Odd::Cascade,
                force: odd == Odd::Forced,
                ask,
            })),
            // A binding has no update.
            Step::Update { .. }
            | Step::Saved(_)
            | Step::Ended(..)
            | Step::Overdue(_)
            | Step::Ordered(_) => None,
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
                end: end(outcome, binding_made()),
            }),
            Step::Overdue(_) => Some(binding::Event::Overdue {
                operation: about,
                cleanup: new,
            }),
            Step::Create { .. } | Step::Update { .. } | Step::Delete { .. } | Step::Ordered(_) => {
                None
            }
        }
    }

    fn order(order: Ordered, failed: Option<Verb>, new: OperationId) -> Self::Event {
        binding::Event::Ordered {
            order: ordered(order, failed),
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
            Self::Creating { bond } if bond.made == bond.last => "creating",
            Self::Creating { .. } => "creating again",
            Self::CreateFailed { .. } => "create-failed",
            Self::Live { .. } => "live",
            Self::Deleting { over: Some(_), .. } => "deleting over a create",
            Self::Deleting { was_live: true, .. } => "deleting",
            Self::Deleting { .. } => "deleting a failed create",
            Self::Gone { .. } => "gone",
        }
    }
}

fn parent(odd: Odd) -> Parent {
    match odd {
        Odd::ParentMissing => Parent::Missing,
        Odd::ParentBusy | Odd::Cascade => Parent::Busy("The service instance is being changed."),
        Odd::No | Odd::Objection | Odd::NoIds | Odd::Forced => Parent::Live,
    }
}

fn end<T>(outcome: Outcome, made: T) -> End<T> {
    match outcome {
        Outcome::Succeeded => End::Succeeded(made),
        Outcome::Failed => End::Failed,
        Outcome::Refused => End::Refused,
    }
}

fn ordered(order: Ordered, failed: Option<Verb>) -> Order {
    match order {
        Ordered::Retry => Order::Retry {
            failed: failed.map(|verb| match verb {
                Verb::Provision | Verb::Bind => Failed::Create,
                Verb::Deprovision | Verb::Unbind => Failed::Delete,
                Verb::Update => Failed::Update(Box::new(Again {
                    change: Change::default(),
                    dashboard_url: None,
                })),
            }),
        },
        Ordered::Cancel => Order::Cancel,
        Ordered::Abandon => Order::Abandon,
        Ordered::Purge => Order::Purge,
    }
}
