//! One simulated run of the platform: users, faults and a troublesome broker for a while; then everything is repaired, all
//! that was asked for must end, everything is deleted, and nothing may be left at the broker.

use super::broker_link::{BrokerCondition, SimulatedBroker};
use super::broker_side::BrokerSide;
use super::checker::PlatformChecker;
use super::faults::inject_faults;
use super::model_broker::OfferedCatalog;
use super::outages::{change_catalog, interrupt_broker};
use super::replicas::{PlatformProcess, PlatformReplicas};
use super::scenario::PlatformScenario;
use super::setup::{self, name, namespace, person};
use super::user::User;
use crate::history::History;
use crate::seeded_sources::{SharedRng, SimulatedProcesses, SimulatedStoreClock};
use crate::simulation::SimulationResult;
use crate::store_link::Network;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_journal::{KeyRing, MemoryStore};
use sutler_platform::lifecycle::intent::IntentState;
use sutler_platform::lifecycle::orphan::{OrphanKey, OrphanState};
use sutler_platform::platform_records::PlatformRecords;
use sutler_records::StoreClock;
use sutler_servers::SeededRng;

/// Longest time until everything is settled after the faults: the longest wait of the ledger, 2^10 minutes, and more.
const SETTLED_WITHIN: Duration = Duration::from_secs(70_000);
/// Rounds in which everything is deleted: a delete may end with the words of an earlier failure.
const DELETE_ROUNDS: usize = 6;

/// Runs a seed of the platform. `recording`: with readable lines.
#[must_use]
pub fn run_platform_seed(seed: u64, recording: bool) -> SimulationResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    runtime.block_on(PlatformSimulation::run(seed, recording))
}

/// A run.
struct PlatformSimulation {
    replicas: Arc<PlatformReplicas>,
    broker: Arc<SimulatedBroker>,
    checker: Arc<PlatformChecker>,
    history: Arc<History>,
    scenario: Arc<PlatformScenario>,
}

impl PlatformSimulation {
    async fn run(seed: u64, recording: bool) -> SimulationResult {
        let mut rng = SeededRng::new(seed);
        let scenario = Arc::new(PlatformScenario::of(&mut rng));
        let choices = SharedRng::new(rng);
        let _installed =
            SimulatedProcesses::install(choices.clone(), Duration::ZERO, scenario.delayed_polls);
        let history = Arc::new(History::begin(recording));
        history.record("plan", || scenario.to_string());
        let simulation = Self::set_up(&choices, &history, &scenario).await;
        simulation.act().await;
        let totals = history.take();
        SimulationResult {
            seed,
            scenario: scenario.to_string(),
            violations: totals.violations,
            history: totals.lines,
            events: totals.events,
            digest: totals.digest,
            hooks: simulation.broker.requests.load(Ordering::Relaxed),
            simulated: history.now(),
        }
    }

    async fn set_up(
        choices: &SharedRng,
        history: &Arc<History>,
        scenario: &Arc<PlatformScenario>,
    ) -> Self {
        let clock = Arc::new(SimulatedStoreClock::new(scenario.drift));
        let store = Arc::new(MemoryStore::with_clock(clock));
        let keys = KeyRing::fresh_line("simulated").to_string();
        let ring = Arc::new(KeyRing::parse(&keys).expect("a fresh line is a key"));
        let clock = StoreClock::read(store.as_ref()).await;
        let clock = clock.expect("the store answers");
        let records = PlatformRecords::new(store.clone(), ring, clock);
        setup::write(&records, scenario).await;
        let offered = OfferedCatalog::first(scenario.options.retrievable);
        let side = Arc::new(BrokerSide::new(offered));
        let checker = Arc::new(PlatformChecker::new(
            Arc::clone(&store),
            records,
            Arc::clone(history),
            Arc::clone(&side),
        ));
        let network = Arc::new(Network::new(
            (store, checker.clone()),
            Arc::clone(history),
            choices.clone(),
            scenario.call_timeout,
        ));
        let broker = Arc::new(SimulatedBroker {
            side,
            checker: Arc::clone(&checker),
            choices: choices.clone(),
            history: Arc::clone(history),
            scenario: Arc::clone(scenario),
            is_calm: AtomicBool::new(false),
            condition: Mutex::new(BrokerCondition::Up),
            requests: AtomicU64::new(0),
        });
        let replicas =
            PlatformReplicas::new(network, Arc::clone(&broker), Arc::clone(scenario), keys);
        Self {
            replicas: Arc::new(replicas),
            broker,
            checker,
            history: Arc::clone(history),
            scenario: Arc::clone(scenario),
        }
    }

    async fn act(&self) {
        for slot in 0..self.scenario.replicas {
            self.replicas.start(slot).await;
        }
        self.replicas.spread_hints();
        self.put_namespace().await;
        let mut acting = vec![
            tokio::spawn(inject_faults(Arc::clone(&self.replicas))),
            tokio::spawn(interrupt_broker(Arc::clone(&self.replicas))),
            tokio::spawn(change_catalog(Arc::clone(&self.replicas))),
        ];
        for number in 0..self.scenario.users {
            let user = User {
                username: format!("user{number}"),
                replicas: Arc::clone(&self.replicas),
                checker: Arc::clone(&self.checker),
            };
            acting.push(tokio::spawn(async move { user.run().await }));
        }
        let ends = self.history.now() + self.scenario.chaos;
        // What is broken once is not looked at further: it may never end.
        while self.history.now() < ends && !self.history.is_violated() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for task in acting {
            task.abort();
        }
        if self.history.is_violated() {
            return;
        }
        self.history
            .record("calm", || "the faults are over".to_owned());
        self.broker.is_calm.store(true, Ordering::Relaxed);
        self.broker.set_condition(BrokerCondition::Up);
        self.replicas.repair().await;
        self.settle("after the faults").await;
        if self.history.is_violated() {
            return;
        }
        self.delete_all().await;
        self.check_end();
    }

    async fn put_namespace(&self) {
        let Some(process) = self.replicas.process(0) else {
            return;
        };
        let wanted = Default::default();
        let written = process.platform.put_namespace(&namespace(), &wanted).await;
        written.expect("the store answers before the faults begin");
    }

    /// A process that runs.
    fn process(&self) -> Option<PlatformProcess> {
        let mut slots = 0..self.replicas.count();
        slots.find_map(|slot| self.replicas.process(slot))
    }

    /// Waits until nothing moves any more. I-12: what does not move waits for a person.
    async fn settle(&self, when: &str) {
        let ends = self.history.now() + SETTLED_WITHIN;
        loop {
            let moving = self.moving();
            if moving.is_empty() || self.history.is_violated() {
                return;
            }
            if self.history.now() > ends {
                for what in moving {
                    self.history
                        .violate(format!("I-12: {when} {what} never ends"));
                }
                return;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    /// Everything that somebody other than a person must move on.
    fn moving(&self) -> Vec<String> {
        self.checker.known(|known| {
            let mut moving = Vec::new();
            for instance in known.instances.values() {
                let name = &instance.basis.spec().name;
                let waiting = instance.pending.iter();
                let waiting = waiting.filter(|it| !is_held(&it.state));
                // Behind a create on hold, or without one, nothing can be done.
                let is_created = instance.confirmed().is_some();
                // An operator decides about what a create waits for.
                let is_left = instance.waits_for_orphan && known.is_left(&instance.osb_id);
                let waiting = waiting.filter(|_| !is_left);
                let waiting = waiting.filter(|it| {
                    is_created || it.change.patch().is_none() || !is_queued(&it.state)
                });
                moving.extend(waiting.map(|it| format!("{} of {name}", it.number)));
            }
            for binding in known.bindings.values() {
                let waiting = binding.pending.iter();
                let waiting = waiting.filter(|it| !is_held(&it.state) && !it.waits_for_instance);
                let waiting = waiting.filter(|_| !binding.waits_for_orphan);
                let name = &binding.name;
                moving.extend(waiting.map(|it| format!("{} of binding {name}", it.number)));
            }
            let orphans = known.unsettled_orphans();
            moving.extend(orphans.map(|it| format!("the orphan {:?}", it.orphan.key)));
            moving
        })
    }

    /// Deletes or abandons everything, and lets the ledger run.
    async fn delete_all(&self) {
        for round in 0..DELETE_ROUNDS {
            let (instances, orphans) = self.left();
            if instances.is_empty() && orphans.is_empty() {
                return;
            }
            let Some(process) = self.process() else {
                return;
            };
            for instance in instances {
                let is_abandoned = round > 2 || self.replicas.network.choices.percent(20);
                self.remove(&process, &instance, is_abandoned).await;
            }
            for orphan in orphans {
                let retried = process.platform.retry_orphan(&orphan).await;
                self.history.record("retry", || {
                    format!("an operator retries {orphan:?}: {}", retried.is_ok())
                });
            }
            self.settle("after everything was deleted").await;
        }
    }

    async fn remove(&self, process: &PlatformProcess, instance: &str, is_abandoned: bool) {
        let (space, by) = (namespace(), person("olga"));
        let platform = &process.platform;
        let id = name(instance);
        let removed = match is_abandoned {
            true => platform.abandon_instance(&space, &id, &by.into()).await,
            false => platform.delete_instance(&space, &id, true, &by).await,
        };
        self.history.record("remove", || {
            let reply =
                removed.map_or_else(|error| error.to_string(), |it| format!("{:?}", it.reply));
            format!("olga removes {instance} (abandoned: {is_abandoned}): {reply}")
        });
    }

    /// Names of instances that are there, and orphans that wait for a person.
    fn left(&self) -> (Vec<String>, Vec<OrphanKey>) {
        self.checker.known(|known| {
            let instances = known.instances.values();
            let instances = instances.filter(|it| it.tombstone.is_none());
            let names = instances.map(|it| it.basis.spec().name.clone()).collect();
            let orphans = known.orphans.values();
            let orphans = orphans.filter(|it| {
                matches!(
                    it.orphan.state,
                    OrphanState::NeedsOperator { .. } | OrphanState::Deferred
                )
            });
            (names, orphans.map(|it| it.orphan.key.clone()).collect())
        })
    }

    fn check_end(&self) {
        let (instances, orphans) = self.left();
        for instance in instances {
            self.history
                .violate(format!("I-9: {instance} cannot be deleted"));
        }
        for orphan in orphans {
            self.history
                .violate(format!("I-5: the ledger cannot delete {orphan:?}"));
        }
        for (instance, binding) in self.broker.side.present() {
            let binding = binding.unwrap_or_default();
            self.history.violate(format!(
                "I-5: {instance} {binding} is left at the broker after everything was deleted"
            ));
        }
    }
}

fn is_held(state: &IntentState) -> bool {
    matches!(state, IntentState::OnHold(_))
}

fn is_queued(state: &IntentState) -> bool {
    matches!(state, IntentState::Queued { .. })
}
