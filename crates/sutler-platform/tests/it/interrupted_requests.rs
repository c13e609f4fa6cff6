//! Requests whose answer never came: sent again byte for byte, or left to the orphan ledger.

use crate::scripted_broker::{Reply, ScriptedBroker};
use crate::test_platform::{
    TestPlatform, accepted, label_patch, name, namespace, parameters_patch, small,
};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_platform::lifecycle::instance::{Exposure, InstancePhase};
use sutler_platform::lifecycle::intent::IntentEnd;
use sutler_platform::lifecycle::orphan::OrphanCause;

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_sent_again_byte_for_byte() {
    let test = TestPlatform::start().await;
    test.broker.answers([Reply::Lost]);
    test.live_instance("db", json!({"disk": 10})).await;
    let requests = test.broker.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        requests[0].to_stored().expect("bytes"),
        requests[1].to_stored().expect("bytes")
    );
}

/// What was certainly not sent leaves no doubt: nothing may exist after it.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_sent_leaves_no_doubt() {
    let test = TestPlatform::start().await;
    test.broker.answers([
        Reply::NotSent,
        Reply::Now(403, r#"{"description": "not here"}"#),
    ]);
    let created = test.create(&small("db", json!({})), "carla").await;
    let end = test.end_of(&created.instance, accepted(&created)).await;
    assert!(matches!(end, IntentEnd::Rejected(_)), "{end:?}");
    assert_eq!(test.instance("db").await.exposure, Exposure::Nothing);
    let orphans = test.platform.orphans(None, 10).await;
    assert_eq!(orphans.expect("they are read").items, []);
}

/// A create that stays silent may exist: the ledger has it in the same commit that ends the intent.
#[tokio::test(start_paused = true)]
async fn a_create_that_stays_silent_goes_to_the_ledger() {
    let test = TestPlatform::start().await;
    test.broker.answers([Reply::Lost, Reply::Lost]);
    let wanted = small("db", json!({}));
    let created = test.create(&wanted, "carla").await;
    let osb_id = created.instance.osb_id.clone();
    let end = test.end_of(&created.instance, accepted(&created)).await;
    assert!(matches!(end, IntentEnd::Failed(_)), "{end:?}");
    let orphans = test
        .platform
        .orphans(None, 10)
        .await
        .expect("they are read");
    let orphan = &orphans.items.first().expect("a row").orphan;
    assert_eq!(orphan.key.instance, osb_id);
    assert_eq!(orphan.cause, OrphanCause::DoubtfulCreate);
    assert_ne!(test.instance("db").await.osb_id, osb_id);
}

/// A process that ends between writing a request down and its answer: the next one sends the same bytes.
#[tokio::test(start_paused = true)]
async fn another_replica_sends_what_a_dead_one_wrote_down() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({"disk": 10})).await;
    test.broker.answers([Reply::Held]);
    let changed = test
        .patch("db", &parameters_patch(json!({"disk": 20})), "anna")
        .await;
    test.broker.until_requests(2).await;
    // It gives its claim back without an answer.
    test.platform
        .engine()
        .shut_down(std::time::Duration::ZERO)
        .await;
    let replica = test.replica().await;
    let records = &replica.records().keys;
    let lane = records.instance(&changed.instance.namespace, changed.instance.uid);
    let operation = crate::test_platform::operation_of(&changed.instance, accepted(&changed));
    let within = std::time::Duration::from_secs(600);
    let end = replica
        .wait_for_end(&lane, operation, within)
        .await
        .expect("it is read");
    assert_eq!(end, Some(IntentEnd::Succeeded));
    let requests = test.broker.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        requests[1].to_stored().expect("bytes"),
        requests[2].to_stored().expect("bytes")
    );
}

/// A broker that is not reached gets a delete only when something may exist.
#[tokio::test(start_paused = true)]
async fn an_instance_that_was_never_sent_is_deleted_without_a_call() {
    let test = TestPlatform::start().await;
    test.platform.engine().pause();
    let wanted = small("db", json!({}));
    let created = test.create(&wanted, "carla").await;
    assert_eq!(created.instance.exposure, Exposure::Nothing);
    let deleted = test.delete("db", "carla").await;
    test.platform.engine().resume();
    assert_eq!(
        test.end_of(&deleted.instance, accepted(&deleted)).await,
        IntentEnd::Succeeded
    );
    assert_eq!(test.broker.lines(), Vec::<String>::new());
    let uid = name(&deleted.instance.uid.to_string());
    let gone = test.platform.instance(&namespace(), &uid).await;
    let gone = gone.expect("a tombstone");
    assert_eq!(gone.phase(), InstancePhase::Gone);
}

/// What the broker has after an uncertain update is asked in the name of who asked for the update, also if the change of
/// somebody else behind it takes effect in the same commit.
#[tokio::test(start_paused = true)]
async fn a_look_after_an_uncertain_update_has_the_identity_of_the_update() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({"disk": 10})).await;
    test.broker.answers([Reply::Held]);
    test.patch("db", &parameters_patch(json!({"disk": 20})), "anna")
        .await;
    test.broker.until_requests(2).await;
    let label = test.patch("db", &label_patch("team", "red"), "dora").await;
    // An update creates nothing: whether it was applied is not known.
    test.broker.release(201, "{}");
    assert_eq!(
        test.end_of(&label.instance, accepted(&label)).await,
        IntentEnd::Succeeded
    );
    test.broker.until_requests(3).await;
    let requests = test.broker.requests();
    assert_eq!(requests[2].method, Method::Get);
    assert_eq!(ScriptedBroker::user(&requests[1]).as_deref(), Some("anna"));
    assert_eq!(ScriptedBroker::user(&requests[2]).as_deref(), Some("anna"));
}
