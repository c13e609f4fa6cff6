//! Looks at what the broker has, after a create whose outcome is not known.

use crate::lifecycle::breaker::Breaker;
use crate::records::{BrokerState, IntentProgress};
use crate::test_platform::{BROKER, Endpoint, ScriptedAnswer, TestPlatform};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_journal::{OperationFilter, OperationList};

/// The create has no answer, and is refused with a conflict when it is sent again: something is there.
fn conflict(platform: &TestPlatform) {
    let broker = &platform.broker;
    broker.plan(Method::Put, Endpoint::Instance, ScriptedAnswer::Silence);
    broker.answer(Method::Put, Endpoint::Instance, 409, json!({}));
}

/// Polls are counted from the look on, so that the waits between them grow from the first one.
/// Holds: P-074.
#[tokio::test(start_paused = true)]
async fn polls_after_a_look_are_counted_from_the_look() {
    let platform = TestPlatform::start().await;
    conflict(&platform);
    let in_progress = json!({"state": "in progress"});
    platform
        .broker
        .answer(Method::Get, Endpoint::InstancePoll, 200, in_progress);
    platform.live_instance().await;
    let documents = &platform.context.records.documents;
    let list = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 10,
    };
    let rows = documents.store.operations(&list).await.expect("all");
    let operation = documents.store.operation(rows[0].id).await;
    let operation = operation.expect("it is read").expect("it exists");
    let progress: IntentProgress = documents.open_progress(&operation).expect("it opens");
    assert!(progress.accepted_at > 0, "{progress:?}");
}

/// Source: T-90: one refusal of the credentials is enough.
#[tokio::test(start_paused = true)]
async fn the_poll_of_a_look_is_told_to_the_breaker() {
    let platform = TestPlatform::start().await;
    conflict(&platform);
    platform
        .broker
        .answer(Method::Get, Endpoint::InstancePoll, 401, json!({}));
    platform.create_instance().await;
    let key = platform.context.records.keys.broker_state(BROKER);
    platform
        .until("the breaker is open", async || {
            let state: BrokerState = platform.read(&key).await;
            matches!(state.breaker, Breaker::Open(_))
        })
        .await;
}

/// Holds: P-080.
#[tokio::test(start_paused = true)]
async fn an_instance_is_not_fetched_where_the_offering_does_not_allow_that() {
    let platform = TestPlatform::start().await;
    conflict(&platform);
    platform
        .broker
        .answer(Method::Get, Endpoint::InstancePoll, 404, json!({}));
    let key = platform.create_instance().await;
    platform
        .until_instance(&key, "it failed", |it| it.waits_for_orphan)
        .await;
    let polls = platform
        .broker
        .requests(Method::Get, Endpoint::InstancePoll);
    assert_eq!(polls.len(), 1, "it was looked for");
    let fetches = platform.broker.requests(Method::Get, Endpoint::Instance);
    assert_eq!(fetches, []);
}
