//! What an operator decides about an orphan.

use crate::scripted_broker::Reply;
use crate::test_platform::{TestPlatform, accepted, person, small};
use serde_json::json;
use sutler_platform::lifecycle::instance::InstancePhase;
use sutler_platform::lifecycle::orphan::ForgetReason;

/// Source: I-12. Nothing waits for an orphan that a person has decided about.
#[tokio::test(start_paused = true)]
async fn what_waits_for_an_orphan_goes_on_when_it_is_forgotten() {
    let test = TestPlatform::start().await;
    test.broker
        .answers([Reply::Now(500, "{}"), Reply::Now(500, "{}")]);
    let created = test.create(&small("db", json!({})), "carla").await;
    test.end_of(&created.instance, accepted(&created)).await;
    test.broker.until_requests(2).await;
    let orphans = test.platform.orphans(None, 10).await;
    let orphans = orphans.expect("they are read").items;
    let row = orphans.first().expect("a row").orphan.key.clone();
    assert!(test.instance("db").await.waits_for_orphan);
    let reason = ForgetReason::try_from("it is a test".to_owned()).expect("a reason");
    let operator = person("olga");
    while test
        .platform
        .forget_orphan(&row, &operator, reason.clone())
        .await
        .is_err()
    {
        // A request about it is being sent still.
        tokio::task::yield_now().await;
    }
    assert!(!test.instance("db").await.waits_for_orphan);
}

/// Source: T-73: what waits for a row that nobody deletes any more goes on without it.
#[tokio::test(start_paused = true)]
async fn an_instance_waits_no_more_for_an_orphan_that_is_forgotten() {
    let test = TestPlatform::start().await;
    // The create may still arrive, so that the orphan is not due yet.
    test.broker.answers([Reply::Lost, Reply::Lost]);
    let created = test.create(&small("db", json!({})), "carla").await;
    test.end_of(&created.instance, accepted(&created)).await;
    assert!(test.instance("db").await.waits_for_orphan);
    let orphans = test.platform.orphans(None, 10).await;
    let orphans = orphans.expect("they are read").items;
    let reason = "it never existed".to_owned().try_into().expect("a reason");
    let (key, olga) = (&orphans[0].orphan.key, person("olga"));
    let forgotten = test.platform.forget_orphan(key, &olga, reason).await;
    forgotten.expect("it is forgotten");
    let instance = test.instance("db").await;
    assert!(!instance.waits_for_orphan);
    assert_eq!(instance.phase(), InstancePhase::New);
}
