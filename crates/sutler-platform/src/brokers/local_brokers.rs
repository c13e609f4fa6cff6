//! What this process counts and limits by itself, for each broker. Not stored: other processes have their own.
//!
//! The limits follow from the documents (`follower.rs` brings those that others changed), from the number of replicas and
//! from the clock. Everything here is short and under one lock, in which the engine's limits are set too, so that they
//! arrive in order.

use super::broker_definition::is_same_connection;
use super::queue_control::QueueControl;
use crate::catalog::BrokerScope;
use crate::lifecycle::breaker::{
    ExchangeOutcome, LocalCount, OpenCause, QueueLimit, RUNS_MAX, queue_share,
};
use crate::records::{BrokerRegistration, BrokerState, broker_queue};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::Key;
use uuid::Uuid;

/// Pause between two syncs that answers of one broker ask for.
pub(super) const RELIST_PAUSE: Duration = Duration::from_secs(10);

/// One broker.
struct LocalBroker {
    key: Key,
    registration: BrokerRegistration,
    /// Whether its breaker is open or paused; `None` until its state was seen.
    is_stopped: Option<bool>,
    count: LocalCount,
    limit: QueueLimit,
    /// The limit that the engine has.
    queue_limit: Option<usize>,
    relist: RelistRequest,
}

/// Whether an answer asks for a sync.
#[derive(Clone, Copy, Default)]
struct RelistRequest {
    last: Option<Timestamp>,
    is_pending: bool,
}

/// The engine whose queues follow. It refers to what it carries out, and that to this: a circle until it is detached.
#[derive(Default)]
enum AttachedQueues {
    #[default]
    None,
    Engine(Arc<dyn QueueControl>),
    Detached,
}

#[derive(Default)]
struct LocalTable {
    brokers: BTreeMap<Uuid, LocalBroker>,
    /// Number of brokers of each namespace. No entry is zero.
    of_namespaces: BTreeMap<String, u32>,
    live_replicas: u32,
    /// Brokers whose states this process wrote, and the follower has not read since.
    written_states: BTreeSet<Uuid>,
}

/// What the limits of brokers follow from besides their own counts.
struct LimitBasis<'a> {
    of_namespaces: &'a BTreeMap<String, u32>,
    live_replicas: u32,
    now: Timestamp,
}

/// All brokers that this process has seen.
#[derive(Default)]
pub(super) struct LocalBrokers {
    table: Mutex<LocalTable>,
    queues: Mutex<AttachedQueues>,
}

impl LocalBrokers {
    fn table(&self) -> MutexGuard<'_, LocalTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached(&self) -> MutexGuard<'_, AttachedQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> Option<Arc<dyn QueueControl>> {
        match &*self.attached() {
            AttachedQueues::Engine(queues) => Some(queues.clone()),
            AttachedQueues::None | AttachedQueues::Detached => None,
        }
    }

    /// Forgets the engine, which has ended.
    pub(super) fn detach(&self) {
        *self.attached() = AttachedQueues::Detached;
    }

    /// Sets the engine. Limits that were found before are set with the next look.
    pub(super) fn attach(&self, queues: Arc<dyn QueueControl>) {
        let mut attached = self.attached();
        // Only the first counts.
        if let AttachedQueues::None = &*attached {
            *attached = AttachedQueues::Engine(queues);
        }
    }

    /// Whether a broker is known here.
    pub(super) fn knows(&self, broker: Uuid) -> bool {
        self.table().brokers.contains_key(&broker)
    }

    /// A registration was read or written.
    pub(super) fn saw_registration(
        &self,
        key: &Key,
        registration: &BrokerRegistration,
        now: Timestamp,
    ) {
        let mut table = self.table();
        table.add(key, registration);
        let (brokers, basis) = table.split(now);
        if let Some(entry) = brokers.get_mut(&registration.uid) {
            entry.saw_registration(key, registration, now);
            entry.set_queue(self.queues().as_deref(), &basis);
        }
    }

    /// This process wrote the state of a broker. Its commit may have been answered late, after another writer's: the follower
    /// reads the state again.
    pub(super) fn wrote_state(&self, broker: Uuid, state: &BrokerState, now: Timestamp) {
        self.saw_state(broker, state, now);
        self.table().written_states.insert(broker);
    }

    /// The brokers whose states this process wrote since the last call.
    pub(super) fn take_written_states(&self) -> BTreeSet<Uuid> {
        std::mem::take(&mut self.table().written_states)
    }

    /// The state of a broker was read. Without its registration nothing follows from it.
    pub(super) fn saw_state(&self, broker: Uuid, state: &BrokerState, now: Timestamp) {
        let mut table = self.table();
        let (brokers, basis) = table.split(now);
        if let Some(entry) = brokers.get_mut(&broker) {
            let is_stopped = state.breaker.stop().is_some();
            if entry.is_stopped == Some(true) && !is_stopped {
                // What hung meanwhile says nothing of the broker as it is now.
                entry.count.restart(now);
            }
            entry.is_stopped = Some(is_stopped);
            entry.set_queue(self.queues().as_deref(), &basis);
        }
    }

    /// This process committed an operation that may be claimed now.
    pub(super) fn look_now(&self, broker: Uuid) {
        if let Some(queues) = self.queues() {
            queues.look_now(&broker_queue(broker));
        }
    }

    /// A broker is registered no more.
    pub(super) fn forget(&self, broker: Uuid) {
        if self.table().remove(broker)
            && let Some(queues) = self.queues()
        {
            queues.forget_queue(&broker_queue(broker));
        }
    }

    /// Counts an exchange. Returns the cause to open the breaker, if there is one and it is not known to be open.
    pub(super) fn count(
        &self,
        broker: Uuid,
        begun: Timestamp,
        outcome: ExchangeOutcome,
        now: Timestamp,
    ) -> Option<OpenCause> {
        let mut table = self.table();
        let (brokers, basis) = table.split(now);
        let entry = brokers.get_mut(&broker)?;
        entry.limit.count(outcome, now);
        entry.set_queue(self.queues().as_deref(), &basis);
        let cause = entry.count.count(begun, outcome);
        cause.filter(|_| entry.is_stopped != Some(true))
    }

    /// An answer asks for a sync. Returns whether to request one now: else it is requested later, together with others.
    pub(super) fn relist(&self, broker: Uuid, now: Timestamp) -> bool {
        let mut table = self.table();
        let Some(entry) = table.brokers.get_mut(&broker) else {
            return true;
        };
        entry.relist.is_pending = true;
        entry.relist.take(now)
    }

    /// A sync that an answer asked for could not be requested.
    pub(super) fn relist_later(&self, broker: Uuid) {
        if let Some(entry) = self.table().brokers.get_mut(&broker) {
            entry.relist.is_pending = true;
        }
    }

    /// Brokers for which a sync is to be requested now, each once.
    pub(super) fn relists_due(&self, now: Timestamp) -> Vec<Uuid> {
        let mut table = self.table();
        let brokers = table.brokers.iter_mut();
        let due = brokers.filter_map(|(uid, entry)| entry.relist.take(now).then_some(*uid));
        due.collect()
    }

    /// Sets the number of replicas, and all limits as the clock and that number demand.
    pub(super) fn refresh(&self, live_replicas: Option<u32>, now: Timestamp) {
        let mut table = self.table();
        table.live_replicas = live_replicas.unwrap_or(table.live_replicas);
        let (brokers, basis) = table.split(now);
        for entry in brokers.values_mut() {
            entry.set_queue(self.queues().as_deref(), &basis);
        }
    }

    /// The brokers that are known here, with the keys of their registrations.
    pub(super) fn known(&self) -> Vec<(Uuid, Key)> {
        let table = self.table();
        let brokers = table.brokers.iter();
        brokers
            .map(|(uid, entry)| (*uid, entry.key.clone()))
            .collect()
    }
}

impl LocalTable {
    /// The brokers, and what their limits follow from.
    fn split(&mut self, now: Timestamp) -> (&mut BTreeMap<Uuid, LocalBroker>, LimitBasis<'_>) {
        let basis = LimitBasis {
            of_namespaces: &self.of_namespaces,
            live_replicas: self.live_replicas,
            now,
        };
        (&mut self.brokers, basis)
    }

    /// Adds a broker, unless it is known. The others of its namespace get a smaller share with the next look.
    fn add(&mut self, key: &Key, registration: &BrokerRegistration) {
        if self.brokers.contains_key(&registration.uid) {
            return;
        }
        if let BrokerScope::Namespace(namespace) = &registration.scope {
            *self.of_namespaces.entry(namespace.clone()).or_default() += 1;
        }
        let entry = LocalBroker::new(key, registration);
        self.brokers.insert(registration.uid, entry);
    }

    /// Removes a broker. Returns whether it was known.
    fn remove(&mut self, broker: Uuid) -> bool {
        let Some(removed) = self.brokers.remove(&broker) else {
            return false;
        };
        if let BrokerScope::Namespace(namespace) = &removed.registration.scope
            && let Some(count) = self.of_namespaces.get_mut(namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.of_namespaces.remove(namespace);
            }
        }
        true
    }
}

impl LimitBasis<'_> {
    /// Most exchanges with a broker of this scope.
    fn share(&self, scope: &BrokerScope) -> NonZeroU32 {
        let of_namespace = match scope {
            BrokerScope::AllNamespaces => None,
            BrokerScope::Namespace(it) => Some(self.of_namespaces.get(it).copied().unwrap_or(1)),
        };
        queue_share(RUNS_MAX, of_namespace)
    }
}

impl LocalBroker {
    fn new(key: &Key, registration: &BrokerRegistration) -> Self {
        Self {
            key: key.clone(),
            limit: QueueLimit::new(registration.limits.max_in_flight),
            registration: registration.clone(),
            is_stopped: None,
            count: LocalCount::default(),
            queue_limit: None,
            relist: RelistRequest::default(),
        }
    }

    fn saw_registration(&mut self, key: &Key, next: &BrokerRegistration, now: Timestamp) {
        if !is_same_connection(&self.registration, next) {
            self.count.restart(now);
        }
        if self.registration.limits.max_in_flight != next.limits.max_in_flight {
            let is_halved = self.limit.halved_until(now).is_some();
            self.limit = QueueLimit::new(next.limits.max_in_flight);
            if is_halved {
                self.limit.count(ExchangeOutcome::Overloaded, now);
            }
        }
        self.key = key.clone();
        self.registration = next.clone();
    }

    /// Gives the engine the limit that holds now, if it has another one.
    fn set_queue(&mut self, queues: Option<&dyn QueueControl>, basis: &LimitBasis<'_>) {
        let (Some(queues), Some(is_stopped)) = (queues, self.is_stopped) else {
            return;
        };
        let limit = match is_stopped {
            true => 0,
            false => {
                let limit = self.limit.at(basis.live_replicas, basis.now);
                limit.min(basis.share(&self.registration.scope)).get()
            }
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if self.queue_limit != Some(limit) {
            queues.set_queue(&broker_queue(self.registration.uid), limit);
            self.queue_limit = Some(limit);
        }
    }
}

impl RelistRequest {
    /// Takes the pending request, if the last one was long enough ago.
    fn take(&mut self, now: Timestamp) -> bool {
        let is_early = self.last.is_some_and(|last| {
            Duration::try_from(last.duration_until(now)).unwrap_or_default() < RELIST_PAUSE
        });
        let is_due = self.is_pending && !is_early;
        if is_due {
            *self = Self {
                last: Some(now),
                is_pending: false,
            };
        }
        is_due
    }
}
