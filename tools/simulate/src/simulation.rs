//! One simulated run: starts the processes, lets platforms, operators and faults act for a while, repairs
//! everything, waits until all is settled, deletes everything, and checks what is left.

use crate::client::{ChangeResult, Client, Verb};
use crate::commit_checker::CommitChecker;
use crate::external_system::{ExternalSystem, ResourceName};
use crate::faults::FaultInjector;
use crate::history::History;
use crate::operator::Operator;
use crate::replica::Replicas;
use crate::scenario::Scenario;
use crate::seeded_sources::{SharedRng, SimulatedProcesses, SimulatedStoreClock};
use crate::service::CRASHING_INSTANCE;
use crate::store_link::Network;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_broker::DocumentOpener;
use sutler_journal::inspect::RealmReaders;
use sutler_journal::{
    CommitId, Cursor, KeyRing, MemoryStore, OperationFilter, OperationList, OperationRow, State,
    Store, inspect,
};
use sutler_servers::SeededRng;

/// Longest time until everything is settled after the faults.
const SETTLED_WITHIN: Duration = Duration::from_secs(900);
/// Longest time that a request is on its way after the faults.
const ARRIVED_WITHIN: Duration = Duration::from_secs(20);
/// Names of bindings of every instance.
const BINDINGS: [&str; 2] = ["b0", "b1"];

/// Result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationResult {
    /// Seed of the run.
    pub seed: u64,
    /// The scenario, as a line.
    pub scenario: String,
    /// Broken invariants, in order.
    pub violations: Vec<String>,
    /// Readable lines, if the run was recorded.
    pub history: Vec<String>,
    /// Number of events.
    pub events: u64,
    /// Digest of all events and their times: equal for equal runs.
    pub digest: u64,
    /// Number of calls of hooks, or of requests to the broker.
    pub hooks: u64,
    /// Simulated time.
    pub simulated: Duration,
}

/// Runs a seed. `recording`: with readable lines.
#[must_use]
pub fn run_seed(seed: u64, recording: bool) -> SimulationResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    runtime.block_on(Simulation::run(seed, recording))
}

/// A run.
struct Simulation {
    replicas: Arc<Replicas>,
    checker: Arc<CommitChecker>,
    history: Arc<History>,
    scenario: Arc<Scenario>,
    over: Arc<AtomicBool>,
    clients: Vec<Client>,
}

impl Simulation {
    async fn run(seed: u64, recording: bool) -> SimulationResult {
        let mut rng = SeededRng::new(seed);
        let scenario = Arc::new(Scenario::of(&mut rng));
        let choices = SharedRng::new(rng);
        let _installed =
            SimulatedProcesses::install(choices.clone(), scenario.skew, scenario.delayed_polls);
        let history = Arc::new(History::begin(recording));
        history.record("plan", || scenario.to_string());
        let clock = Arc::new(SimulatedStoreClock::new(scenario.drift));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let keys = KeyRing::fresh_line("simulated");
        let ring = || Arc::new(KeyRing::parse(&keys).expect("a fresh line is a key"));
        let checker = Arc::new(CommitChecker::new(
            Arc::clone(&store),
            Arc::clone(&history),
            ring(),
        ));
        let network = Arc::new(Network::new(
            (Arc::clone(&store), checker.clone()),
            Arc::clone(&history),
            choices,
            scenario.call_timeout,
        ));
        let external = Arc::new(ExternalSystem::new(
            Arc::clone(&history),
            store,
            scenario.lease,
            scenario.call_timeout,
        ));
        let hooks_may_fail = Arc::new(AtomicBool::new(true));
        let replicas = Arc::new(Replicas::new(
            network,
            external,
            Arc::clone(&scenario),
            hooks_may_fail,
            keys.to_string(),
        ));
        let over = Arc::new(AtomicBool::new(false));
        let simulation = Self {
            clients: clients(&replicas, &over),
            replicas,
            checker,
            history: Arc::clone(&history),
            scenario: Arc::clone(&scenario),
            over,
        };
        simulation.act(clock).await;
        let totals = history.take();
        SimulationResult {
            seed,
            scenario: scenario.to_string(),
            violations: totals.violations,
            history: totals.lines,
            events: totals.events,
            digest: totals.digest,
            hooks: simulation.replicas.external.calls(),
            simulated: history.now(),
        }
    }

    async fn act(&self, clock: Arc<SimulatedStoreClock>) {
        for slot in 0..self.scenario.replicas {
            self.replicas.start(slot).await;
        }
        self.spread_hints();
        self.restart_dead();
        self.watch_runs();
        let injector = FaultInjector {
            replicas: Arc::clone(&self.replicas),
            clock,
            over: Arc::clone(&self.over),
        };
        let injecting = tokio::spawn(Arc::new(injector).run());
        let acting = self.let_clients_act();
        tokio::time::sleep(self.scenario.chaos).await;
        self.over.store(true, Ordering::Relaxed);
        injecting.abort();
        self.replicas.hooks_may_fail.store(false, Ordering::Relaxed);
        self.repair().await;
        // Until everything that is still on its way has arrived.
        tokio::time::sleep(ARRIVED_WITHIN).await;
        for client in acting {
            client.abort();
        }
        self.settle("after the faults").await;
        self.check_knowledge();
        if self.history.is_violated() {
            return;
        }
        self.delete_all().await;
        self.settle("after everything was deleted").await;
        if self.scenario.cleanup {
            tokio::time::sleep(Duration::from_secs(2 * 3600 + 60)).await;
        }
        self.check_end().await;
    }

    /// Tasks of platforms and operators.
    fn let_clients_act(&self) -> Vec<tokio::task::JoinHandle<()>> {
        let mut tasks = Vec::new();
        let mut acting = clients(&self.replicas, &self.over);
        if self.scenario.rival {
            let rivals = clients(&self.replicas, &self.over);
            acting.extend(rivals.into_iter().take(1));
            self.replicas.external.contest(&self.clients[0].instance);
        }
        for client in acting {
            tasks.push(tokio::spawn(async move { client.run().await }));
        }
        if self.scenario.operators {
            let operator = Operator {
                replicas: Arc::clone(&self.replicas),
                checker: Arc::clone(&self.checker),
                instances: self.clients.iter().map(|it| it.instance.clone()).collect(),
                bindings: BINDINGS.map(str::to_owned).to_vec(),
                over: Arc::clone(&self.over),
            };
            tasks.push(tokio::spawn(async move { operator.run().await }));
        }
        tasks
    }

    /// Passes hints of the store on to every process, with a delay.
    fn spread_hints(&self) {
        let replicas = Arc::clone(&self.replicas);
        tokio::spawn(async move {
            let mut hints = replicas.network.store().hints();
            while hints.changed().await.is_ok() {
                let choices = &replicas.network.choices;
                tokio::time::sleep(choices.between(Duration::ZERO, Duration::from_millis(3))).await;
                for link in replicas.links() {
                    link.hint();
                }
            }
        });
    }

    /// Starts processes again that their hooks ended.
    fn restart_dead(&self) {
        let replicas = Arc::clone(&self.replicas);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                for slot in replicas.dead() {
                    replicas.kill(slot);
                    replicas.start(slot).await;
                }
            }
        });
    }

    /// Checks the hooks that run, every half second.
    fn watch_runs(&self) {
        let external = Arc::clone(&self.replicas.external);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                external.note_ended_runs().await;
            }
        });
    }

    /// Repairs all links and starts all processes.
    async fn repair(&self) {
        self.history
            .record("calm", || "the faults are over".to_owned());
        // Disturbances end by themselves after at most two leases and ten seconds; starts wait for them.
        for _ in 0..100 {
            for slot in 0..self.scenario.replicas {
                self.replicas.repair_link(slot);
            }
            let mut slots = 0..self.scenario.replicas;
            if slots.clone().any(|slot| self.replicas.is_changing(slot)) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            } else if let Some(slot) = slots.find(|it| self.replicas.process(*it).is_none()) {
                self.replicas.start(slot).await;
            } else {
                return;
            }
        }
    }

    /// Waits until no operation is unfinished.
    async fn settle(&self, when: &str) {
        let ends = self.history.now() + SETTLED_WITHIN;
        loop {
            let left = self.unfinished().await;
            if left.is_empty() {
                return;
            }
            if self.history.now() > ends {
                for row in left {
                    self.history.violate(format!(
                        "{when} an operation never ends: {} …{} {:?}",
                        row.verb,
                        crate::commit_checker::short(row.id),
                        row.state
                    ));
                }
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Unfinished operations of platforms.
    async fn unfinished(&self) -> Vec<OperationRow> {
        let list = OperationList {
            filter: OperationFilter::Unfinished,
            before: None,
            limit: 1000,
        };
        let rows = self.replicas.network.store().operations(&list).await;
        let mut rows = rows.unwrap_or_default();
        rows.retain(|row| row.verb != "cleanup");
        rows
    }

    /// Deletes every binding and instance; each delete must end.
    async fn delete_all(&self) {
        for client in &self.clients {
            let mut lanes: Vec<ResourceName> = client
                .bindings
                .iter()
                .map(|binding| ResourceName::binding(&client.instance, binding))
                .collect();
            if self.replicas.network.choices.percent(50) {
                // The deletion of the instance takes its bindings along.
                lanes.clear();
            }
            lanes.push(ResourceName::instance(&client.instance));
            for lane in lanes {
                self.delete(client, &lane).await;
            }
            for binding in &client.bindings {
                self.delete(client, &ResourceName::binding(&client.instance, binding))
                    .await;
            }
        }
        for (lane, state) in self.checker.present() {
            self.history
                .violate(format!("{lane} is still {state} after it was deleted"));
        }
    }

    async fn delete(&self, client: &Client, lane: &ResourceName) {
        let mut results = BTreeMap::new();
        for _ in 0..20 {
            let deleting = client.change(lane, Verb::Delete);
            let result = tokio::time::timeout(SETTLED_WITHIN, deleting).await;
            match result {
                Ok(ChangeResult::Succeeded | ChangeResult::AlreadyDone) => return,
                // Unknown to the broker, or being deleted by someone else.
                Ok(ChangeResult::Refused) if !self.is_present(lane) => return,
                Ok(result) => {
                    *results.entry(format!("{result:?}")).or_insert(0) += 1;
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                Err(_) => {
                    results.insert("no end".to_owned(), 1);
                    break;
                }
            }
        }
        self.history
            .violate(format!("{lane} cannot be deleted: {results:?}"));
    }

    fn is_present(&self, lane: &ResourceName) -> bool {
        self.checker.present().iter().any(|(it, _)| it == lane)
    }

    async fn check_end(&self) {
        for lane in self.replicas.external.left_behind() {
            self.history
                .violate(format!("{lane} was left behind outside"));
        }
        self.check_feed().await;
        self.check_store().await;
    }

    /// The feed has every commit that changed something, once and in the order in which they were applied.
    async fn check_feed(&self) {
        if self.scenario.cleanup {
            return;
        }
        let store = self.replicas.network.store();
        let mut feed: Vec<CommitId> = Vec::new();
        let mut after = Cursor::default();
        while let Ok(page) = store.changes(&after, 100).await {
            if page.changes.is_empty() {
                break;
            }
            for change in page.changes {
                if feed.last() != Some(&change.commit) {
                    feed.push(change.commit);
                }
            }
            after = page.next;
        }
        let in_feed: BTreeSet<CommitId> = feed.iter().copied().collect();
        let mut applied = self.checker.commits();
        applied.retain(|id| in_feed.contains(id));
        if applied != feed {
            self.history
                .violate("the feed is not in the order of the commits".to_owned());
        }
        let missing = self.checker.changes().difference(&in_feed).count();
        if missing > 0 {
            self.history
                .violate(format!("{missing} commits are not in the feed"));
        }
    }

    /// What the platforms know is so in the store. Hooks that fail may have changed things outside.
    fn check_knowledge(&self) {
        for (lane, is_present) in self.replicas.external.known() {
            if self.is_present(&lane) != is_present {
                self.history.violate(format!(
                    "the platform knows {lane} as {}, and the store does not",
                    if is_present { "present" } else { "deleted" }
                ));
            }
        }
    }

    async fn check_store(&self) {
        let readers = RealmReaders::of_others(DocumentOpener::new(self.replicas.keys()));
        let store: Arc<dyn Store> = self.replicas.network.store();
        match inspect::check(&store, Some(&readers), &|_, _| {}).await {
            Ok(report) => {
                for finding in report.findings {
                    self.history.violate(format!("store check: {finding}"));
                }
            }
            Err(error) => self.history.violate(format!("store check: {error}")),
        }
        for row in self.unfinished().await {
            if !matches!(row.state, State::Done(_)) {
                self.history.violate(format!("{} is not done", row.verb));
            }
        }
    }
}

/// One platform for each instance.
fn clients(replicas: &Arc<Replicas>, over: &Arc<AtomicBool>) -> Vec<Client> {
    let mut names: Vec<String> = (0..replicas.scenario.clients)
        .map(|n| format!("i{n}"))
        .collect();
    if replicas.scenario.crashing_hook {
        names.push(CRASHING_INSTANCE.to_owned());
    }
    let client = |instance| Client {
        replicas: Arc::clone(replicas),
        instance,
        bindings: BINDINGS.map(str::to_owned).to_vec(),
        over: Arc::clone(over),
    };
    names.into_iter().map(client).collect()
}
