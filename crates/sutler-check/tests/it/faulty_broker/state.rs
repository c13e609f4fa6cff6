//! What the broker keeps: instances, their bindings, and the operations of each.

use super::catalog::{Kit, Plan};
use super::{Era, Flaws};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many polls say "in progress" before one says how it ended.
const POLLS: u32 = 2;

/// Everything there is.
pub(crate) struct BrokerState {
    pub kit: Kit,
    pub flaws: Flaws,
    pub era: Era,
    pub instances: BTreeMap<String, Instance>,
    pub requests: usize,
    /// Whether what is asked for has to be done with the answer.
    pub is_hurried: bool,
    minted: u64,
}

/// What is being done, or was done, to an instance or a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Update,
    Delete,
}

/// How far an operation is.
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

/// What a resource is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Creating,
    Live,
    Updating,
    Deleting,
    Gone,
}

/// What an instance was asked to be.
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
    /// What a running update was asked for, and what it makes of the instance.
    pub update: Option<(Value, RequestedState)>,
    pub operations: Operations,
    pub bindings: BTreeMap<String, Binding>,
}

/// One binding.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub phase: Phase,
    /// What was asked for: plan, parameters, resource, predecessor.
    pub wanted: Value,
    pub parameters: Option<Value>,
    /// Credentials and the like, as they are handed out.
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

    /// A name that was not used before.
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

    /// An instance that is there in any form.
    pub(crate) fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id).filter(|it| it.phase != Phase::Gone)
    }

    /// The same, to be changed.
    pub(crate) fn instance_mut(&mut self, id: &str) -> Option<&mut Instance> {
        self.instances
            .get_mut(id)
            .filter(|it| it.phase != Phase::Gone)
    }

    /// A binding that is there in any form, of an instance that is.
    pub(crate) fn binding(&self, instance: &str, id: &str) -> Option<&Binding> {
        let bindings = &self.instance(instance)?.bindings;
        bindings.get(id).filter(|it| it.phase != Phase::Gone)
    }

    /// The same, to be changed.
    pub(crate) fn binding_mut(&mut self, instance: &str, id: &str) -> Option<&mut Binding> {
        let bindings = &mut self.instance_mut(instance)?.bindings;
        bindings.get_mut(id).filter(|it| it.phase != Phase::Gone)
    }

    /// How many instances are there in any form.
    pub(crate) fn living(&self) -> usize {
        let all = self.instances.values();
        all.filter(|it| it.phase != Phase::Gone).count()
    }
}

impl Operations {
    /// Notes that something has begun.
    pub(crate) fn begin(&mut self, id: &str, kind: Kind) {
        self.0.push(Operation {
            id: id.to_owned(),
            kind,
            progress: Progress::Running,
            polls_left: POLLS,
        });
    }

    /// Whether nothing was ever begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operation that runs.
    pub(crate) fn running(&self) -> Option<&Operation> {
        self.0
            .iter()
            .rev()
            .find(|it| it.progress == Progress::Running)
    }

    /// The id of the operation that runs.
    pub(crate) fn running_id(&self) -> String {
        self.running().map(|it| it.id.clone()).unwrap_or_default()
    }

    /// Ends what runs as failed: something else took its place.
    pub(crate) fn halt(&mut self) {
        for operation in &mut self.0 {
            if operation.progress == Progress::Running {
                operation.progress = Progress::Failed;
            }
        }
    }

    /// Asks one operation how it is, by its id or else the latest. One that runs comes closer to its
    /// end by it; the second value says whether this was its end.
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
