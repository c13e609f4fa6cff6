//! The orphan ledger, as operators use it.

use crate::scripted_broker::Reply;
use crate::test_platform::{TestPlatform, accepted, person, small};
use serde_json::json;
use sutler_platform::lifecycle::instance::InstancePhase;

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
