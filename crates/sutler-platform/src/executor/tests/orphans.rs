//! The orphan ledger: instances too, brokers that will not delete, and what waits meanwhile.

use crate::lifecycle::instance::Instance;
use crate::lifecycle::orphan::{OperatorReason, OrphanState};
use crate::records::{ORPHAN, OrphanRecord};
use crate::test_platform::{
    Endpoint, ScriptedAnswer, TestPlatform, TestSettings, bind_request, header,
};
use serde_json::json;
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_journal::List;
use sutler_osb::ORIGINATING_IDENTITY_HEADER;

/// The only row of the ledger.
async fn row(platform: &TestPlatform) -> OrphanRecord {
    let records = &platform.context.records;
    let list = List::Prefix(records.keys.all_of(ORPHAN));
    let page = records
        .list::<OrphanRecord>(&list, None, 10)
        .await
        .expect("a page");
    assert_eq!(page.items.len(), 1);
    page.items.into_iter().next().expect("one row").1
}

/// Source: T-48, T-71.
#[tokio::test(start_paused = true)]
async fn a_failed_create_is_deleted_and_repeated_under_another_id() {
    let platform = TestPlatform::start().await;
    platform
        .broker
        .answer(Method::Put, Endpoint::Instance, 500, json!({}));
    let (_, instance) = platform.live_instance().await;
    let deletes = platform.broker.requests(Method::Delete, Endpoint::Instance);
    assert_eq!(deletes.len(), 1);
    assert_eq!(header(&deletes[0], ORIGINATING_IDENTITY_HEADER), None);
    assert_ne!(
        deletes[0].path.last().map(String::as_str),
        Some(instance.osb_id.as_str())
    );
    assert!(!instance.waits_for_orphan);
}

/// Source: T-70, T-58: a DELETE proves nothing while the create may still arrive.
#[tokio::test(start_paused = true)]
async fn a_create_in_doubt_is_deleted_when_it_cannot_arrive_any_more() {
    let platform = TestPlatform::start().await;
    for _ in 0..2 {
        platform
            .broker
            .plan(Method::Put, Endpoint::Instance, ScriptedAnswer::Silence);
    }
    let key = platform.create_instance().await;
    platform
        .until_instance(&key, "it failed", |it| it.waits_for_orphan)
        .await;
    let found = platform.context.records.now();
    platform
        .until_instance(&key, "it is live", |it| it.confirmed().is_some())
        .await;
    let waited = found
        .duration_until(platform.context.records.now())
        .unsigned_abs();
    assert!(waited >= Duration::from_secs(100), "{waited:?}");
}

/// Source: T-72.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_deleted_calls_an_operator_and_lets_go_of_what_waits() {
    let settings = TestSettings {
        look_every: Duration::from_secs(60),
        lease: Duration::from_secs(3_600),
        ..TestSettings::default()
    };
    let platform = TestPlatform::with(settings).await;
    let (_, instance) = platform.live_instance().await;
    platform
        .broker
        .answer(Method::Put, Endpoint::Binding, 500, json!({}));
    for _ in 0..11 {
        platform
            .broker
            .answer(Method::Delete, Endpoint::Binding, 500, json!({}));
    }
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    platform
        .until_binding(&key, "it failed", |it| it.waits_for_orphan)
        .await;
    tokio::time::sleep(Duration::from_secs(48 * 3_600)).await;
    platform
        .until_binding(&key, "it waits no more", |it| !it.waits_for_orphan)
        .await;
    let row = row(&platform).await;
    let reason = OperatorReason::TriesUsedUp;
    assert!(
        matches!(row.orphan.state, OrphanState::NeedsOperator { reason: it, .. } if it == reason)
    );
    assert_eq!(
        platform
            .broker
            .requests(Method::Delete, Endpoint::Binding)
            .len(),
        11
    );
    // It is not bound again without a person.
    assert_eq!(
        platform
            .broker
            .requests(Method::Put, Endpoint::Binding)
            .len(),
        1
    );
}

/// The process that deletes an orphan ends in the middle of it.
#[tokio::test(start_paused = true)]
async fn an_interrupted_deletion_is_taken_over() {
    let platform = TestPlatform::start().await;
    platform
        .broker
        .answer(Method::Put, Endpoint::Instance, 500, json!({}));
    platform
        .broker
        .plan(Method::Delete, Endpoint::Instance, ScriptedAnswer::Never);
    let key = platform.create_instance().await;
    platform
        .until("it is being deleted", async || {
            !platform
                .broker
                .requests(Method::Delete, Endpoint::Instance)
                .is_empty()
        })
        .await;
    let platform = platform.restart().await;
    let is_live = |it: &Instance| it.confirmed().is_some();
    platform.until_instance(&key, "it is live", is_live).await;
    let deletes = platform.broker.requests(Method::Delete, Endpoint::Instance);
    assert_eq!(deletes.len(), 2);
    assert_eq!(deletes[0], deletes[1]);
}
