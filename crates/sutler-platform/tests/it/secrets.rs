//! Secrets of users: instances that use one are notified of its changes, and one in use is not deleted.

use crate::scripted_broker::{Reply, ScriptedBroker};
use crate::test_platform::{
    TestPlatform, accepted, bound, name, namespace, person, small, wanted_binding,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use sutler_client::wire::{Method, Request};
use sutler_platform::commands::{CommandError, WantedBinding, WantedInstance, WantedSecret};
use sutler_platform::lifecycle::binding::{TargetResource, Transforms};
use sutler_platform::lifecycle::instance::Instance;
use sutler_platform::lifecycle::intent::{HoldReason, IntentEnd, IntentState};
use sutler_platform::platform::Platform;
use sutler_platform::spec::{ParameterSource, Parameters};

/// Whether an instance watches its secret.
#[derive(Clone, Copy)]
enum Watch {
    Yes,
    No,
}

/// An instance whose parameters come from the secret `init`.
fn with_secret(instance: &str, watch: Watch) -> WantedInstance {
    let source = ParameterSource {
        secret: "init".to_owned(),
        key: None,
        watch: matches!(watch, Watch::Yes),
    };
    WantedInstance {
        parameter_sources: vec![source],
        ..small(instance, json!({"disk": 10}))
    }
}

async fn put(platform: &Platform, password: &str, user: &str) {
    let values = BTreeMap::from([("password".to_owned(), password.as_bytes().to_vec())]);
    let (namespace, secret, person) = (namespace(), name("init"), person(user));
    let wanted = WantedSecret(values);
    let put = platform.put_secret(&namespace, &secret, &wanted, &person);
    put.await.expect("it is written");
}

/// An instance that the broker confirmed, with this secret.
async fn live(test: &TestPlatform, watch: Watch) -> Instance {
    put(&test.platform, "first", "ann").await;
    let created = test.create(&with_secret("db", watch), "carla").await;
    let end = test.end_of(&created.instance, accepted(&created)).await;
    assert_eq!(end, IntentEnd::Succeeded);
    test.instance("db").await
}

/// Waits until the broker got so many requests.
async fn until_requests(test: &TestPlatform, number: usize) {
    let arrive = test.broker.until_requests(number);
    let arrived = tokio::time::timeout(Duration::from_secs(600), arrive).await;
    arrived.expect("the requests arrive");
}

fn updates(test: &TestPlatform) -> Vec<Request> {
    let mut requests = test.broker.requests();
    requests.retain(|it| it.method == Method::Patch);
    requests
}

fn parameters(request: &Request) -> Value {
    ScriptedBroker::body(request)["parameters"].clone()
}

/// Waits until nothing of an instance is pending. Time passes by itself.
async fn until_idle(test: &TestPlatform) {
    for _ in 0..1_000 {
        if test.instance("db").await.pending.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("something is pending still");
}

/// Source: section 6, P-092: the new values alone, in the name of who changed the secret.
/// Holds: P-092.
#[tokio::test(start_paused = true)]
async fn a_changed_secret_updates_the_instances_that_watch_it() {
    let test = TestPlatform::start().await;
    live(&test, Watch::Yes).await;
    put(&test.platform, "second", "ben").await;
    until_requests(&test, 2).await;
    until_idle(&test).await;
    let updates = updates(&test);
    assert_eq!(updates.len(), 1);
    assert_eq!(ScriptedBroker::user(&updates[0]).as_deref(), Some("ben"));
    assert_eq!(parameters(&updates[0]), json!({"password": "second"}));
    let instance = test.instance("db").await;
    let last = instance.ended.back().expect("an intent");
    assert_eq!(last.author, person("ben"));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_does_not_watch_its_secret_is_left_alone() {
    let test = TestPlatform::start().await;
    live(&test, Watch::No).await;
    put(&test.platform, "second", "ben").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(updates(&test), []);
    assert_eq!(test.instance("db").await.generation, 1);
}

/// The same values again are no change.
#[tokio::test(start_paused = true)]
async fn the_same_values_update_nothing() {
    let test = TestPlatform::start().await;
    live(&test, Watch::Yes).await;
    put(&test.platform, "first", "ben").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(updates(&test), []);
}

/// Source: T-35: in the name of its own author, not of who wrote the secret.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_secret_goes_on_when_it_appears() {
    let test = TestPlatform::start().await;
    let created = test.create(&with_secret("db", Watch::No), "carla").await;
    let number = accepted(&created);
    let is_held = async || {
        let instance = test.instance("db").await;
        let intent = instance.intent(number).expect("it is pending").clone();
        let reason = &intent.state;
        matches!(
            reason,
            IntentState::OnHold(HoldReason::UnresolvedParameters(_))
        )
    };
    while !is_held().await {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    put(&test.platform, "first", "ann").await;
    until_requests(&test, 1).await;
    until_idle(&test).await;
    let requests = test.broker.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(ScriptedBroker::user(&requests[0]).as_deref(), Some("carla"));
    let body = parameters(&requests[0]);
    assert_eq!(body, json!({"disk": 10, "password": "first"}));
    assert!(test.instance("db").await.confirmed().is_some());
}

/// An intent that still lacks its key is not repeated again and again.
#[tokio::test(start_paused = true)]
async fn what_still_lacks_its_key_waits_for_another_change() {
    let test = TestPlatform::start().await;
    let mut wanted = with_secret("db", Watch::No);
    wanted.parameter_sources[0].key = Some("parameters".to_owned());
    test.create(&wanted, "carla").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    put(&test.platform, "first", "ann").await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let instance = test.instance("db").await;
    assert!(instance.generation <= 3, "{}", instance.generation);
    assert_eq!(test.broker.requests(), []);
}

/// The process ends after the commit of the secret: another one notifies the instances.
#[tokio::test(start_paused = true)]
async fn a_change_is_not_lost_with_the_process_that_wrote_it() {
    let test = TestPlatform::start().await;
    live(&test, Watch::Yes).await;
    test.platform.shut_down().await;
    put(&test.platform, "second", "ben").await;
    let next = test.replica().await;
    until_requests(&test, 2).await;
    let updates = updates(&test);
    assert_eq!(parameters(&updates[0]), json!({"password": "second"}));
    next.shut_down().await;
}

/// Two processes over one store, and several changes in a row: each instance has the last values, and none twice.
#[tokio::test(start_paused = true)]
async fn replicas_notify_of_a_change_once() {
    let test = TestPlatform::start().await;
    let other = test.replica().await;
    live(&test, Watch::Yes).await;
    put(&test.platform, "second", "ben").await;
    until_requests(&test, 2).await;
    until_idle(&test).await;
    put(&other, "third", "ben").await;
    until_requests(&test, 3).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let sent: Vec<Value> = updates(&test).iter().map(parameters).collect();
    assert_eq!(
        sent,
        [json!({"password": "second"}), json!({"password": "third"})]
    );
    other.shut_down().await;
}

/// The create was sent with the old values: the update follows it.
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_being_created_is_updated_after_that() {
    let test = TestPlatform::start().await;
    put(&test.platform, "first", "ann").await;
    test.broker.answers([Reply::Held]);
    test.create(&with_secret("db", Watch::Yes), "carla").await;
    until_requests(&test, 1).await;
    put(&test.platform, "second", "ben").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    test.broker.release(201, "{}");
    until_requests(&test, 2).await;
    until_idle(&test).await;
    let updates = updates(&test);
    assert_eq!(updates.len(), 1);
    assert_eq!(parameters(&updates[0]), json!({"password": "second"}));
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_use_is_not_deleted() {
    let test = TestPlatform::start().await;
    live(&test, Watch::No).await;
    let (namespace, secret) = (namespace(), name("init"));
    let refused = test.platform.delete_secret(&namespace, &secret).await;
    assert!(matches!(refused, Err(CommandError::SecretInUse(_))));
    let deleted = test.delete("db", "carla").await;
    test.end_of(&deleted.instance, accepted(&deleted)).await;
    let deleted = test.platform.delete_secret(&namespace, &secret).await;
    deleted.expect("nobody uses it");
}

/// Source: T-35, of a binding.
#[tokio::test(start_paused = true)]
async fn a_bind_that_waits_for_a_secret_goes_on_when_it_appears() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({})).await;
    let source = ParameterSource {
        secret: "init".to_owned(),
        key: None,
        watch: false,
    };
    let wanted = WantedBinding {
        name: name("app-db"),
        instance: name("db"),
        parameters: Parameters::default(),
        parameter_sources: vec![source],
        target: TargetResource::Credentials,
        transforms: Transforms::default(),
        rotation: None,
        osb_id: None,
    };
    let (namespace, secret, carla) = (namespace(), name("init"), person("carla"));
    let created = test
        .platform
        .create_binding(&namespace, &wanted, &carla, None);
    created.await.expect("accepted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(test.broker.requests().len(), 1, "it is on hold");
    let credentials = r#"{"credentials": {"password": "p"}}"#;
    test.broker.answers([Reply::Now(201, credentials)]);
    put(&test.platform, "first", "ann").await;
    until_requests(&test, 2).await;
    let bind = test.broker.requests().pop().expect("a bind");
    assert_eq!(ScriptedBroker::user(&bind).as_deref(), Some("carla"));
    assert_eq!(parameters(&bind), json!({"password": "first"}));
    let refused = test.platform.delete_secret(&namespace, &secret).await;
    assert!(matches!(refused, Err(CommandError::SecretInUse(_))));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_a_binding_uses_is_deleted_only_after_the_binding() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({})).await;
    let (namespace, secret, olga) = (namespace(), name("login"), person("olga"));
    let values = BTreeMap::from([("role".to_owned(), b"\"reader\"".to_vec())]);
    let platform = &test.platform;
    let values = WantedSecret(values);
    let written = platform.put_secret(&namespace, &secret, &values, &olga);
    written.await.expect("a secret");
    let mut wanted = wanted_binding("db", "app-db");
    wanted.parameter_sources.push(ParameterSource {
        secret: "login".to_owned(),
        key: None,
        watch: false,
    });
    bound(platform, &wanted).await;
    let refused = platform.delete_secret(&namespace, &secret).await;
    assert!(
        matches!(refused, Err(CommandError::SecretInUse(_))),
        "{refused:?}"
    );
    let binding = name("app-db");
    let abandonment = olga.into();
    let abandoned = platform.abandon_binding(&namespace, &binding, &abandonment);
    abandoned.await.expect("it is abandoned");
    let deleted = platform.delete_secret(&namespace, &secret).await;
    deleted.expect("nothing uses it");
}
