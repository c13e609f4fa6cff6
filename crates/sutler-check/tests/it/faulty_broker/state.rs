//! State of the broker: instances, their bindings, and the operations of each.

use super::catalog::{Kit, Plan};
use super::{Era, Flaws};
use serde_json::Value;
use std::collections::BTreeMap;

/// Polls that report "in progress" before one reports the end.
const POLLS: u32 = 2;

/// The whole state.
pub(crate) struct BrokerState {
    pub kit: Kit,
    pub flaws: Flaws,
    pub era: Era,
    pub instances: BTreeMap<String, Instance>,
    pub requests: usize,
    /// Whether the current request must be served synchronously.
    pub is_hurried: bool,
    minted: u64,
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Update,
    Delete,
}

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Running,
    Succeeded,
    Failed,
}

/// One asynchronous operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub id: String,
    pub kind: Kind,
    pub progress: Progress,
    polls_left: u32,
}

/// The operations of one instance or binding, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations(Vec<Operation>);

/// State of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Creating,
    Live,
    Updating,
    Deleting,
    Gone,
}

/// Requested state of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestedState {
    pub service_id: String,
    pub plan_id: String,
    pub organization_guid: String,
    pub space_guid: String,
    pub parameters: Option<Value>,
}

/// One instance.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub phase: Phase,
    pub is: RequestedState,
    /// Body of an update in progress, and the resulting state.
    pub update: Option<(Value, RequestedState)>,
    pub operations: Operations,
    pub bindings: BTreeMap<String, Binding>,
}

/// One binding.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub phase: Phase,
    /// The request: plan, parameters, resource, predecessor.
    pub wanted: Value,
    pub parameters: Option<Value>,
    /// Credentials and other contents.
    pub info: Value,
    pub operations: Operations,
}

impl BrokerState {
    pub(crate) fn new(kit: Kit, flaws: Flaws, era: Era) -> Self {
        Self {
            kit,
            flaws,
            era,
            instances: BTreeMap::new(),
            requests: 0,
            is_hurried: false,
            minted: 0,
        }
    }

    /// A new unique name.
    pub(crate) fn mint(&mut self, what: &str) -> String {
        self.minted += 1;
        format!("{what}-{}", self.minted)
    }

    /// A plan, if the offering has it.
    pub(crate) fn plan(&self, service_id: &str, plan_id: &str) -> Option<Plan> {
        let mut plan = self.kit.plan(service_id, plan_id)?;
        plan.is_async &= !self.is_hurried;
        plan.is_async_bind &= !self.is_hurried;
        Some(plan)
    }

    /// An instance in any phase.
    pub(crate) fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id).filter(|it| it.phase != Phase::Gone)
    }

    /// An instance in any phase, mutable.
    pub(crate) fn instance_mut(&mut self, id: &str) -> Option<&mut Instance> {
        self.instances
            .get_mut(id)
            .filter(|it| it.phase != Phase::Gone)
    }

    /// A binding in any phase, of an existing instance.
    pub(crate) fn binding(&self, instance: &str, id: &str) -> Option<&Binding> {
        let bindings = &self.instance(instance)?.bindings;
        bindings.get(id).filter(|it| it.phase != Phase::Gone)
    }

    /// A binding in any phase, mutable.
    pub(crate) fn binding_mut(&mut self, instance: &str, id: &str) -> Option<&mut Binding> {
        let bindings = &mut self.instance_mut(instance)?.bindings;
        bindings.get_mut(id).filter(|it| it.phase != Phase::Gone)
    }

    /// Number of instances in any phase.
    pub(crate) fn living(&self) -> usize {
        let all = self.instances.values();
        all.filter(|it| it.phase != Phase::Gone).count()
    }
}

impl Operations {
    /// Records that an operation has begun.
    pub(crate) fn begin(&mut self, id: &str, kind: Kind) {
        self.0.push(Operation {
            id: id.to_owned(),
            kind,
            progress: Progress::Running,
            polls_left: POLLS,
        });
    }

    /// Whether no operation was ever begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operation in progress.
    pub(crate) fn running(&self) -> Option<&Operation> {
        self.0
            .iter()
            .rev()
            .find(|it| it.progress == Progress::Running)
    }

    /// Id of the operation in progress.
    pub(crate) fn running_id(&self) -> String {
        self.running().map(|it| it.id.clone()).unwrap_or_default()
    }

    /// Ends the operation in progress as failed: another one replaced it.
    pub(crate) fn halt(&mut self) {
        for operation in &mut self.0 {
            if operation.progress == Progress::Running {
                operation.progress = Progress::Failed;
            }
        }
    }

    /// Polls an operation by its id, or else the latest. Each poll brings a running one closer to its
    /// end; the second value is whether this poll ended it.
    pub(crate) fn poll(&mut self, id: Option<&str>) -> Option<(Operation, bool)> {
        let known = id.and_then(|id| self.0.iter().position(|it| it.id == id));
        let index = known.or(self.0.len().checked_sub(1))?;
        let operation = &mut self.0[index];
        let mut ended = false;
        if operation.progress == Progress::Running {
            if operation.polls_left == 0 {
                operation.progress = Progress::Succeeded;
                ended = true;
            } else {
                operation.polls_left -= 1;
            }
        }
        Some((operation.clone(), ended))
    }
}
