//! Rotations at an interval and before credentials expire, and unbinds of what they replaced.

use crate::lifecycle::binding::{Binding, CreateRequest, IntentCause, RotationPolicy};
use crate::lifecycle::instance::{ConditionStatus, Instance};
use crate::test_platform::{Endpoint, TestPlatform, bind_request, header, person};
use jiff::Timestamp;
use serde_json::json;
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_journal::Key;
use sutler_osb::ORIGINATING_IDENTITY_HEADER;

const MINUTE: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(30 * 60);
const OVERLAP: Duration = Duration::from_secs(10 * 60);

/// A bind with a rotation.
fn rotated(instance: &Instance, every: Option<Duration>, overlap: Duration) -> CreateRequest {
    let policy = RotationPolicy::new(every, overlap).expect("a policy");
    CreateRequest {
        rotation: Some(policy),
        ..bind_request(instance, "app-db")
    }
}

/// A binding that is rotated every half an hour.
async fn bound(platform: &TestPlatform) -> Key {
    let (_, instance) = platform.live_instance().await;
    let key = platform
        .bind(rotated(&instance, Some(EVERY), OVERLAP))
        .await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    key
}

async fn until_rotated(platform: &TestPlatform, key: &Key) {
    let is_rotated = |it: &Binding| {
        let bound = it.generations.iter().filter(|it| it.bound().is_some());
        bound.count() == 2 && it.pending.is_empty()
    };
    platform
        .until_binding(key, "it is rotated", is_rotated)
        .await;
}

fn since(platform: &TestPlatform, from: Timestamp) -> Duration {
    let passed = from.duration_until(platform.context.records.now());
    passed.unsigned_abs()
}

/// Source: T-88. In the name of the binding's author.
#[tokio::test(start_paused = true)]
async fn a_binding_is_rotated_at_its_interval() {
    let platform = TestPlatform::start().await;
    let key = bound(&platform).await;
    let (begin, password) = (
        platform.context.records.now(),
        platform.password(&key).await,
    );
    until_rotated(&platform, &key).await;
    let passed = since(&platform, begin);
    assert!(passed >= EVERY && passed < EVERY + 3 * MINUTE, "{passed:?}");
    assert_ne!(platform.password(&key).await, password);
    let binding: Binding = platform.read(&key).await;
    let last = binding.ended.back().expect("an intent");
    assert_eq!(last.cause, IntentCause::Renewal);
    assert_eq!(last.author, person("ann"));
    let binds = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(binds.len(), 2);
    assert_ne!(binds[0].path, binds[1].path);
    assert_eq!(
        header(&binds[0], ORIGINATING_IDENTITY_HEADER),
        header(&binds[1], ORIGINATING_IDENTITY_HEADER)
    );
}

/// Source: T-89, I-10: what was replaced is unbound after the overlap, and its credentials stay until that is confirmed.
#[tokio::test(start_paused = true)]
async fn a_replaced_generation_is_unbound_after_the_overlap() {
    let platform = TestPlatform::start().await;
    let key = bound(&platform).await;
    until_rotated(&platform, &key).await;
    let (begin, broker) = (platform.context.records.now(), &platform.broker);
    let accepted = json!({"operation": "unbind"});
    broker.answer(Method::Delete, Endpoint::Binding, 202, accepted);
    let in_progress = json!({"state": "in progress"});
    broker.answer(Method::Get, Endpoint::BindingPoll, 200, in_progress);
    let is_polled = async || {
        !broker
            .requests(Method::Get, Endpoint::BindingPoll)
            .is_empty()
    };
    platform.until("the unbind is polled", is_polled).await;
    let passed = since(&platform, begin);
    assert!(
        passed >= OVERLAP - MINUTE && passed < OVERLAP + 3 * MINUTE,
        "{passed:?}"
    );
    let binding: Binding = platform.read(&key).await;
    assert_eq!(binding.generations.len(), 2, "it is not confirmed yet");
    platform
        .until_binding(&key, "it is unbound", |it| it.generations.len() == 1)
        .await;
    let binds = broker.requests(Method::Put, Endpoint::Binding);
    let unbinds = broker.requests(Method::Delete, Endpoint::Binding);
    assert_eq!(unbinds.len(), 1);
    assert_eq!(unbinds[0].path, binds[0].path);
}

/// Two processes over one store rotate it once, and unbind what was replaced once.
#[tokio::test(start_paused = true)]
async fn replicas_rotate_a_binding_once() {
    let platform = TestPlatform::start().await;
    let other = platform.replica().await;
    let key = bound(&platform).await;
    until_rotated(&platform, &key).await;
    platform
        .until_binding(&key, "it is unbound", |it| it.generations.len() == 1)
        .await;
    let broker = &platform.broker;
    assert_eq!(broker.requests(Method::Put, Endpoint::Binding).len(), 2);
    assert_eq!(broker.requests(Method::Delete, Endpoint::Binding).len(), 1);
    other.engine.shut_down(Duration::ZERO).await;
}

/// Source: T-89, section 6.1: the old credentials stay, and the binding says that something failed.
#[tokio::test(start_paused = true)]
async fn a_refused_rotation_keeps_the_credentials_and_says_so() {
    let platform = TestPlatform::start().await;
    let key = bound(&platform).await;
    let password = platform.password(&key).await;
    let refusal = json!({"description": "no more of them"});
    platform
        .broker
        .answer(Method::Put, Endpoint::Binding, 403, refusal);
    platform
        .until_binding(&key, "it failed", |it| it.failed_rotations.is_some())
        .await;
    assert_eq!(platform.password(&key).await, password);
    let binding: Binding = platform.read(&key).await;
    assert_eq!(binding.conditions().stalled, ConditionStatus::True);
    assert_eq!(binding.conditions().ready, ConditionStatus::True);
    let failed = platform.context.records.now();
    until_rotated(&platform, &key).await;
    let passed = since(&platform, failed);
    assert!(
        passed >= 50 * MINUTE,
        "it is not tried again at once: {passed:?}"
    );
}

/// Source: T-88, P-104: the broker says until when the credentials should be renewed.
/// Holds: P-104.
#[tokio::test(start_paused = true)]
async fn credentials_are_renewed_before_they_expire() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let begin = platform.context.records.now();
    let renew_before = begin + 2 * 60 * MINUTE;
    let body = json!({
        "credentials": {"password": "first"},
        "metadata": {
            "renew_before": renew_before.to_string(),
            "expires_at": (begin + 3 * 60 * MINUTE).to_string(),
        },
    });
    platform
        .broker
        .answer(Method::Put, Endpoint::Binding, 201, body);
    let key = platform.bind(rotated(&instance, None, OVERLAP)).await;
    tokio::time::sleep(60 * MINUTE).await;
    until_rotated(&platform, &key).await;
    let now = platform.context.records.now();
    assert!(now < renew_before && now > begin + 60 * MINUTE, "{now}");
}
