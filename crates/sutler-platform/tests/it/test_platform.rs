//! A platform over the store in memory, with one broker, its catalog, and a namespace.

use crate::scripted_broker::ScriptedBroker;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Clock, Commit, KeyRing, MemoryStore, OperationId, Store, StoreTime};
use sutler_osb::ServiceOffering;
use sutler_platform::author::Author;
use sutler_platform::broker_request::Profile;
use sutler_platform::catalog::{BrokerScope, OfferedPlan, OfferedService};
use sutler_platform::commands::{
    ChangeOptions, InstanceOutcome, InstancePatch, WantedBinding, WantedInstance, WantedNamespace,
};
use sutler_platform::lifecycle::binding::TargetResource;
use sutler_platform::lifecycle::instance::{Instance, InstanceReply};
use sutler_platform::lifecycle::intent::{IntentEnd, IntentNumber};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_platform::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerState, BrokerTls,
    CatalogRecord, Record, ResourceName, broker_queue,
};
use sutler_platform::spec::{Parameters, ParametersPatch};
use sutler_records::LoadedDocument;
use uuid::Uuid;

/// The only broker.
pub(crate) const BROKER: Uuid = Uuid::from_u128(0xb);
/// Longest wait for anything, in simulated or real time.
const WITHIN: Duration = Duration::from_secs(600);

/// A platform and its broker.
pub(crate) struct TestPlatform {
    /// The platform.
    pub(crate) platform: Platform,
    /// The broker.
    pub(crate) broker: ScriptedBroker,
    /// The store, for another platform over it.
    pub(crate) store: Arc<MemoryStore>,
    keys: Arc<KeyRing>,
}

/// A name.
pub(crate) fn name(text: &str) -> ResourceName {
    ResourceName::try_from(text).expect("a name")
}

/// The only namespace.
pub(crate) fn namespace() -> ResourceName {
    name("app")
}

/// A person.
pub(crate) fn person(username: &str) -> Author {
    Author {
        username: username.to_owned(),
        uid: format!("uid-{username}"),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

/// A change of a person.
pub(crate) fn by(username: &str) -> ChangeOptions {
    ChangeOptions::by(person(username))
}

/// An instance of the small plan.
pub(crate) fn small(instance: &str, parameters: Value) -> WantedInstance {
    let Value::Object(parameters) = parameters else {
        panic!("not an object");
    };
    WantedInstance {
        name: name(instance),
        broker: None,
        class: "postgresql".to_owned(),
        plan: "small".to_owned(),
        maintenance_version: None,
        parameters: Parameters::new(parameters),
        parameter_sources: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        osb_id: None,
    }
}

/// A change of the plan.
pub(crate) fn plan_patch(plan: &str) -> InstancePatch {
    InstancePatch {
        plan: Some(plan.to_owned()),
        ..InstancePatch::default()
    }
}

/// A change of parameters.
pub(crate) fn parameters_patch(parameters: Value) -> InstancePatch {
    let Value::Object(parameters) = parameters else {
        panic!("not an object");
    };
    InstancePatch {
        parameters: ParametersPatch::new(parameters),
        ..InstancePatch::default()
    }
}

/// A change of a label.
pub(crate) fn label_patch(label: &str, value: &str) -> InstancePatch {
    InstancePatch {
        labels: BTreeMap::from([(label.to_owned(), Some(value.to_owned()))]),
        ..InstancePatch::default()
    }
}

/// The intent that a command accepted.
pub(crate) fn accepted(outcome: &InstanceOutcome) -> IntentNumber {
    match outcome.reply {
        InstanceReply::Accepted(number) => number,
        ref other => panic!("not accepted: {other:?}"),
    }
}

/// The clock of the store: tokio's, which the tests pause.
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> StoreTime {
        StoreTime(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

impl TestPlatform {
    /// A platform with the broker registered and the namespace created.
    pub(crate) async fn start() -> Self {
        let clock = Arc::new(PausedClock(tokio::time::Instant::now()));
        let store = Arc::new(MemoryStore::with_clock(clock));
        let keys = Arc::new(KeyRing::ephemeral());
        let broker = ScriptedBroker::default();
        let platform = start(store.clone(), keys.clone(), &broker).await;
        register(&platform).await;
        let wanted = WantedNamespace::default();
        platform
            .put_namespace(&namespace(), &wanted)
            .await
            .expect("a namespace");
        // What was gone when a namespace was created belonged to an earlier one of its name.
        tokio::time::advance(Duration::from_millis(1)).await;
        Self {
            platform,
            broker,
            store,
            keys,
        }
    }

    /// Another process over the same store.
    pub(crate) async fn replica(&self) -> Platform {
        self.replica_over(self.store.clone()).await
    }

    /// Another process, which sees the same store through this one.
    pub(crate) async fn replica_over(&self, store: Arc<dyn Store>) -> Platform {
        start(store, self.keys.clone(), &self.broker).await
    }

    /// Creates an instance, and waits until it is live.
    pub(crate) async fn live_instance(&self, instance: &str, parameters: Value) -> Instance {
        let created = self.create(&small(instance, parameters), "carla").await;
        let end = self.end_of(&created.instance, accepted(&created)).await;
        assert_eq!(end, IntentEnd::Succeeded);
        self.instance(instance).await
    }

    /// An instance as it is now.
    pub(crate) async fn instance(&self, instance: &str) -> Instance {
        let found = self.platform.instance(&namespace(), &name(instance)).await;
        found.expect("an instance")
    }

    /// Asks for an instance.
    pub(crate) async fn create(&self, wanted: &WantedInstance, user: &str) -> InstanceOutcome {
        let (namespace, options) = (namespace(), by(user));
        let created = self.platform.create_instance(&namespace, wanted, &options);
        created.await.expect("accepted")
    }

    /// Asks for the delete of an instance without its bindings.
    pub(crate) async fn delete(&self, instance: &str, user: &str) -> InstanceOutcome {
        let (namespace, instance, person) = (namespace(), name(instance), person(user));
        let deleted = self
            .platform
            .delete_instance(&namespace, &instance, false, &person);
        deleted.await.expect("accepted")
    }

    /// Lets an intent on hold go on.
    pub(crate) async fn resume(
        &self,
        instance: &str,
        number: IntentNumber,
        user: &str,
    ) -> InstanceOutcome {
        let (namespace, instance, options) = (namespace(), name(instance), by(user));
        let resumed = self
            .platform
            .resume_intent(&namespace, &instance, number, &options);
        resumed.await.expect("accepted")
    }

    /// Changes an instance.
    pub(crate) async fn patch(
        &self,
        instance: &str,
        patch: &InstancePatch,
        user: &str,
    ) -> InstanceOutcome {
        let (namespace, instance, options) = (namespace(), name(instance), by(user));
        let patched = self
            .platform
            .patch_instance(&namespace, &instance, patch, &options);
        patched.await.expect("accepted")
    }

    /// Waits for the end of an intent.
    pub(crate) async fn end_of(&self, instance: &Instance, number: IntentNumber) -> IntentEnd {
        let operation = operation_of(instance, number);
        let lane = self
            .platform
            .records()
            .keys
            .instance(&instance.namespace, instance.uid);
        let end = self.platform.wait_for_end(&lane, operation, WITHIN).await;
        end.expect("it is read").expect("it ends")
    }
}

/// A binding without parameters.
pub(crate) fn wanted_binding(instance: &str, binding: &str) -> WantedBinding {
    WantedBinding {
        name: name(binding),
        instance: name(instance),
        parameters: Parameters::default(),
        parameter_sources: Vec::new(),
        target: TargetResource::Credentials,
        transforms: Default::default(),
        rotation: None,
        osb_id: None,
    }
}

/// Creates a binding, and waits until it has credentials.
pub(crate) async fn bound(platform: &Platform, wanted: &WantedBinding) {
    let (namespace, carla) = (namespace(), person("carla"));
    let created = platform.create_binding(&namespace, wanted, &carla, None);
    let binding = created.await.expect("accepted").binding;
    let keys = &platform.records().keys;
    let lane = keys.binding(&binding.namespace, binding.instance, binding.uid);
    let operation = OperationId(binding.pending[0].operation.0);
    let end = platform.wait_for_end(&lane, operation, WITHIN).await;
    let end = end.expect("it is read");
    assert_eq!(end, Some(IntentEnd::Succeeded));
}

/// The operation of a pending intent.
pub(crate) fn operation_of(instance: &Instance, number: IntentNumber) -> OperationId {
    let intent = instance.intent(number).expect("it is pending");
    OperationId(intent.operation.0)
}

async fn start(store: Arc<dyn Store>, keys: Arc<KeyRing>, broker: &ScriptedBroker) -> Platform {
    let cluster = "test-cluster".to_owned().try_into().expect("an id");
    let parts = PlatformParts {
        store,
        keys,
        connector: Arc::new(broker.clone()),
        settings: PlatformSettings::of_cluster(cluster),
    };
    let platform = Platform::start(parts).await.expect("a platform");
    platform.engine().set_queue(&broker_queue(BROKER), 8);
    platform
}

/// The broker, as if it had been registered and its catalog read.
async fn register(platform: &Platform) {
    let registration = BrokerRegistration {
        uid: BROKER,
        name: name("test-broker"),
        scope: BrokerScope::AllNamespaces,
        url: "http://broker.test".to_owned(),
        authentication: BrokerAuthentication::None,
        tls: BrokerTls::default(),
        profile: Profile::Kubernetes,
        restrictions: Default::default(),
        access: Default::default(),
        limits: BrokerLimits::default(),
        options: BrokerOptions::default(),
        revision: 1,
        created: platform.records().now(),
        created_by: person("olga"),
        deregistering: None,
    };
    let records = platform.records();
    let offering: ServiceOffering = serde_json::from_value(offering()).expect("an offering");
    let service = OfferedService::from_offering(offering.clone());
    let mut commit = Commit::new();
    let absent = LoadedDocument::absent();
    let key = records.keys.broker(None, &registration.name);
    commit = records
        .documents
        .put(commit, &key, &absent, &Record::of(registration));
    let state = BrokerState {
        catalog_revision: 1,
        ..BrokerState::default()
    };
    let key = records.keys.broker_state(BROKER);
    commit = records
        .documents
        .put(commit, &key, &LoadedDocument::absent(), &Record::of(state));
    for plan in &offering.plans {
        let plan = OfferedPlan::from_plan(offering.id.clone(), plan.clone());
        let key = records
            .keys
            .service_plan(BROKER, plan.service_id(), plan.id());
        let record = Record::of(CatalogRecord::Plan(plan));
        commit = records
            .documents
            .put(commit, &key, &LoadedDocument::absent(), &record);
    }
    let key = records.keys.service_offering(BROKER, service.id());
    let record = Record::of(CatalogRecord::Service(service));
    commit = records
        .documents
        .put(commit, &key, &LoadedDocument::absent(), &record);
    records
        .documents
        .store
        .commit(&commit)
        .await
        .expect("it is written");
}

fn offering() -> Value {
    json!({
        "id": "pg", "name": "postgresql", "description": "databases",
        "bindable": true, "plan_updateable": true, "instances_retrievable": true,
        "bindings_retrievable": true,
        "plans": [
            {"id": "pg-small", "name": "small", "description": "a small one"},
            {"id": "pg-large", "name": "large", "description": "a large one"},
        ],
    })
}
