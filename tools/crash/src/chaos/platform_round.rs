//! One round of chaos for platforms: three of them over one server, a recording broker as their broker, load, faults,
//! and checks.
//!
//! After the faults everything must settle; then the breaker is opened and closed once. Judged are the requests and
//! what is left (`platform_kills/verdict.rs`), the order of each instance's intents (`intent_order.rs`), and the
//! breaker (`breaker_watch.rs`).

use super::breaker_watch::{check_resumption, check_silence, shown_everywhere};
use super::client::ReplicaAddresses;
use super::cuttable_link::CuttableLink;
use super::fault_injector::{FaultTargets, RestartedServer};
use super::fault_plan::{FaultPlan, PlannedFault};
use super::intent_order::{Seen, SeenIntents, check_order};
use super::platform_client::{ChaosOrder, PlatformClient, PlatformClients, PlatformHistory};
use super::replica::{Launch, Replica, ReplicaKind};
use crate::platform_kills::broker_process::BrokerProcess;
use crate::platform_kills::kill_run::{plans_of, registration};
use crate::platform_kills::known_state::KnownState;
use crate::platform_kills::people::People;
use crate::platform_kills::scenarios::catalog;
use crate::platform_kills::verdict::Evidence;
use crate::recording_broker::{
    ReceivedRequest, Reply, RequestKind, Rule, RuleScope, Script, read_requests,
};
use crate::victim::open_store;
use crate::violation::{CheckResult, Violation};
use serde_json::json;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sutler_journal::KeyRing;
use sutler_servers::{SeededRng, Server, ServerUrl};
use tokio::task::JoinSet;

/// Instances whose updates wait while the breaker is open.
const WAITING: u64 = 40;
/// How long nothing may be sent while the breaker is open, before the broker is back.
const OPEN_FOR: Duration = Duration::from_secs(4);
/// Time that the broker takes for an answer when it is back, so that one replica alone cannot do all the work.
const SLOW_MS: u64 = 300;

/// Configuration of a round.
#[derive(Clone, Debug)]
pub struct PlatformChaos {
    /// This package's executable.
    pub program: PathBuf,
    /// Directory of keys, logs and the log of the broker.
    pub dir: PathBuf,
    /// The same seed gives the same faults.
    pub seed: u64,
    /// Duration of the faults.
    pub length: Duration,
    /// Number of replicas.
    pub replicas: usize,
    /// Number of clients.
    pub clients: usize,
    /// Number of instances at a time.
    pub instances: u64,
    /// Duration of a lease.
    pub lease: Duration,
}

/// Report of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformChaosReport {
    /// Faults.
    pub faults: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Orders that were accepted.
    pub accepted: u64,
    /// Orders of which an attempt had no answer.
    pub in_doubt: u64,
    /// Orders that were refused.
    pub refused: u64,
    /// Reads.
    pub reads: u64,
    /// Requests at the broker.
    pub received: u64,
    /// Intents in the store.
    pub intents: u64,
    /// Rows that came to the ledger.
    pub orphans: u64,
    /// Time from the last fault until nothing went on any more.
    pub settled: Duration,
    /// Time from the first sight of the open breaker to the last request.
    pub opened: Duration,
    /// Time until every replica sent again after the breaker closed.
    pub closed: Duration,
}

impl fmt::Display for PlatformChaosReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} faults, {} requests: {} accepted, {} refused, {} with a lost answer, {} reads; the broker received {}; \
             {} intents, {} rows of the ledger; settled after {} ms; the last request came {} ms after the \
             breaker opened, and everyone sent again {} ms after it closed",
            self.faults,
            self.requests,
            self.accepted,
            self.refused,
            self.in_doubt,
            self.reads,
            self.received,
            self.intents,
            self.orphans,
            self.settled.as_millis(),
            self.opened.as_millis(),
            self.closed.as_millis(),
        )
    }
}

impl PlatformChaos {
    /// Three replicas and leases of two seconds.
    pub fn new(program: &Path, dir: &Path, seed: u64, length: Duration) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            seed,
            length,
            replicas: 3,
            clients: 8,
            instances: 10,
            lease: Duration::from_secs(2),
        }
    }

    /// The faults and their times.
    pub fn plan(&self) -> Vec<PlannedFault> {
        let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let plan = FaultPlan {
            seed: self.seed,
            length: millis(self.length),
            replicas: self.replicas,
            lease: millis(self.lease),
        };
        plan.faults()
    }
}

/// How the recording broker answers under load: mostly at once, sometimes in the background, without an answer, or not
/// at all.
fn rules() -> Vec<Rule> {
    use RequestKind::{Bind, Deprovision, Provision, Unbind, Update};
    let later = |polls| Reply::Accepted {
        polls,
        succeeds: true,
    };
    let every = RuleScope::EveryOperation;
    let refusal = Reply::Refused(403, json!({"description": "only the owner"}));
    let out_of_order = Reply::DoneAndAnswered(500, json!({"description": "out of order"}));
    vec![
        Rule::new(Update, RuleScope::EveryRequest(7), Reply::DoneAndClosed),
        Rule::new(Provision, every(5), later(2)),
        Rule::new(Provision, every(11), out_of_order),
        Rule::new(Update, every(4), later(1)),
        Rule::new(Update, every(6), refusal),
        Rule::new(Deprovision, every(3), later(1)),
        Rule::new(Bind, every(3), later(1)),
        Rule::new(Unbind, every(3), later(1)),
    ]
}

/// Replicas, their broker and their clients.
struct Round<'a> {
    chaos: &'a PlatformChaos,
    broker: BrokerProcess,
    homes: ReplicaAddresses,
    clients: PlatformClients,
    rng: SeededRng,
    place: ServerUrl,
}

/// Injects the planned faults over a server, and checks the result.
///
/// # Errors
/// The first violation.
pub async fn run_platform_round(
    chaos: &PlatformChaos,
    plan: &[PlannedFault],
    server: Arc<Server>,
) -> CheckResult<PlatformChaosReport> {
    let failed = |error: std::io::Error| Violation::new(format!("no harness: {error}"));
    std::fs::create_dir_all(&chaos.dir).map_err(failed)?;
    KeyRing::file(chaos.dir.join("keys"))
        .map_err(|error| Violation::new(format!("no keys: {error}")))?;
    let making = Arc::clone(&server);
    let place = tokio::task::spawn_blocking(move || making.fresh_database()).await;
    let place = place.map_err(|error| Violation::new(format!("no database: {error}")))?;
    let broker = BrokerProcess::start(&chaos.program, 0).await?;
    let script = Script {
        catalog: catalog(),
        log: chaos.dir.join("requests.jsonl"),
        ..Script::default()
    };
    broker.begin(&script).await?;
    let (replicas, homes) = start_all(chaos, &server, &place).await?;
    let clients = PlatformClients {
        homes: homes.clone(),
        instances: chaos.instances,
        history: Arc::new(Mutex::new(PlatformHistory::default())),
        keys: Arc::new(AtomicU64::new(0)),
    };
    let mut round = Round {
        chaos,
        broker,
        homes,
        clients,
        rng: SeededRng::new(chaos.seed),
        place,
    };
    round.set_up().await?;
    let away = Vec::new();
    let server = Arc::new(tokio::sync::Mutex::new(RestartedServer { server, away }));
    let targets = FaultTargets { replicas, server };
    round.load(&targets, plan).await?;
    let mut report = PlatformChaosReport {
        faults: plan.len() as u64,
        settled: round.settle().await?,
        ..PlatformChaosReport::default()
    };
    round.breaker(&mut report).await?;
    round.settle().await?;
    for replica in &targets.replicas {
        replica.lock().await.stop().await?;
    }
    round.judge(plan, &mut report).await?;
    Ok(report)
}

async fn start_all(
    chaos: &PlatformChaos,
    server: &Server,
    place: &ServerUrl,
) -> CheckResult<(Vec<Arc<tokio::sync::Mutex<Replica>>>, ReplicaAddresses)> {
    let (mut replicas, mut homes) = (Vec::new(), ReplicaAddresses::new());
    for number in 0..chaos.replicas {
        let link = CuttableLink::to(server.address()).await;
        let link = link.map_err(|error| Violation::new(format!("no way: {error}")))?;
        let launch = Launch {
            kind: ReplicaKind::Platform,
            program: chaos.program.clone(),
            dir: chaos.dir.clone(),
            lease: chaos.lease,
            step: Duration::ZERO,
            large: 1,
            flaw: None,
        };
        let url = place.through(link.port()).url().into();
        let (mut replica, home) = Replica::new(launch, number, link, url);
        replica.start().await?;
        homes.push(home);
        replicas.push(Arc::new(tokio::sync::Mutex::new(replica)));
    }
    Ok((replicas, homes))
}

impl Round<'_> {
    fn client(&mut self) -> PlatformClient {
        PlatformClient {
            shared: self.clients.clone(),
            rng: self.rng.split(),
        }
    }

    fn people(&self) -> People<'_> {
        People::new(self.homes[0].clone(), &self.broker, "before")
    }

    /// The namespace, the broker, and the instances whose updates wait later.
    async fn set_up(&mut self) -> CheckResult<()> {
        self.people().take(&registration()).await?;
        let mut client = self.client();
        for number in 0..WAITING {
            let name = format!("waiting-{number}");
            let order = ChaosOrder {
                user: "carla",
                method: "POST",
                path: "/namespaces/app/instances".to_owned(),
                body: json!({"name": name, "class": "postgresql", "plan": "small"}),
            };
            client.send(&order).await;
        }
        self.people().settle().await
    }

    /// Runs clients while faults are injected, and stops them when all faults are repaired.
    async fn load(&mut self, targets: &FaultTargets, plan: &[PlannedFault]) -> CheckResult<()> {
        self.broker.replace_rules(&rules()).await?;
        let until = Instant::now() + self.chaos.length;
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = JoinSet::new();
        for _ in 0..self.chaos.clients {
            let (mut client, stop) = (self.client(), Arc::clone(&stop));
            running.spawn(async move { client.run_until(&stop).await });
        }
        let injected = targets.inject(plan).await;
        if injected.is_ok() {
            tokio::time::sleep_until(until.into()).await;
        }
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = running.join_next().await {
            ended.map_err(|error| Violation::new(error.to_string()))?;
        }
        injected
    }

    async fn settle(&self) -> CheckResult<Duration> {
        let begun = Instant::now();
        self.people().settle().await?;
        Ok(begun.elapsed())
    }

    /// The broker goes away and comes back while updates wait.
    async fn breaker(&mut self, report: &mut PlatformChaosReport) -> CheckResult<()> {
        let gone = |verb| Rule::new(verb, RuleScope::Always, Reply::Closed);
        let verbs = [
            RequestKind::Update,
            RequestKind::Fetch,
            RequestKind::Poll,
            RequestKind::Catalog,
        ];
        self.broker.replace_rules(&verbs.map(gone)).await?;
        let mut client = self.client();
        for number in 0..WAITING {
            let order = ChaosOrder {
                user: "anna",
                method: "PATCH",
                path: format!("/namespaces/app/instances/waiting-{number}"),
                body: json!({"parameters": {"disk": 7}}),
            };
            client.send(&order).await;
        }
        let open = shown_everywhere(&self.homes, "open").await?;
        tokio::time::sleep(OPEN_FOR).await;
        self.broker.set_delay(SLOW_MS).await?;
        self.broker.replace_rules(&[]).await?;
        let closed = shown_everywhere(&self.homes, "closed").await?;
        self.people().settle().await?;
        self.broker.set_delay(0).await?;
        let requests = self.requests()?;
        // A replica may have closed it half a second before it was shown.
        report.opened = check_silence(&requests, (open, closed.saturating_sub(500_000)))?;
        report.closed = check_resumption(&requests, closed, self.chaos.replicas)?;
        Ok(())
    }

    fn requests(&self) -> CheckResult<Vec<ReceivedRequest>> {
        let requests = read_requests(&self.chaos.dir.join("requests.jsonl"));
        requests.map_err(|error| Violation::new(format!("no log: {error}")))
    }

    async fn judge(
        &self,
        plan: &[PlannedFault],
        report: &mut PlatformChaosReport,
    ) -> CheckResult<()> {
        let store = open_store(&self.place.url().into()).await;
        let store = store.map_err(|error| Violation::new(format!("the store: {error}")))?;
        let known = KnownState::read(store, &self.chaos.dir.join("keys")).await?;
        let requests = self.requests()?;
        let broker = self.broker.state().await?;
        let history = self.clients.history.lock();
        let history = history.unwrap_or_else(PoisonError::into_inner);
        report.requests = history.requests;
        report.accepted = history.acknowledged.len() as u64;
        report.in_doubt = history.in_doubt;
        report.refused = history.refused;
        report.reads = history.reads.len() as u64;
        report.received = requests.len() as u64;
        report.intents = known.intents.len() as u64;
        report.orphans = known.orphans.len() as u64;
        check_order(&seen_intents(&history, &known))?;
        let evidence = Evidence {
            requests: &requests,
            broker: &broker,
            plans: plans_of(&catalog()),
            known: &known,
            acknowledged: &history.acknowledged,
            // Each fault may cost an attempt, and the recording broker and the breaker some more.
            sends_max: plan.len() + 20,
            silences: plan.len() as u64,
            unacknowledged_max: usize::try_from(history.in_doubt + history.ended)
                .unwrap_or(usize::MAX),
            mitigates: false,
        };
        evidence.judge()
    }
}

/// What clients saw of instances.
fn seen_intents(history: &PlatformHistory, known: &KnownState) -> Vec<SeenIntents> {
    let numbers = history.numbers.iter();
    let numbers = numbers.filter_map(|(operation, began, ended, number)| {
        let intent = known.intents.get(operation)?;
        Some(SeenIntents {
            instance: intent.instance.clone()?,
            began: *began,
            ended: *ended,
            seen: Seen::Number(*number),
        })
    });
    let reads = history.reads.iter();
    let reads = reads.map(|(instance, began, ended, seen)| SeenIntents {
        instance: instance.clone(),
        began: *began,
        ended: *ended,
        seen: *seen,
    });
    numbers.chain(reads).collect()
}
