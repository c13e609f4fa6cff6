//! One round of chaos: start, load, faults, recovery, checks.

use super::client::{Client, History, ReplicaAddresses, Slots};
use super::cuttable_link::CuttableLink;
use super::executions::{Executions, Pause, after_outages, check_executions};
use super::external_world::ExternalWorld;
use super::fault_injector::{FaultTargets, RestartedServer};
use super::fault_plan::{FaultPlan, PlannedFault};
use super::final_state;
use super::history::{BINDINGS, Call, ObservedReply, RecordedCall};
use super::leftovers::{FinalState, check_leftovers};
use super::linearizability::{SearchEnd, explain};
use super::operation_ends::{EndedOperation, Names, OperationEnds};
use super::replica::{Launch, Replica, ReplicaKind};
use crate::platform::RequestMode;
use crate::victim::{Flaw, ReplicaEvent, open_store};
use crate::violation::{CheckResult, Violation};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use sutler_journal::KeyRing;
use sutler_servers::SeededRng;
use sutler_servers::{Server, ServerUrl};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Maximum time for unfinished work after the last fault is repaired.
const PEACE_WITHIN: Duration = Duration::from_secs(40);
/// A store may keep a lease longer by this: etcd checks leases every half second.
const LEASE_MARGIN: Duration = Duration::from_secs(1);

/// Configuration of a round.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// This package's executable.
    pub program: PathBuf,
    /// Directory of keys, event log and logs.
    pub dir: PathBuf,
    /// The same seed gives the same faults.
    pub seed: u64,
    /// Duration of the faults.
    pub length: Duration,
    /// Number of replicas.
    pub replicas: usize,
    /// Number of concurrent clients.
    pub clients: usize,
    /// Approximate number of concurrent instances.
    pub instances: usize,
    /// Duration of a lease.
    pub lease: Duration,
    /// Duration of a step.
    pub step: Duration,
    /// Factor for steps of large instances: they still run elsewhere when a paused replica
    /// continues.
    pub large: u32,
    /// A deliberate flaw.
    pub flaw: Option<Flaw>,
}

impl Chaos {
    /// Three replicas and leases of two seconds.
    pub fn new(program: &Path, dir: &Path, seed: u64, length: Duration) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            seed,
            length,
            replicas: 3,
            clients: 20,
            instances: 12,
            lease: Duration::from_secs(2),
            step: Duration::from_millis(40),
            large: 20,
            flaw: None,
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

/// Report of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChaosReport {
    /// Number of faults.
    pub faults: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests of unknown outcome.
    pub unknown: u64,
    /// Responses with 202.
    pub accepted: u64,
    /// Number of instances in requests.
    pub instances: u64,
    /// Instances whose history took too long to check.
    pub undecided: u64,
    /// Operations in the store.
    pub operations: u64,
    /// Operations that were given up after too many takeovers.
    pub given_up: u64,
    /// Counts of executions.
    pub executions: Executions,
    /// Steps that came too late to have an effect.
    pub belated: u64,
    /// Time from the last fault to the end of the last operation.
    pub settled: Duration,
}

impl fmt::Display for ChaosReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blows, {} requests ({} with unknown outcome, {} accepted) about {} instances ({} \
             undecided), {} operations ({} given up), {} steps ({} repeated before their memo, {} too late to \
             matter), {} claims after the first, settled after {} ms",
            self.faults,
            self.requests,
            self.unknown,
            self.accepted,
            self.instances,
            self.undecided,
            self.operations,
            self.given_up,
            self.executions.ran,
            self.executions.repeated,
            self.belated,
            self.executions.claimed_again,
            self.settled.as_millis(),
        )
    }
}

/// Injects the planned faults over a server, and checks the result.
///
/// # Errors
/// The first violation.
pub async fn run_chaos_round(
    chaos: &Chaos,
    plan: &[PlannedFault],
    server: Arc<Server>,
) -> CheckResult<ChaosReport> {
    let failed = |error: std::io::Error| Violation::new(format!("no harness: {error}"));
    std::fs::create_dir_all(&chaos.dir).map_err(failed)?;
    // Earlier rounds must not affect this one.
    let _ = std::fs::remove_file(chaos.dir.join("ledger"));
    KeyRing::file(chaos.dir.join("keys"))
        .map_err(|error| Violation::new(format!("no keys: {error}")))?;
    let making = Arc::clone(&server);
    let place = tokio::task::spawn_blocking(move || making.fresh_database()).await;
    let place = place.map_err(|error| Violation::new(format!("no database: {error}")))?;
    let (replicas, homes) = start_all(chaos, &server, &place).await?;
    // etcd restarts the lifetime of every lease when it starts.
    let renews = server.name() == "etcd";
    let away = Vec::new();
    let server = Arc::new(Mutex::new(RestartedServer { server, away }));
    let targets = FaultTargets { replicas, server };
    let history = History::default();
    let clock = Instant::now();
    let mut rng = SeededRng::new(chaos.seed);
    let injected =
        load_until_repaired(chaos, (&targets, plan), (&homes, &history, clock), &mut rng);
    injected.await?;
    let store = open_store(&place.url().into()).await;
    let store = store.map_err(|error| Violation::new(format!("the store: {error}")))?;
    let settled =
        final_state::finished_eventually(store.as_ref(), PEACE_WITHIN + 3 * chaos.lease).await?;
    let mut client = Client::new(&homes, &history, clock, rng);
    fetch_everything(&mut client, &history, chaos.replicas).await;
    let mut pauses = Vec::new();
    for replica in &targets.replicas {
        let mut replica = replica.lock().await;
        replica.stop().await?;
        pauses.append(&mut replica.pauses);
    }
    if renews {
        pauses = after_outages(&pauses, &targets.server.lock().await.away);
    }
    let evidence = Evidence {
        history: all_of(&history),
        events: read_events(&chaos.dir.join("ledger"))?,
        pauses,
        left: final_state::read(store.as_ref()).await?,
        lease: chaos.lease + LEASE_MARGIN,
    };
    let mut report = evidence.check_executions()?;
    report.faults = plan.len() as u64;
    report.settled = settled;
    Ok(report)
}

async fn start_all(
    chaos: &Chaos,
    server: &Server,
    place: &ServerUrl,
) -> CheckResult<(Vec<Arc<Mutex<Replica>>>, ReplicaAddresses)> {
    let mut starting = JoinSet::new();
    let (mut replicas, mut homes) = (Vec::new(), ReplicaAddresses::new());
    for number in 0..chaos.replicas {
        let link = CuttableLink::to(server.address()).await;
        let link = link.map_err(|error| Violation::new(format!("no way: {error}")))?;
        let launch = Launch {
            kind: ReplicaKind::Broker,
            program: chaos.program.clone(),
            dir: chaos.dir.clone(),
            lease: chaos.lease,
            step: chaos.step,
            large: chaos.large,
            flaw: chaos.flaw,
        };
        let url = place.through(link.port()).url().into();
        let (replica, home) = Replica::new(launch, number, link, url);
        let replica = Arc::new(Mutex::new(replica));
        homes.push(home);
        replicas.push(Arc::clone(&replica));
        starting.spawn(async move { replica.lock().await.start().await });
    }
    while let Some(started) = starting.join_next().await {
        started.map_err(|error| Violation::new(error.to_string()))??;
    }
    Ok((replicas, homes))
}

/// Runs clients while faults are injected, and stops them when all faults are repaired.
async fn load_until_repaired(
    chaos: &Chaos,
    (targets, plan): (&FaultTargets, &[PlannedFault]),
    (homes, history, clock): (&ReplicaAddresses, &History, Instant),
    rng: &mut SeededRng,
) -> CheckResult<()> {
    let slots = Arc::new(Slots::new(chaos.instances));
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for _ in 0..chaos.clients {
        let mut client = Client::new(homes, history, clock, rng.split());
        let (slots, stop) = (Arc::clone(&slots), Arc::clone(&stop));
        clients.spawn(async move { client.run_until(&stop, &slots).await });
    }
    let injected = targets.inject(plan).await;
    if injected.is_ok() {
        tokio::time::sleep_until((clock + chaos.length).into()).await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.map_err(|error| Violation::new(error.to_string()))?;
    }
    injected
}

/// Finally fetches every instance that was ever requested.
async fn fetch_everything(client: &mut Client, history: &History, replicas: usize) {
    let recorded = all_of(history);
    let instances = by_instance(&recorded);
    for (n, instance) in instances.keys().enumerate() {
        let replica = n % replicas;
        client
            .send_to(replica, instance, &Call::Fetch, RequestMode::Async)
            .await;
        for binding in 0..BINDINGS.len() {
            let call = Call::FetchBinding(binding);
            client
                .send_to(replica, instance, &call, RequestMode::Async)
                .await;
        }
    }
}

fn all_of(history: &History) -> Vec<RecordedCall> {
    let history = history.lock().unwrap_or_else(PoisonError::into_inner);
    history.clone()
}

fn by_instance(history: &[RecordedCall]) -> BTreeMap<&str, Vec<RecordedCall>> {
    let mut instances: BTreeMap<&str, Vec<RecordedCall>> = BTreeMap::new();
    for recorded in history {
        let of = instances.entry(&recorded.instance).or_default();
        of.push(recorded.clone());
    }
    instances
}

fn read_events(ledger: &Path) -> CheckResult<Vec<ReplicaEvent>> {
    let text = std::fs::read_to_string(ledger)
        .map_err(|error| Violation::new(format!("no ledger: {error}")))?;
    let read = |line: &str| {
        serde_json::from_str(line)
            .map_err(|error| Violation::new(format!("not a line of the ledger: {error}: {line}")))
    };
    text.lines().map(read).collect()
}

/// All evidence that is checked.
struct Evidence {
    history: Vec<RecordedCall>,
    events: Vec<ReplicaEvent>,
    pauses: Vec<Pause>,
    left: FinalState,
    lease: Duration,
}

impl Evidence {
    fn check_executions(&self) -> CheckResult<ChaosReport> {
        let lease = u64::try_from(self.lease.as_micros()).unwrap_or(u64::MAX);
        let executions = check_executions(&self.events, &self.pauses, lease)?;
        let world = ExternalWorld::after(&self.events);
        check_leftovers(&self.history, &self.left, &executions, &world)?;
        let observed = |is: fn(&ObservedReply) -> bool| {
            self.history.iter().filter(|it| is(&it.observed)).count()
        };
        let mut report = ChaosReport {
            requests: self.history.len() as u64,
            unknown: observed(|it| *it == ObservedReply::Unknown) as u64,
            accepted: observed(|it| matches!(it, ObservedReply::Accepted(_))) as u64,
            operations: self.left.rows.len() as u64,
            given_up: self
                .left
                .rows
                .iter()
                .filter(|row| row.is_given_up())
                .count() as u64,
            belated: world.refused,
            executions,
            ..ChaosReport::default()
        };
        for (instance, recorded) in by_instance(&self.history) {
            let of = |row: &&EndedOperation| row.instance == instance;
            let mut names = Names::default();
            let facts = OperationEnds::of(self.left.rows.iter().filter(of), &mut names);
            report.instances += 1;
            match explain(&recorded, &mut names, &facts)? {
                SearchEnd::Explained => {}
                SearchEnd::Undecided => report.undecided += 1,
            }
        }
        Ok(report)
    }
}
