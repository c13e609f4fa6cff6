//! Replicas of a platform over one store in memory. Tokio's clock is paused, and the clock of the store follows it.

use super::samples::{name, operator};
use super::scripted_broker::{ScriptedBroker, ScriptedConnector};
use async_trait::async_trait;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_client::BrokerEvent;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{
    Clock, Commit, Engine, EngineSettings, Executor, Key, KeyRing, Lost, MemoryStore,
    OperationFilter, OperationList, OperationRow, Queue, Run, RunResult, State, Store, StoreTime,
    WorkerId,
};
use sutler_platform::brokers::{
    BrokerDefinition, BrokerView, Brokers, BrokersSettings, PROBE_VERB, QueueControl, SYNC_VERB,
};
use sutler_platform::lifecycle::breaker::{Breaker, ExchangeOutcome};
use sutler_platform::platform_records::PlatformRecords;
use sutler_platform::records::{
    BrokerState, Record, SERVICE_OFFERING, SERVICE_PLAN, TypedRecord, broker_queue, platform_queue,
};
use sutler_records::StoreClock;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longest time that a test waits for something, on the paused clock.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Clock of the store that follows tokio's.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> StoreTime {
        StoreTime(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

type InterceptHook = Box<dyn FnMut(&Call<'_>) -> Intercept + Send>;

/// A platform: its store and the brokers of the test.
pub(super) struct PlatformFixture {
    store: Arc<dyn Store>,
    hook: Arc<Mutex<InterceptHook>>,
    ring: Arc<KeyRing>,
    pub(super) broker: Arc<ScriptedBroker>,
}

impl PlatformFixture {
    pub(super) fn new() -> Self {
        let memory = MemoryStore::with_clock(Arc::new(PausedClock(Instant::now())));
        let hook: Arc<Mutex<InterceptHook>> = Arc::new(Mutex::new(Box::new(|_| Intercept::Pass)));
        let shared = hook.clone();
        let store = InterceptingStore::new(Arc::new(memory), move |call| {
            let mut hook = shared.lock().unwrap();
            (*hook)(call)
        });
        Self {
            store: Arc::new(store),
            hook,
            ring: Arc::new(KeyRing::ephemeral()),
            broker: ScriptedBroker::silent(),
        }
    }

    /// Decides about all later calls of the store.
    pub(super) fn intercept(&self, hook: impl FnMut(&Call<'_>) -> Intercept + Send + 'static) {
        *self.hook.lock().unwrap() = Box::new(hook);
    }

    /// A replica that runs nothing and follows nobody.
    pub(super) async fn idle_replica(&self) -> Replica {
        let clock = StoreClock::read(self.store.as_ref()).await;
        let clock = clock.expect("the store answers");
        let records = PlatformRecords::new(self.store.clone(), self.ring.clone(), clock);
        let connector = Arc::new(ScriptedConnector(self.broker.clone()));
        let settings = BrokersSettings::default();
        let brokers = Arc::new(Brokers::new(records.clone(), connector, settings));
        let queues = Arc::new(RecordedQueues::default());
        brokers.attach(queues.clone());
        Replica {
            brokers,
            records,
            queues,
            engine: None,
            stop: CancellationToken::new(),
            following: None,
        }
    }

    /// A replica that follows the others and runs nothing.
    pub(super) async fn following_replica(&self) -> Replica {
        let mut replica = self.idle_replica().await;
        replica.follow();
        replica
    }

    /// A replica that runs operations, too.
    pub(super) async fn replica(&self) -> Replica {
        let mut replica = self.following_replica().await;
        let executor = BrokersExecutor(replica.brokers.clone());
        let settings = EngineSettings::for_queue(platform_queue(), 8);
        let engine = Engine::start(self.store.clone(), Arc::new(executor), settings).await;
        replica.engine = Some(engine.expect("the store grants a lease"));
        replica
    }
}

/// The queues of an engine, as brokers set them.
#[derive(Default)]
pub(super) struct RecordedQueues(Mutex<BTreeMap<String, usize>>);

impl QueueControl for RecordedQueues {
    fn set_queue(&self, queue: &Queue, limit: usize) {
        let mut queues = self.0.lock().unwrap();
        queues.insert(queue.as_str().to_owned(), limit);
    }

    fn forget_queue(&self, queue: &Queue) {
        self.0.lock().unwrap().remove(queue.as_str());
    }

    fn look_now(&self, _: &Queue) {}
}

/// Runs the operations of brokers.
struct BrokersExecutor(Arc<Brokers>);

#[async_trait]
impl Executor for BrokersExecutor {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        match run.operation().row.verb.as_ref() {
            PROBE_VERB => self.0.execute_probe(run).await,
            SYNC_VERB => self.0.execute_sync(run).await,
            other => panic!("{other} is none of the brokers' operations"),
        }
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        match run.operation().row.verb.as_ref() {
            PROBE_VERB => self.0.give_up_probe(run).await,
            _ => self.0.give_up_sync(run).await,
        }
    }
}

/// A process of the platform.
pub(super) struct Replica {
    pub(super) brokers: Arc<Brokers>,
    pub(super) records: PlatformRecords,
    queues: Arc<RecordedQueues>,
    engine: Option<Engine>,
    stop: CancellationToken,
    following: Option<JoinHandle<()>>,
}

impl Replica {
    pub(super) fn follow(&mut self) {
        let (brokers, stop) = (self.brokers.clone(), self.stop.clone());
        let following = tokio::spawn(async move { brokers.follow(stop).await });
        self.following = Some(following);
    }

    /// Ends it in order.
    pub(super) async fn close(self) {
        self.stop.cancel();
        if let Some(engine) = self.engine {
            engine.shut_down(Duration::from_secs(1)).await;
        }
        if let Some(following) = self.following {
            following.await.expect("it ends in order");
        }
    }

    /// Ends it as a crash does: it writes nothing any more.
    pub(super) fn kill_follower(&mut self) {
        if let Some(following) = self.following.take() {
            following.abort();
        }
    }

    /// The worker that runs its operations.
    pub(super) fn worker(&self) -> WorkerId {
        self.engine.as_ref().expect("it runs operations").worker()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.records.now()
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.records.documents.store
    }

    /// Registers a broker for all namespaces.
    pub(super) async fn register(&self, broker: &str) -> Uuid {
        self.register_as(broker, definition()).await
    }

    pub(super) async fn register_as(&self, broker: &str, definition: BrokerDefinition) -> Uuid {
        let by = operator();
        let registering = self
            .brokers
            .register(None, &name(broker), definition, &by)
            .await;
        registering.expect("it is registered").uid
    }

    pub(super) async fn view(&self, broker: Uuid) -> Arc<BrokerView> {
        let view = self.brokers.view(broker).await;
        view.expect("it is registered")
    }

    pub(super) async fn state(&self, broker: Uuid) -> BrokerState {
        let state = self.brokers.state(broker).await.expect("it is readable");
        state.expect("it is registered")
    }

    pub(super) async fn breaker(&self, broker: Uuid) -> Breaker {
        self.state(broker).await.breaker
    }

    /// The limit of a broker's queue in this process; `None`: it is not served.
    pub(super) fn queue_limit(&self, broker: Uuid) -> Option<usize> {
        let queues = self.queues.0.lock().unwrap();
        queues.get(broker_queue(broker).as_str()).copied()
    }

    /// An exchange ends that began just now.
    pub(super) async fn exchange(&self, broker: Uuid, outcome: ExchangeOutcome) {
        let begun = self.now();
        self.brokers
            .exchange_ended(broker, begun, outcome, None)
            .await;
    }

    /// An exchange ends whose answer says something of the broker.
    pub(super) async fn exchange_with(&self, broker: Uuid, event: BrokerEvent) {
        let (begun, outcome) = (self.now(), ExchangeOutcome::Answered);
        let event = Some(event);
        self.brokers
            .exchange_ended(broker, begun, outcome, event)
            .await;
    }

    /// Opens the breaker by a refusal of the credentials.
    pub(super) async fn trip(&self, broker: Uuid) {
        self.exchange(broker, ExchangeOutcome::Unauthorized).await;
        assert!(matches!(self.breaker(broker).await, Breaker::Open(_)));
    }

    /// Names of the known offerings and plans; a `-` marks a removed one.
    pub(super) async fn items(&self, broker: Uuid) -> Vec<String> {
        let view = self.view(broker).await;
        let known = view.catalog.known();
        let mark = |is_removed| if is_removed { "-" } else { "" };
        let services = known.services().values();
        let services = services.map(|it| format!("{}{}", mark(it.is_removed()), it.name()));
        let plans = known.plans().values();
        let plans = plans.map(|it| {
            let (mark, service) = (mark(it.is_removed()), it.service_id());
            format!("{mark}{service}/{}", it.name())
        });
        services.chain(plans).collect()
    }

    /// Number of stored items of a broker, read from the store.
    pub(super) async fn stored_items(&self, broker: Uuid) -> usize {
        let mut count = 0;
        for kind in [SERVICE_OFFERING, SERVICE_PLAN] {
            let prefix = self.records.keys.all_below(kind, &broker.to_string());
            let list = sutler_journal::List::Prefix(prefix);
            let page = self.store().list(&list, None, 10_000).await;
            count += page.expect("the store answers").documents.len();
        }
        count
    }

    /// Writes a document, whatever was there.
    pub(super) async fn put<T: TypedRecord>(&self, key: &Key, contents: T) {
        let commit = self.with_put(Commit::new(), key, contents).await;
        let written = self.store().commit(&commit).await;
        written.expect("it is written");
    }

    /// Adds a document to a commit, whatever is there now.
    pub(super) async fn with_put<T: TypedRecord>(
        &self,
        commit: Commit,
        key: &Key,
        contents: T,
    ) -> Commit {
        let was = self.records.load::<T>(key).await.expect("it is readable");
        let next = Record::of(contents);
        self.records.documents.put(commit, key, &was, &next)
    }

    /// Operations that have not ended.
    pub(super) async fn unfinished(&self) -> Vec<OperationRow> {
        self.operations(OperationFilter::Unfinished).await
    }

    /// All operations.
    pub(super) async fn operations(&self, filter: OperationFilter) -> Vec<OperationRow> {
        let list = OperationList {
            filter,
            before: None,
            limit: 1_000,
        };
        let found = self.store().operations(&list).await;
        found.expect("the store answers")
    }

    /// Verbs and states of the operations that have not ended.
    pub(super) async fn pending_verbs(&self) -> Vec<String> {
        let rows = self.unfinished().await;
        let mut verbs: Vec<String> = rows
            .iter()
            .map(|row| match row.state {
                State::Ready => row.verb.to_string(),
                other => format!("{} {other:?}", row.verb),
            })
            .collect();
        verbs.sort_unstable();
        verbs
    }

    /// Waits until the syncs that were requested are served.
    pub(super) async fn until_synced(&self, broker: Uuid) {
        until("the catalog is synced", async || {
            let sync = self.state(broker).await.sync;
            sync.requested == sync.served
        })
        .await;
    }
}

/// A broker with the defaults.
pub(super) fn definition() -> BrokerDefinition {
    BrokerDefinition::at("https://broker.example")
}

/// Waits until something is so. The clock is paused, so this takes no time.
pub(super) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < WAIT_MAX, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Lets time pass until a while later.
pub(super) async fn until_passed(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
