//! What is sent again: after a lost answer, after the end of a process, and after the ledger deleted what was left.

use crate::lifecycle::binding::{Binding, BindingPhase};
use crate::lifecycle::intent::IntentEnd;
use crate::lifecycle::orphan::{OrphanKey, OrphanState};
use crate::records::OrphanRecord;
use crate::test_platform::{
    BROKER, Endpoint, ScriptedAnswer, TestPlatform, TestSettings, bind_request, header,
};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_osb::{BindingId, ORIGINATING_IDENTITY_HEADER};

/// Source: D-40, invariant I-6.
#[tokio::test(start_paused = true)]
async fn the_same_bytes_are_sent_after_a_lost_answer() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    platform
        .broker
        .plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Silence);
    platform
        .broker
        .plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Unreached);
    platform.bound(&instance, "app-db").await;
    let sent = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(sent.len(), 3);
    let stored: Vec<_> = sent
        .iter()
        .map(|it| it.to_stored().expect("it can be stored"))
        .collect();
    assert!(stored.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Source: T-37.
#[tokio::test(start_paused = true)]
async fn the_same_bytes_are_sent_after_the_end_of_the_process_that_sent_them() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    platform
        .broker
        .plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Never);
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    platform
        .until("it is sent", async || {
            !platform
                .broker
                .requests(Method::Put, Endpoint::Binding)
                .is_empty()
        })
        .await;
    let platform = platform.restart().await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let sent = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
}

/// Source: P-010, P-132, P-153, T-71.
/// Holds: P-010, P-132, P-153.
#[tokio::test(start_paused = true)]
async fn a_failed_bind_is_deleted_in_nobodys_name_and_bound_again_under_another_id() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    platform.broker.answer(
        Method::Put,
        Endpoint::Binding,
        500,
        json!({"description": "no"}),
    );
    platform.broker.answer(
        Method::Delete,
        Endpoint::Binding,
        202,
        json!({"operation": "m"}),
    );
    let key = platform.bound(&instance, "app-db").await;
    let broker = &platform.broker;
    let sent = broker.requests(Method::Put, Endpoint::Binding);
    let deleted = broker.requests(Method::Delete, Endpoint::Binding);
    assert_eq!((sent.len(), deleted.len()), (2, 1));
    assert_eq!(sent[0].path, deleted[0].path);
    assert_ne!(sent[0].path, sent[1].path);
    assert!(header(&sent[1], ORIGINATING_IDENTITY_HEADER).is_some());
    let polls = broker.requests(Method::Get, Endpoint::BindingPoll);
    for request in deleted.iter().chain(&polls) {
        assert_eq!(header(request, ORIGINATING_IDENTITY_HEADER), None);
    }
    let binding: Binding = platform.read(&key).await;
    assert!(!binding.waits_for_orphan);
    assert!(matches!(binding.ended[0].end, IntentEnd::Failed(_)));
    let id = deleted[0].path.last().expect("an id").as_str();
    let row = OrphanKey {
        broker: BROKER,
        instance: instance.osb_id,
        binding: Some(BindingId::try_from(id).expect("an id")),
    };
    let row = platform.context.records.keys.orphan(&row);
    let row: OrphanRecord = platform.read(&row).await;
    assert!(matches!(row.orphan.state, OrphanState::Done { .. }));
    assert_eq!(row.operation, None);
}

/// Source: D-40, D-41: a conflict after a lost answer is no refusal.
#[tokio::test(start_paused = true)]
async fn a_conflict_after_a_lost_answer_is_looked_at() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Silence);
    broker.answer(Method::Put, Endpoint::Binding, 409, json!({}));
    // It is being made, so it cannot be fetched yet.
    broker.answer(Method::Get, Endpoint::Binding, 404, json!({}));
    broker.answer(
        Method::Get,
        Endpoint::BindingPoll,
        200,
        json!({"state": "in progress"}),
    );
    let key = platform.bound(&instance, "app-db").await;
    assert_eq!(broker.requests(Method::Put, Endpoint::Binding).len(), 2);
    assert_eq!(broker.requests(Method::Delete, Endpoint::Binding), []);
    let binding: Binding = platform.read(&key).await;
    assert_eq!(binding.phase(), BindingPhase::Bound);
}

/// Source: P-059, T-84.
/// Holds: P-059.
#[tokio::test(start_paused = true)]
async fn an_asynchronous_bind_that_cannot_be_fetched_is_mitigated() {
    let mut settings = TestSettings::default();
    settings.offering["bindings_retrievable"] = json!(false);
    settings.options.auto_retries = 0;
    let platform = TestPlatform::with(settings).await;
    let (_, instance) = platform.live_instance().await;
    platform
        .broker
        .answer(Method::Put, Endpoint::Binding, 202, json!({}));
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    platform
        .until_binding(&key, "it failed", |it| it.phase() == BindingPhase::New)
        .await;
    platform
        .until("it is deleted", async || {
            platform
                .broker
                .requests(Method::Delete, Endpoint::Binding)
                .len()
                == 1
        })
        .await;
    assert_eq!(platform.broker.requests(Method::Get, Endpoint::Binding), []);
}

/// Source: P-103, T-84.
/// Holds: P-103.
#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_kept_is_mitigated_and_not_repeated() {
    let long = "x".repeat(128 * 1024);
    for body in [
        json!({"credentials": {"password": long}}),
        json!({"credentials": {"password": "CANARY"}, "syslog_drain_url": "syslog://host"}),
    ] {
        let platform = TestPlatform::start().await;
        let (_, instance) = platform.live_instance().await;
        platform
            .broker
            .answer(Method::Put, Endpoint::Binding, 201, body);
        let key = platform.bind(bind_request(&instance, "app-db")).await;
        platform
            .until("it is deleted", async || {
                platform
                    .broker
                    .requests(Method::Delete, Endpoint::Binding)
                    .len()
                    == 1
            })
            .await;
        let binding: Binding = platform.read(&key).await;
        assert_eq!(binding.phase(), BindingPhase::New);
        assert!(!binding.waits_for_orphan);
        assert!(matches!(binding.ended[0].end, IntentEnd::Failed(_)));
        assert_eq!(
            platform
                .broker
                .requests(Method::Put, Endpoint::Binding)
                .len(),
            1
        );
    }
}
