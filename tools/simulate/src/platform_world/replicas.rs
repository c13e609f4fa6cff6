//! The simulated processes of the platform: they start, are stopped or killed, and start again.
//!
//! A process has its own link to the store and its own connections to the broker. When it ends, both end with it.

use super::broker_link::{SimulatedBroker, SimulatedConnector};
use super::scenario::PlatformScenario;
use crate::store_link::{LinkState, Network, StoreLink};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{KeyRing, Store as _};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use tokio::time::Instant;

/// How often a process looks for operations that nobody announced.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A running process.
#[derive(Clone)]
pub(crate) struct PlatformProcess {
    pub name: String,
    pub link: Arc<StoreLink>,
    pub platform: Platform,
}

/// All processes of a run.
pub(crate) struct PlatformReplicas {
    pub network: Arc<Network>,
    pub broker: Arc<SimulatedBroker>,
    pub scenario: Arc<PlatformScenario>,
    /// Key file of all processes.
    keys: String,
    slots: Mutex<Vec<ReplicaSlot>>,
}

#[derive(Default)]
struct ReplicaSlot {
    /// Number of processes so far.
    started: u64,
    process: Option<PlatformProcess>,
    /// Link of the process that is starting.
    starting: Option<Arc<StoreLink>>,
    /// The process shuts down.
    stopping: bool,
    /// State of the link of whatever process runs here, and its end.
    disturbance: Option<(LinkState, Instant)>,
}

impl PlatformReplicas {
    pub(crate) fn new(
        network: Arc<Network>,
        broker: Arc<SimulatedBroker>,
        scenario: Arc<PlatformScenario>,
        keys: String,
    ) -> Self {
        let slots = (0..scenario.replicas)
            .map(|_| ReplicaSlot::default())
            .collect();
        Self {
            network,
            broker,
            scenario,
            keys,
            slots: Mutex::new(slots),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<ReplicaSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.slots().len()
    }

    /// The process of a slot, if it runs.
    pub(crate) fn process(&self, slot: usize) -> Option<PlatformProcess> {
        self.slots()[slot].process.clone()
    }

    /// Whether a process of this slot is about to run, or to end.
    fn is_changing(&self, slot: usize) -> bool {
        let slot = &self.slots()[slot];
        slot.starting.is_some() || slot.stopping
    }

    /// Passes hints of the store on to every process, with a delay.
    pub(crate) fn spread_hints(self: &Arc<Self>) {
        let replicas = Arc::clone(self);
        tokio::spawn(async move {
            let mut hints = replicas.network.store().hints();
            while hints.changed().await.is_ok() {
                let choices = &replicas.network.choices;
                tokio::time::sleep(choices.between(Duration::ZERO, Duration::from_millis(3))).await;
                for slot in 0..replicas.count() {
                    if let Some(process) = replicas.process(slot) {
                        process.link.hint();
                    }
                }
            }
        });
    }

    /// Disturbs the link of a slot for a while, also for processes that start meanwhile.
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

    fn repair_link(&self, slot: usize) {
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
                started = Platform::start(self.parts(&name, &link)) => started.ok(),
            };
            let Some(platform) = started else {
                link.die();
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let history = &self.network.history;
            history.record("started", || format!("{name} runs"));
            let mut slots = self.slots();
            slots[slot].starting = None;
            slots[slot].process = Some(PlatformProcess {
                name,
                link,
                platform,
            });
            return;
        }
    }

    fn begin(&self, slot: usize) -> (String, Arc<StoreLink>) {
        let mut slots = self.slots();
        let entry = &mut slots[slot];
        entry.started += 1;
        let name = format!("r{slot}.{}", entry.started);
        let state = entry.disturbance.map_or(LinkState::Up, |it| it.0);
        let link = StoreLink::new(name.clone(), Arc::clone(&self.network), state);
        let link = Arc::new(link);
        entry.starting = Some(Arc::clone(&link));
        (name, link)
    }

    fn parts(&self, name: &str, link: &Arc<StoreLink>) -> PlatformParts {
        let cluster = "simulated".to_owned().try_into().expect("an id");
        let connector = SimulatedConnector {
            process: name.to_owned(),
            broker: Arc::clone(&self.broker),
            link: Arc::clone(link),
        };
        PlatformParts {
            store: link.clone(),
            keys: Arc::new(KeyRing::parse(&self.keys).expect("a fresh line is a key")),
            connector: Arc::new(connector),
            settings: PlatformSettings {
                lease: self.scenario.lease,
                look_every: LOOK_EVERY,
                drain: Duration::from_secs(1),
                ..PlatformSettings::of_cluster(cluster)
            },
        }
    }

    /// Ends a process at once.
    pub(crate) fn kill(&self, slot: usize) {
        let mut slots = self.slots();
        // It is started again by the task that starts it.
        if let Some(starting) = &slots[slot].starting {
            starting.die();
        }
        if let Some(process) = slots[slot].process.take() {
            process.link.die();
        }
    }

    /// Stops a process with notice.
    pub(crate) async fn stop(&self, slot: usize) {
        let Some(process) = self.process(slot) else {
            return;
        };
        self.slots()[slot].stopping = true;
        tokio::select! {
            biased;
            () = process.link.died() => {}
            () = process.platform.shut_down() => {}
        }
        process.link.die();
        let history = &self.network.history;
        history.record("stopped", || format!("{} has ended", process.name));
        let mut slots = self.slots();
        slots[slot].stopping = false;
        let current = slots[slot].process.as_ref().map(|it| it.name.clone());
        if current.as_deref() == Some(process.name.as_str()) {
            slots[slot].process = None;
        }
    }

    /// Starts a process in a slot that has none, after a while.
    pub(crate) fn start_later(self: &Arc<Self>, slot: usize) {
        let replicas = Arc::clone(self);
        tokio::spawn(async move {
            let choices = &replicas.network.choices;
            let pause = choices.between(Duration::from_millis(100), Duration::from_secs(10));
            tokio::time::sleep(pause).await;
            if replicas.process(slot).is_none() {
                replicas.start(slot).await;
            }
        });
    }

    /// Repairs all links and starts all processes.
    pub(crate) async fn repair(&self) {
        for _ in 0..100 {
            for slot in 0..self.count() {
                self.repair_link(slot);
            }
            let mut slots = 0..self.count();
            if slots.clone().any(|slot| self.is_changing(slot)) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            } else if let Some(slot) = slots.find(|it| self.process(*it).is_none()) {
                self.start(slot).await;
            } else {
                return;
            }
        }
    }
}
