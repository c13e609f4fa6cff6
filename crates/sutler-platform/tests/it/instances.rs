//! Instances: the scenarios of two authors, refused changes and refused deletes.

use crate::scripted_broker::{Reply, ScriptedBroker};
use crate::test_platform::{
    TestPlatform, accepted, label_patch, operation_of, parameters_patch, plan_patch,
};
use serde_json::json;
use sutler_platform::lifecycle::instance::{ConditionStatus, InstancePhase};
use sutler_platform::lifecycle::intent::{DependencyReason, HoldReason, IntentEnd, IntentState};

fn plan_of(instance: &sutler_platform::lifecycle::instance::Instance) -> String {
    instance.projection().spec.plan.as_str().to_owned()
}

/// Holds: P-010, P-011.
#[tokio::test(start_paused = true)]
async fn an_instance_is_created_in_the_name_of_its_author() {
    let test = TestPlatform::start().await;
    let instance = test.live_instance("db", json!({"disk": 10})).await;
    assert_eq!(instance.phase(), InstancePhase::Live);
    let requests = test.broker.requests();
    assert_eq!(
        test.broker.lines(),
        [format!("PUT service_instances/{}", instance.osb_id)]
    );
    assert_eq!(ScriptedBroker::user(&requests[0]).as_deref(), Some("carla"));
    let body = ScriptedBroker::body(&requests[0]);
    assert_eq!(body["plan_id"], "pg-small");
    assert_eq!(body["parameters"], json!({"disk": 10}));
    assert_eq!(body["context"]["instance_name"], "db");
}

/// The first scenario of the seed: a forbidden change of the plan beside another author's change, who had not seen it.
/// Holds: P-011.
#[tokio::test(start_paused = true)]
async fn a_refused_change_of_one_author_does_not_stop_the_change_of_another() {
    let test = TestPlatform::start().await;
    let before = test.live_instance("db", json!({"disk": 10})).await;
    test.broker.answers([Reply::Held]);
    let plan = test.patch("db", &plan_patch("large"), "boris").await;
    test.broker.until_requests(2).await;
    let label = test.patch("db", &label_patch("team", "red"), "dora").await;
    let shown = test.instance("db").await;
    assert_eq!(plan_of(&shown), "pg-large");
    assert_eq!(shown.conditions().ready, ConditionStatus::True);

    test.broker
        .release(403, r#"{"description": "not for you"}"#);
    let end = test.end_of(&plan.instance, accepted(&plan)).await;
    let IntentEnd::Rejected(statement) = end else {
        panic!("not rejected: {end:?}");
    };
    assert_eq!(statement.description.as_deref(), Some("not for you"));
    assert_eq!(
        test.end_of(&label.instance, accepted(&label)).await,
        IntentEnd::Succeeded
    );
    let after = test.instance("db").await;
    assert_eq!(plan_of(&after), plan_of(&before));
    assert_eq!(after.conditions().ready, ConditionStatus::True);
    assert_eq!(after.projection().spec.labels["team"], "red");
    let requests = test.broker.requests();
    assert_eq!(requests.len(), 2, "a label concerns no broker");
    assert_eq!(ScriptedBroker::user(&requests[1]).as_deref(), Some("boris"));
}

/// The worked example of §3f: a change that was made on top of the refused one waits for a person, and goes on in the name
/// of who resumes it.
#[tokio::test(start_paused = true)]
async fn a_change_on_top_of_a_refused_one_waits_and_is_resumed() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({"disk": 10})).await;
    test.broker.answers([Reply::Held]);
    let plan = test.patch("db", &plan_patch("large"), "boris").await;
    test.broker.until_requests(2).await;
    let disk = test
        .patch("db", &parameters_patch(json!({"disk": 50})), "anna")
        .await;
    test.broker.release(403, "{}");
    test.end_of(&plan.instance, accepted(&plan)).await;
    let held = test.instance("db").await;
    let state = &held.intent(accepted(&disk)).expect("it is pending").state;
    let expected = HoldReason::DependsOn {
        dropped: accepted(&plan),
        because: DependencyReason::PlanChange,
    };
    assert_eq!(*state, IntentState::OnHold(expected));
    assert_eq!(held.projection().spec.parameters.as_map()["disk"], 10);

    let resumed = test.resume("db", accepted(&disk), "anna").await;
    assert_eq!(
        test.end_of(&resumed.instance, accepted(&resumed)).await,
        IntentEnd::Succeeded
    );
    let after = test.instance("db").await;
    assert_eq!(after.projection().spec.parameters.as_map()["disk"], 50);
    let last = test.broker.requests().pop().expect("a request");
    assert_eq!(ScriptedBroker::user(&last).as_deref(), Some("anna"));
    assert_eq!(
        ScriptedBroker::body(&last)["parameters"],
        json!({"disk": 50})
    );
}

/// The second scenario of the seed: a forbidden delete leaves everything as it was, and parked changes go on.
#[tokio::test(start_paused = true)]
async fn a_refused_delete_leaves_the_instance_live_and_its_changes_go_on() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({"disk": 10})).await;
    test.broker.answers([Reply::Held]);
    let delete = test.delete("db", "boris").await;
    test.broker.until_requests(2).await;
    assert_eq!(test.instance("db").await.phase(), InstancePhase::Deleting);
    test.broker.release(403, "{}");
    let end = test.end_of(&delete.instance, accepted(&delete)).await;
    assert!(matches!(end, IntentEnd::Rejected(_)), "{end:?}");
    let live = test.instance("db").await;
    assert_eq!(live.phase(), InstancePhase::Live);
    assert_eq!(live.conditions().ready, ConditionStatus::True);
    let requests = test.broker.requests();
    assert_eq!(ScriptedBroker::user(&requests[1]).as_deref(), Some("boris"));

    let disk = test
        .patch("db", &parameters_patch(json!({"disk": 50})), "anna")
        .await;
    assert_eq!(
        test.end_of(&disk.instance, accepted(&disk)).await,
        IntentEnd::Succeeded
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_instance_frees_its_name() {
    let test = TestPlatform::start().await;
    let first = test.live_instance("db", json!({})).await;
    let delete = test.delete("db", "anna").await;
    assert_eq!(
        test.end_of(&delete.instance, accepted(&delete)).await,
        IntentEnd::Succeeded
    );
    let second = test.live_instance("db", json!({})).await;
    assert_ne!(first.uid, second.uid);
    assert_ne!(first.osb_id, second.osb_id);
}

/// Holds: P-050, P-051, P-052.
#[tokio::test(start_paused = true)]
async fn an_accepted_operation_is_polled_until_it_ends() {
    let test = TestPlatform::start().await;
    test.broker.answers([
        Reply::Now(202, r#"{"operation": "op-1"}"#),
        Reply::Now(
            200,
            r#"{"state": "in progress", "description": "half done"}"#,
        ),
        Reply::Now(200, r#"{"state": "succeeded"}"#),
    ]);
    test.live_instance("db", json!({})).await;
    let polls = test.broker.requests().split_off(1);
    assert_eq!(polls.len(), 2);
    for poll in polls {
        assert!(
            poll.target().contains("operation=op-1"),
            "{}",
            poll.target()
        );
    }
}

/// What was sent is not kept once the intent has ended: it may hold secrets.
#[tokio::test(start_paused = true)]
async fn the_request_is_removed_at_the_end() {
    let test = TestPlatform::start().await;
    test.broker.answers([Reply::Held]);
    let wanted = crate::test_platform::small("db", json!({"password": "canary"}));
    let created = test.create(&wanted, "carla").await;
    test.broker.until_requests(1).await;
    let operation = operation_of(&created.instance, accepted(&created));
    test.broker.release(201, "{}");
    test.end_of(&created.instance, accepted(&created)).await;
    let intents = test
        .platform
        .intents(&test.instance("db").await, None, 10)
        .await;
    let intents = intents.expect("they are read");
    assert_eq!(intents[0].operation, operation);
    assert!(intents[0].progress.digest.is_some());
    let documents = &test.platform.records().documents;
    let stored = documents
        .store
        .operation(operation)
        .await
        .expect("it is read")
        .expect("it is there");
    let progress: sutler_platform::records::IntentProgress =
        documents.open_progress(&stored).expect("it opens");
    assert_eq!(progress.prepared, None);
}
