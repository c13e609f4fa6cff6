//! The simulated processes: brokers that start, are stopped or killed, and start again.
//!
//! A process has its own link to the store. When it ends, the link dies with it; a new process gets a new link.

use crate::external_system::ExternalSystem;
use crate::scenario::Scenario;
use crate::service::SimulatedService;
use crate::store_link::{LinkState, Network, StoreLink};
use axum::Router;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_broker::{Admin, Broker, BrokerHandle};
use sutler_journal::KeyRing;
use sutler_osb::Catalog;
use tokio::time::Instant;

/// Id of the offering, and of its plan.
pub(crate) const SERVICE: &str = "service";
pub(crate) const PLAN: &str = "plan";

/// Longest time between the end of a shut-down and the end of its process.
const EXIT_WITHIN: Duration = Duration::from_millis(200);

/// A running process.
#[derive(Clone)]
pub(crate) struct Process {
    pub name: String,
    pub link: Arc<StoreLink>,
    pub router: Router,
    handle: BrokerHandle,
}

/// All processes of a run.
pub(crate) struct Replicas {
    pub network: Arc<Network>,
    pub external: Arc<ExternalSystem>,
    pub scenario: Arc<Scenario>,
    /// Set while hooks may fail.
    pub hooks_may_fail: Arc<AtomicBool>,
    /// Key file of all processes.
    keys: String,
    slots: Mutex<Vec<Slot>>,
}

#[derive(Default)]
struct Slot {
    /// Number of processes so far.
    started: u64,
    process: Option<Process>,
    /// Link of the process that is starting.
    starting: Option<Arc<StoreLink>>,
    /// The process shuts down.
    stopping: bool,
    /// State of the link of whatever process runs here, and its end.
    disturbance: Option<(LinkState, Instant)>,
}

impl Replicas {
    pub(crate) fn new(
        network: Arc<Network>,
        external: Arc<ExternalSystem>,
        scenario: Arc<Scenario>,
        hooks_may_fail: Arc<AtomicBool>,
        keys: String,
    ) -> Self {
        let slots = (0..scenario.replicas).map(|_| Slot::default()).collect();
        Self {
            network,
            external,
            scenario,
            hooks_may_fail,
            keys,
            slots: Mutex::new(slots),
        }
    }

    /// The keys of all processes.
    pub(crate) fn keys(&self) -> KeyRing {
        KeyRing::parse(&self.keys).expect("a fresh line is a key")
    }

    /// Whether a process of this slot is about to run, or to end.
    pub(crate) fn is_changing(&self, slot: usize) -> bool {
        let slot = &self.slots()[slot];
        slot.starting.is_some() || slot.stopping
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.slots().len()
    }

    /// The process of a slot, if it runs.
    pub(crate) fn process(&self, slot: usize) -> Option<Process> {
        let slots = self.slots();
        let process = slots[slot].process.clone();
        process.filter(|it| !it.link.is_dead())
    }

    /// All links of processes that run or start.
    pub(crate) fn links(&self) -> Vec<Arc<StoreLink>> {
        let slots = self.slots();
        let of_slot = |slot: &Slot| {
            let running = slot.process.as_ref().map(|it| Arc::clone(&it.link));
            running.into_iter().chain(slot.starting.clone())
        };
        slots.iter().flat_map(of_slot).collect()
    }

    /// Disturbs the link of a slot for a while, also for processes that start meanwhile. Replaces an earlier
    /// disturbance.
    pub(crate) fn disturb(self: &Arc<Self>, slot: usize, state: LinkState, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.slots()[slot].disturbance = Some((state, until));
        self.set_link(slot, state);
        let replicas = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            let current = replicas.slots()[slot].disturbance;
            if current.is_some_and(|(_, end)| end == until) {
                replicas.repair_link(slot);
            }
        });
    }

    /// Ends the disturbance of a slot.
    pub(crate) fn repair_link(&self, slot: usize) {
        self.slots()[slot].disturbance = None;
        self.set_link(slot, LinkState::Up);
    }

    fn set_link(&self, slot: usize, state: LinkState) {
        let slots = self.slots();
        let running = slots[slot].process.as_ref().map(|it| &it.link);
        for link in running.into_iter().chain(&slots[slot].starting) {
            link.set_state(state);
        }
    }

    /// Starts a process, again and again until it could reach its store. Nothing to do if one is starting already.
    pub(crate) async fn start(&self, slot: usize) {
        if self.slots()[slot].starting.is_some() {
            return;
        }
        loop {
            let (name, link) = self.begin(slot);
            let started = tokio::select! {
                biased;
                () = link.died() => None,
                started = self.broker(&name, &link).start() => started.ok(),
            };
            let Some(handle) = started else {
                link.die();
                self.external.kill(&name);
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            self.network
                .history
                .record("started", || format!("{name} runs"));
            let mut slots = self.slots();
            slots[slot].starting = None;
            slots[slot].process = Some(Process {
                name,
                link,
                router: handle.router(),
                handle,
            });
            return;
        }
    }

    fn begin(&self, slot: usize) -> (String, Arc<StoreLink>) {
        let mut slots = self.slots();
        let slot_entry = &mut slots[slot];
        slot_entry.started += 1;
        let name = format!("r{slot}.{}", slot_entry.started);
        let state = slot_entry.disturbance.map_or(LinkState::Up, |it| it.0);
        let link = StoreLink::new(name.clone(), Arc::clone(&self.network), state);
        let link = Arc::new(link);
        slot_entry.starting = Some(Arc::clone(&link));
        (name, link)
    }

    fn broker(&self, name: &str, link: &Arc<StoreLink>) -> Broker {
        let scenario = &self.scenario;
        let service = SimulatedService {
            process: name.to_owned(),
            external: Arc::clone(&self.external),
            choices: self.network.choices.clone(),
            history: Arc::clone(&self.network.history),
            scenario: Arc::clone(scenario),
            link: Arc::clone(link),
            hooks_may_fail: Arc::clone(&self.hooks_may_fail),
        };
        let settings = Arc::clone(scenario);
        Broker::new(catalog())
            .untyped_service(SERVICE, Arc::new(service))
            .shared_store(link.clone(), self.keys())
            .without_auth()
            .admin(Admin::at("/admin").without_auth())
            .settings(move |it| {
                it.lease = settings.lease;
                it.sync_wait = settings.sync_wait;
                it.drain = settings.drain;
                it.workers = settings.workers;
                it.limits.rate_per_caller = None;
                it.tombstones = Duration::from_secs(1800);
            })
    }

    /// Ends a process at once.
    pub(crate) fn kill(&self, slot: usize) {
        let process = {
            let mut slots = self.slots();
            // It is started again by the task that starts it.
            if let Some(starting) = &slots[slot].starting {
                starting.die();
            }
            slots[slot].process.take()
        };
        if let Some(process) = process {
            process.link.die();
            self.external.kill(&process.name);
        }
    }

    /// Starts a process in a slot that has none, after a while.
    pub(crate) fn start_later(self: &Arc<Self>, slot: usize) {
        let replicas = Arc::clone(self);
        tokio::spawn(async move {
            let choices = &replicas.network.choices;
            let pause = choices.between(Duration::from_millis(100), Duration::from_secs(15));
            tokio::time::sleep(pause).await;
            if replicas.process(slot).is_none() {
                replicas.start(slot).await;
            }
        });
    }

    /// Stops a process with notice.
    pub(crate) async fn stop(&self, slot: usize) {
        let Some(process) = self.process(slot) else {
            return;
        };
        self.slots()[slot].stopping = true;
        self.external.stopping(&process.name);
        tokio::select! {
            biased;
            () = process.link.died() => {}
            () = process.handle.shut_down() => {}
        }
        // A process needs a moment to exit, in which its other tasks still run.
        let exit = self.network.choices.between(Duration::ZERO, EXIT_WITHIN);
        tokio::time::sleep(exit).await;
        let name = process.name.clone();
        self.network
            .history
            .record("stopped", || format!("{name} has ended"));
        process.link.die();
        self.external.kill(&process.name);
        let mut slots = self.slots();
        slots[slot].stopping = false;
        let current = slots[slot].process.as_ref().map(|it| it.name.clone());
        if current.as_deref() == Some(process.name.as_str()) {
            slots[slot].process = None;
        }
    }

    /// Slots whose process ended by itself.
    pub(crate) fn dead(&self) -> Vec<usize> {
        let slots = self.slots();
        let dead = |slot: &Slot| slot.process.as_ref().is_some_and(|it| it.link.is_dead());
        (0..slots.len()).filter(|at| dead(&slots[*at])).collect()
    }
}

fn catalog() -> Catalog {
    let catalog = json!({ "services": [{
        "id": SERVICE, "name": "service", "description": "A simulated service",
        "bindable": true, "instances_retrievable": true, "bindings_retrievable": true,
        "plan_updateable": true,
        "plans": [{ "id": PLAN, "name": "plan", "description": "The plan" }],
    }] });
    serde_json::from_value(catalog).expect("the catalog keeps the rules")
}
