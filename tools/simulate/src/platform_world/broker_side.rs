//! What the model broker has, what is on its way to it, and what it said: shared by the way to it and by the checks.

use super::model_broker::{Chance, ModelBroker, OfferedCatalog, RequestTarget};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_client::wire::{Answer, Method, Request};
use sutler_journal::OperationId;
use tokio::time::Instant;

/// An id at the broker: of an instance, or of a binding of it.
pub(crate) type BrokerId = (String, Option<String>);

/// The broker and its surroundings.
pub(crate) struct BrokerSide {
    state: Mutex<BrokerSideState>,
}

struct BrokerSideState {
    model: ModelBroker,
    /// Creates that may arrive still, by number.
    under_way: BTreeMap<u64, CreateUnderWay>,
    sent: u64,
    /// Operations for which the broker reported a success, or showed the resource.
    successes: BTreeSet<OperationId>,
    /// Operations for which anything was sent.
    senders: BTreeSet<OperationId>,
    /// Operations for which a DELETE was sent.
    deleting: BTreeSet<OperationId>,
    /// What the broker said is gone.
    gone: BTreeSet<BrokerId>,
    /// Instances that an update may have reached after its end: what they are now depends on the order on the way.
    overtaken: BTreeSet<String>,
}

struct CreateUnderWay {
    id: BrokerId,
    /// It arrives no more after that.
    until: Instant,
}

impl BrokerSide {
    pub(crate) fn new(offered: OfferedCatalog) -> Self {
        Self {
            state: Mutex::new(BrokerSideState {
                model: ModelBroker::new(offered),
                under_way: BTreeMap::new(),
                sent: 0,
                successes: BTreeSet::new(),
                senders: BTreeSet::new(),
                deleting: BTreeSet::new(),
                gone: BTreeSet::new(),
                overtaken: BTreeSet::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, BrokerSideState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request is sent. It may arrive within this time. Returns its number.
    pub(crate) fn send(
        &self,
        request: &Request,
        operation: Option<OperationId>,
        within: Duration,
    ) -> u64 {
        let mut state = self.state();
        state.sent += 1;
        let number = state.sent;
        state.senders.extend(operation);
        if request.method == Method::Delete {
            state.deleting.extend(operation);
        }
        let target = RequestTarget::of(request);
        if let (Method::Put, Some(instance)) = (request.method, target.instance) {
            let under_way = CreateUnderWay {
                id: (instance, target.binding),
                until: Instant::now() + within,
            };
            state.under_way.insert(number, under_way);
        }
        number
    }

    /// A request is answered, or never left: it does not arrive (again).
    pub(crate) fn landed(&self, number: u64) {
        self.state().under_way.remove(&number);
    }

    /// A request arrives.
    pub(crate) fn arrive(&self, request: &Request, chance: &Chance<'_>) -> Answer {
        self.state().model.handle(request, chance)
    }

    /// A request arrives that was given up.
    pub(crate) fn arrive_late(&self, request: &Request, chance: &Chance<'_>) -> Answer {
        let mut state = self.state();
        if let (Method::Patch, Some(id)) = (request.method, RequestTarget::of(request).instance) {
            state.overtaken.insert(id);
        }
        state.model.handle(request, chance)
    }

    /// Changes what the broker offers.
    pub(crate) fn offer(&self, change: impl FnOnce(&mut OfferedCatalog)) -> OfferedCatalog {
        let mut state = self.state();
        change(&mut state.model.offered);
        state.model.offered
    }

    /// Offering, plan and parameters of an instance at the broker, if they follow from what the platform was answered.
    pub(crate) fn attributes_of(&self, instance: &str) -> Option<Value> {
        let state = self.state();
        let found = state.model.instances.get(instance)?;
        let is_certain = !state.overtaken.contains(instance) && found.resource.operation.is_none();
        is_certain.then(|| found.resource.attributes.clone())
    }

    /// The platform received an answer.
    pub(crate) fn answered(
        &self,
        request: &Request,
        operation: Option<OperationId>,
        answer: &Answer,
    ) {
        let target = RequestTarget::of(request);
        let mut state = self.state();
        let says = |word: &str| String::from_utf8_lossy(&answer.body).contains(word);
        let is_done = match target.is_poll {
            true => answer.status == 200 && says("succeeded"),
            false => matches!(answer.status, 200 | 201),
        };
        if is_done {
            state.successes.extend(operation);
        }
        let is_delete = operation.is_some_and(|it| state.deleting.contains(&it));
        let is_gone = is_delete && (is_done || answer.status == 410);
        if let (true, Some(instance)) = (is_gone, target.instance) {
            state.gone.insert((instance, target.binding));
        }
    }

    /// Whether the broker ever reported a success of an operation.
    pub(crate) fn has_succeeded(&self, operation: OperationId) -> bool {
        self.state().successes.contains(&operation)
    }

    /// Whether anything was sent for an operation.
    pub(crate) fn has_sent(&self, operation: OperationId) -> bool {
        self.state().senders.contains(&operation)
    }

    /// Whether the broker said that something is gone.
    pub(crate) fn is_gone(&self, id: &BrokerId) -> bool {
        self.state().gone.contains(id)
    }

    /// Everything that is there.
    pub(crate) fn present(&self) -> BTreeSet<BrokerId> {
        let state = self.state();
        let mut present = BTreeSet::new();
        for (id, instance) in &state.model.instances {
            present.insert((id.clone(), None));
            let bindings = instance.bindings.keys();
            present.extend(bindings.map(|it| (id.clone(), Some(it.clone()))));
        }
        present
    }

    /// Everything that is there or may come to be there by what was sent.
    pub(crate) fn possible(&self) -> BTreeSet<BrokerId> {
        let mut possible = self.present();
        let mut state = self.state();
        let now = Instant::now();
        state.under_way.retain(|_, it| it.until > now);
        possible.extend(state.under_way.values().map(|it| it.id.clone()));
        // A binding without its instance cannot be made.
        let instances: BTreeSet<String> = possible
            .iter()
            .filter(|it| it.1.is_none())
            .map(|it| it.0.clone())
            .collect();
        possible.retain(|it| instances.contains(&it.0));
        possible
    }
}
