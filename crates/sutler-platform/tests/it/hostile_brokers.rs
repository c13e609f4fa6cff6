//! What the platform ends up with after brokers that answer to do harm, over real sockets: nothing that may exist is
//! forgotten, and nothing that they send is kept without bounds.

use crate::raw_broker::{RawAnswer, RawBroker};
use crate::scripted_broker::Reply;
use crate::test_platform::{TestPlatform, accepted, by, name, namespace, person, small};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::EgressPolicy;
use sutler_journal::{KeyRing, MemoryStore, OperationId};
use sutler_platform::brokers::{BrokerDefinition, HttpConnector};
use sutler_platform::commands::{WantedBinding, WantedNamespace};
use sutler_platform::lifecycle::binding::{BindingReply, TargetResource, Transforms};
use sutler_platform::lifecycle::instance::Instance;
use sutler_platform::lifecycle::intent::{BrokerStatement, IntentEnd};
use sutler_platform::lifecycle::orphan::OrphanCause;
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_platform::records::OrphanRecord;
use sutler_platform::spec::Parameters;
use uuid::Uuid;

/// Longest wait for the end of an intent, of which each try may take a second.
const WITHIN: Duration = Duration::from_secs(60);
/// Time between two looks at a document.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn good_catalog() -> RawAnswer {
    let plan = json!({"id": "pg-small", "name": "small", "description": "a small one"});
    let offering = json!({
        "id": "pg", "name": "postgresql", "description": "databases", "bindable": true,
        "plans": [plan],
    });
    RawAnswer::json(200, &json!({"services": [offering]}).to_string())
}

/// A platform with one hostile broker.
struct AttackedPlatform {
    platform: Platform,
    broker: RawBroker,
    uid: Uuid,
}

impl AttackedPlatform {
    async fn start(
        catalog: RawAnswer,
        answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static,
    ) -> Self {
        let broker = RawBroker::start(catalog, answer).await;
        let cluster = "test-cluster".to_owned().try_into().expect("an id");
        let parts = PlatformParts {
            store: Arc::new(MemoryStore::new()),
            keys: Arc::new(KeyRing::ephemeral()),
            connector: Arc::new(HttpConnector::new(EgressPolicy::Anywhere)),
            settings: PlatformSettings::of_cluster(cluster),
        };
        let platform = Platform::start(parts).await.expect("a platform");
        let wanted = WantedNamespace::default();
        let namespace = platform.put_namespace(&namespace(), &wanted).await;
        namespace.expect("a namespace");
        let mut definition = BrokerDefinition::at(broker.url());
        definition.limits.answer_within = Duration::from_secs(1);
        let (hostile, by) = (name("hostile"), person("olga"));
        let registered = platform
            .brokers()
            .register(None, &hostile, definition, &by)
            .await;
        let uid = registered.expect("it is registered").uid;
        Self {
            platform,
            broker,
            uid,
        }
    }

    /// A platform that knows the plans of the broker.
    async fn with_catalog(answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static) -> Self {
        let attacked = Self::start(good_catalog(), answer).await;
        until("the catalog is read", async || {
            let view = attacked.platform.brokers().view(attacked.uid).await;
            view.is_ok_and(|it| it.catalog.known().plans().len() == 1)
        })
        .await;
        attacked
    }

    /// Creates an instance, and waits for the end of that.
    async fn create(&self) -> (Instance, IntentEnd) {
        let (namespace, options) = (namespace(), by("carla"));
        let wanted = small("db", json!({}));
        let created = self.platform.create_instance(&namespace, &wanted, &options);
        let created = created.await.expect("accepted");
        let instance = created.instance.clone();
        let number = accepted(&created);
        let operation = instance.intent(number).expect("it is pending").operation;
        let keys = &self.platform.records().keys;
        let lane = keys.instance(&instance.namespace, instance.uid);
        let operation = OperationId(operation.0);
        let end = self.platform.wait_for_end(&lane, operation, WITHIN).await;
        (instance, end.expect("it is read").expect("it ends"))
    }

    /// Binds the instance, and waits for the end of that.
    async fn bind(&self) -> IntentEnd {
        let wanted = WantedBinding {
            name: name("db-app"),
            instance: name("db"),
            parameters: Parameters::default(),
            parameter_sources: Vec::new(),
            target: TargetResource::Credentials,
            transforms: Transforms::default(),
            rotation: None,
            osb_id: None,
        };
        let (namespace, by) = (namespace(), person("carla"));
        let bound = self.platform.create_binding(&namespace, &wanted, &by, None);
        let bound = bound.await.expect("accepted");
        let BindingReply::Accepted(number) = bound.reply else {
            panic!("{:?}", bound.reply)
        };
        let binding = &bound.binding;
        let operation = binding.intent(number).expect("it is pending").operation;
        let keys = &self.platform.records().keys;
        let lane = keys.binding(&binding.namespace, binding.instance, binding.uid);
        let operation = OperationId(operation.0);
        let end = self.platform.wait_for_end(&lane, operation, WITHIN).await;
        end.expect("it is read").expect("it ends")
    }

    async fn orphans(&self) -> Vec<OrphanRecord> {
        let page = self.platform.orphans(None, 10).await;
        page.expect("they are read").items
    }
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let waited = tokio::time::timeout(WITHIN, wait).await;
    assert!(waited.is_ok(), "not so: {what}");
}

fn failure(end: IntentEnd) -> BrokerStatement {
    match end {
        IntentEnd::Failed(statement) => statement,
        other => panic!("{other:?}"),
    }
}

/// A create without an answer is sent twice, and what may exist after that is in the ledger.
async fn check_doubtful_create(answer: RawAnswer) {
    let attacked = AttackedPlatform::with_catalog(move |line| match line.starts_with("PUT") {
        true => answer.clone(),
        false => RawAnswer::json(410, "{}"),
    })
    .await;
    let (instance, end) = attacked.create().await;
    let words = failure(end).description.expect("a sentence");
    assert!(words.len() < 1_000, "{words}");
    assert!(!words.contains('\u{1b}'), "{words:?}");
    assert_eq!(attacked.broker.count("PUT"), 2);
    let orphans = attacked.orphans().await;
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].orphan.key.instance, instance.osb_id);
    assert_eq!(orphans[0].orphan.cause, OrphanCause::DoubtfulCreate);
    assert!(orphans[0].operation.is_some(), "it will be deleted");
    attacked.platform.shut_down().await;
}

#[tokio::test]
async fn a_create_with_an_endless_answer_ends_in_the_ledger() {
    check_doubtful_create(RawAnswer::endless()).await;
}

#[tokio::test]
async fn a_create_whose_answer_comes_in_drips_ends_in_the_ledger() {
    check_doubtful_create(RawAnswer::drip()).await;
}

#[tokio::test]
async fn a_create_that_is_answered_with_garbage_ends_in_the_ledger() {
    check_doubtful_create(RawAnswer::garbage()).await;
}

/// Credentials of so many bytes are not kept, and the binding that has them is in the ledger.
async fn check_long_credentials(bytes: usize, cause: OrphanCause) {
    let body = json!({"credentials": {"password": "x".repeat(bytes)}}).to_string();
    let attacked = AttackedPlatform::with_catalog(move |line| {
        match (line.starts_with("PUT"), line.contains("service_bindings")) {
            (true, true) => RawAnswer::json(201, &body),
            (true, false) => RawAnswer::json(201, "{}"),
            // Nothing is ever deleted.
            (false, _) => RawAnswer::json(500, "{}"),
        }
    })
    .await;
    let (instance, end) = attacked.create().await;
    assert_eq!(end, IntentEnd::Succeeded);
    let statement = failure(attacked.bind().await);
    assert!(format!("{statement:?}").len() < 1_000, "{statement:?}");
    let orphans = attacked.orphans().await;
    assert_eq!(orphans.len(), 1);
    let key = &orphans[0].orphan.key;
    assert_eq!(key.instance, instance.osb_id);
    assert!(key.binding.is_some());
    assert_eq!(orphans[0].orphan.cause, cause);
    attacked.platform.shut_down().await;
}

#[tokio::test]
async fn credentials_that_are_too_long_to_be_read_end_in_the_ledger() {
    check_long_credentials(5 * 1024 * 1024, OrphanCause::DoubtfulCreate).await;
}

#[tokio::test]
async fn credentials_that_are_too_long_to_be_kept_end_in_the_ledger() {
    check_long_credentials(1024 * 1024, OrphanCause::UnusableBinding).await;
}

#[tokio::test]
async fn descriptions_are_kept_as_bounded_text_without_control_characters() {
    let escapes = "<script>alert(1)</script>\u{1b}[2J\u{1b}]0;title\u{7}\r\u{202e}evil";
    let words = format!("{escapes}{}", "x".repeat(100_000));
    let body = json!({"error": words, "description": words}).to_string();
    let attacked = AttackedPlatform::with_catalog(move |_| RawAnswer::json(400, &body)).await;
    let (_, end) = attacked.create().await;
    let IntentEnd::Rejected(statement) = end else {
        panic!("{end:?}")
    };
    let shown = statement.description.expect("words");
    assert!(shown.chars().count() <= 4_000);
    // Text, as it was written: pages and terminals show it and do nothing else.
    assert!(shown.starts_with("<script>"), "{shown}");
    for hidden in ['\u{1b}', '\u{7}', '\r', '\u{202e}'] {
        assert!(!shown.contains(hidden), "{hidden:?} in {shown:?}");
        let error = statement.error.as_deref().unwrap_or_default();
        assert!(!error.contains(hidden), "{hidden:?} in {error:?}");
    }
    assert_eq!(attacked.orphans().await, []);
    attacked.platform.shut_down().await;
}

#[tokio::test]
async fn a_catalog_without_an_end_is_a_failed_sync() {
    for catalog in [
        RawAnswer::endless(),
        RawAnswer::drip(),
        RawAnswer::garbage(),
    ] {
        let attacked = AttackedPlatform::start(catalog, |_| RawAnswer::json(410, "{}")).await;
        until("the sync fails", async || {
            let state = attacked.platform.brokers().state(attacked.uid).await;
            let state = state.expect("it is read").expect("it is registered");
            state.sync.failure.is_some()
        })
        .await;
        let view = attacked.platform.brokers().view(attacked.uid).await;
        let view = view.expect("it is registered");
        assert!(view.catalog.known().plans().is_empty());
        attacked.platform.shut_down().await;
    }
}

/// T-58: a broker that says that nothing is there and then carries out a create that was on its way is asked again, when no
/// create can arrive any more.
#[tokio::test(start_paused = true)]
async fn what_a_broker_creates_after_it_said_gone_is_deleted_later() {
    let test = TestPlatform::start().await;
    test.broker.answers([Reply::Lost, Reply::Now(410, "{}")]);
    let created = test.create(&small("db", json!({})), "carla").await;
    let osb_id = created.instance.osb_id.clone();
    test.broker.until_requests(1).await;
    let deleted = test.delete("db", "carla").await;
    let end = test.end_of(&deleted.instance, accepted(&deleted)).await;
    assert_eq!(end, IntentEnd::Succeeded);
    let first = async || {
        let page = test.platform.orphans(None, 10).await;
        let mut rows = page.expect("they are read").items;
        assert_eq!(
            rows.len(),
            1,
            "it is in the ledger from the commit that ended it"
        );
        rows.remove(0).orphan
    };
    let orphan = first().await;
    assert_eq!(
        (&orphan.key.instance, orphan.cause),
        (&osb_id, OrphanCause::LateCreate)
    );
    let guarded_until = orphan.guarded_until;
    assert!(test.platform.records().now() < guarded_until);
    test.broker.until_requests(3).await;
    assert!(test.platform.records().now() >= guarded_until);
    let lines = test.broker.lines();
    let delete = format!("DELETE service_instances/{osb_id}");
    assert_eq!(
        lines.iter().filter(|it| **it == delete).count(),
        2,
        "{lines:?}"
    );
}
