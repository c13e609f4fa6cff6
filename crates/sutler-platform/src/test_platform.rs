//! A platform over a store in memory, with one broker that answers as a test says.
//!
//! Operations run through a real engine. All clocks are tokio's, which tests stop: waiting takes no time.
//! `scripted_broker.rs` is the broker, `resources.rs` creates and reads instances and bindings.

mod resources;
mod scripted_broker;

pub(crate) use resources::{bind_request, change_facts, facts, large_change};
pub(crate) use scripted_broker::{
    Endpoint, ScriptedAnswer, ScriptedBroker, ScriptedConnector, body_of, header,
};

use crate::author::Author;
use crate::broker_request::{Namespace, Profile};
use crate::brokers::{Brokers, BrokersSettings};
use crate::catalog::{AccessRules, BrokerScope, CatalogRestrictions, OfferedPlan, OfferedService};
use crate::context::PlatformContext;
use crate::end_waiters::EndWaiters;
use crate::executor::PlatformExecutor;
use crate::platform_records::PlatformRecords;
use crate::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerState, BrokerTls,
    CatalogRecord, NamespaceRecord, NamespaceState, Record, ResourceName, TypedRecord,
    broker_queue, platform_queue,
};
use crate::retention::RetentionSettings;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    Clock, Commit, Engine, EngineSettings, Key, KeyRing, MemoryStore, QueueSettings, Store,
    StoreTime,
};
use sutler_osb::{NonEmptyText, ServiceOffering};
use sutler_records::{LoadedDocument, StoreClock};
use uuid::Uuid;

/// The broker.
pub(crate) const BROKER: Uuid = Uuid::from_u128(0xb0);
/// The namespace.
pub(crate) const NAMESPACE: &str = "app";
/// Requests in flight to the broker.
const IN_FLIGHT_MAX: usize = 8;
/// Looks of a test for what it waits for, and the time between two.
const LOOKS_MAX: usize = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A running platform.
pub(crate) struct TestPlatform {
    pub(crate) context: Arc<PlatformContext>,
    pub(crate) broker: Arc<ScriptedBroker>,
    pub(crate) engine: Engine,
    settings: TestSettings,
}

/// Choices of a test.
#[derive(Clone)]
pub(crate) struct TestSettings {
    /// What its operator chose for the broker.
    pub(crate) options: BrokerOptions,
    /// Its offering.
    pub(crate) offering: Value,
    /// How often the engine looks for operations; rarely if much time passes.
    pub(crate) look_every: Duration,
    /// Lifetime of a lease.
    pub(crate) lease: Duration,
    /// How long what has ended is kept.
    pub(crate) retention: RetentionSettings,
    /// What seals every record.
    pub(crate) keys: Arc<KeyRing>,
}

impl Default for TestSettings {
    fn default() -> Self {
        let plan = json!({"id": "small", "name": "small", "description": "A plan."});
        Self {
            options: BrokerOptions::default(),
            offering: json!({
                "id": "postgresql", "name": "postgresql", "description": "A database.",
                "bindable": true, "bindings_retrievable": true, "plans": [plan],
            }),
            look_every: Duration::from_secs(1),
            lease: Duration::from_secs(30),
            retention: RetentionSettings::default(),
            keys: Arc::new(KeyRing::ephemeral()),
        }
    }
}

/// Tokio's clock as the clock of a store.
struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> StoreTime {
        StoreTime(1_750_000_000_000_000).plus(self.0.elapsed())
    }
}

/// A person.
pub(crate) fn person(name: &str) -> Author {
    Author {
        username: name.to_owned(),
        uid: format!("uid-{name}"),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

impl TestPlatform {
    /// A platform with the usual broker.
    pub(crate) async fn start() -> Self {
        Self::with(TestSettings::default()).await
    }

    /// A platform with these choices.
    pub(crate) async fn with(settings: TestSettings) -> Self {
        Self::over(settings, |store, _| store).await
    }

    /// A platform whose store `wrap` may break, e.g. after what the broker got.
    pub(crate) async fn over(
        settings: TestSettings,
        wrap: impl FnOnce(Arc<dyn Store>, Arc<ScriptedBroker>) -> Arc<dyn Store>,
    ) -> Self {
        let broker = Arc::new(ScriptedBroker::default());
        let clock = Arc::new(TokioClock(tokio::time::Instant::now()));
        let store = wrap(Arc::new(MemoryStore::with_clock(clock)), broker.clone());
        let clock = StoreClock::read(store.as_ref()).await.expect("it answers");
        let records = PlatformRecords::new(store, settings.keys.clone(), clock);
        write_broker(&records, &settings).await;
        write_namespace(&records).await;
        let (context, engine) = begin(records, &broker, &settings).await;
        Self {
            context,
            broker,
            engine,
            settings,
        }
    }

    /// Ends the process in the middle of what it does, and starts another one.
    pub(crate) async fn restart(self) -> Self {
        self.engine.shut_down(Duration::ZERO).await;
        let records = self.context.records.clone();
        let (context, engine) = begin(records, &self.broker, &self.settings).await;
        Self {
            context,
            engine,
            ..self
        }
    }

    /// Another process over the same store.
    pub(crate) async fn replica(&self) -> Self {
        let records = self.context.records.clone();
        let (context, engine) = begin(records, &self.broker, &self.settings).await;
        Self {
            context,
            broker: self.broker.clone(),
            engine,
            settings: self.settings.clone(),
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..LOOKS_MAX {
            if is_so().await {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!(
            "not so in the end: {what}; the broker got {:?}",
            self.broker.targets()
        );
    }

    /// A document that exists.
    pub(crate) async fn read<T: TypedRecord>(&self, key: &Key) -> T {
        let found = self.context.records.load::<T>(key).await;
        let found = found.expect("it is read").state.into_inner();
        found.expect("it exists")
    }
}

async fn begin(
    records: PlatformRecords,
    broker: &Arc<ScriptedBroker>,
    settings: &TestSettings,
) -> (Arc<PlatformContext>, Engine) {
    let connector = Arc::new(ScriptedConnector(broker.clone()));
    let brokers = Brokers::new(records.clone(), connector, BrokersSettings::default());
    let context = Arc::new(PlatformContext {
        brokers: Arc::new(brokers),
        waiters: EndWaiters::default(),
        lease: settings.lease,
        retention: settings.retention,
        records,
    });
    let store = context.records.documents.store.clone();
    let planned = crate::periodic::plan_all(&context).await;
    planned.expect("they are planned");
    let executor = Arc::new(PlatformExecutor::new(context.clone()));
    let mut engine = EngineSettings::for_queue(broker_queue(BROKER), IN_FLIGHT_MAX);
    engine.queues.push(QueueSettings {
        queue: platform_queue(),
        limit: 1,
    });
    engine.look_every = settings.look_every;
    engine.lease = settings.lease;
    let engine = Engine::start(store, executor, engine).await;
    (context, engine.expect("it gets a lease"))
}

async fn put<T: TypedRecord>(records: &PlatformRecords, key: &Key, contents: T) {
    let documents = &records.documents;
    let (was, next) = (LoadedDocument::absent(), Record::of(contents));
    let commit = documents.put(Commit::new(), key, &was, &next);
    let written = documents.store.commit(&commit).await;
    written.expect("it is written");
}

async fn write_broker(records: &PlatformRecords, settings: &TestSettings) {
    let name = ResourceName::try_from("broker").expect("a name");
    let registration = BrokerRegistration {
        uid: BROKER,
        name: name.clone(),
        scope: BrokerScope::AllNamespaces,
        url: "https://broker.example".to_owned(),
        authentication: BrokerAuthentication::None,
        tls: BrokerTls::default(),
        profile: Profile::Kubernetes,
        restrictions: CatalogRestrictions::default(),
        access: AccessRules::default(),
        limits: BrokerLimits::default(),
        options: settings.options.clone(),
        revision: 1,
        created: Timestamp::UNIX_EPOCH,
        created_by: person("operator"),
        deregistering: None,
    };
    put(records, &records.keys.broker(None, &name), registration).await;
    let state = BrokerState {
        catalog_revision: 1,
        ..BrokerState::default()
    };
    put(records, &records.keys.broker_state(BROKER), state).await;
    let offering: ServiceOffering =
        serde_json::from_value(settings.offering.clone()).expect("an offering");
    let service = offering.id.clone();
    for plan in offering.plans.clone() {
        let key = records.keys.service_plan(BROKER, &service, &plan.id);
        let plan = OfferedPlan::from_plan(service.clone(), plan);
        put(records, &key, CatalogRecord::Plan(plan)).await;
    }
    let key = records.keys.service_offering(BROKER, &service);
    let offering = OfferedService::from_offering(offering);
    put(records, &key, CatalogRecord::Service(offering)).await;
}

async fn write_namespace(records: &PlatformRecords) {
    let text = |text: &str| NonEmptyText::try_from(text).expect("a text");
    let namespace = NamespaceRecord {
        facts: Namespace {
            name: text(NAMESPACE),
            uid: text("namespace-uid"),
            cluster_id: text("cluster"),
            annotations: BTreeMap::new().try_into().expect("none"),
            cloud_foundry: None,
        },
        labels: BTreeMap::new(),
        created: Timestamp::UNIX_EPOCH,
        state: NamespaceState::Active,
    };
    let name = ResourceName::try_from(NAMESPACE).expect("a name");
    put(records, &records.keys.namespace(&name), namespace).await;
}
