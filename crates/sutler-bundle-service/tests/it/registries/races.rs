//! Requests concurrent with refreshes and deletions, and concurrent replicas (R19, R20, R23).

use super::fixture::{FakeRegistry, Fixture, manifest, until};
use crate::service::fake_runner::Script;
use serde_json::{Value, json};
use sutler_bundle::Action;
use sutler_bundle_service::REFRESH;

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn r19_a_spec_that_is_removed_and_used_is_hidden_and_gone_after_its_last_instance() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    let given = Script::well().credentials(json!({ "user": "u" }));
    fixture.fake.set_script(Action::Bind, given);
    assert_eq!(broker.provision("i", "").await.0, 201);
    assert_eq!(broker.bind("i", "b").await, 201);
    registry.remove("org/hello:latest");
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.offers().await, NOTHING);
    let specs = broker.specs("dh").await;
    assert_eq!(
        specs,
        ["org/hello:latest: its registry does not have it any more"]
    );
    // The platform's catalog is out of date: the refusal says when and why the plan was withdrawn.
    let (status, refused) = broker.provision("j", "").await;
    assert_eq!(status, 400);
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.starts_with("The service hello was withdrawn at 2"),
        "{description}"
    );
    assert!(
        description.contains("its registry does not have it any more"),
        "{description}"
    );
    assert_eq!(broker.bind("i", "c").await, 201);
    assert_eq!(broker.unbind("i", "b").await, 200);
    assert_eq!(broker.deprovision("i").await, 200);
    broker.delete().await;
    assert_eq!(broker.specs("dh").await, NOTHING);
}

#[tokio::test]
async fn a_spec_that_returns_is_offered_again() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    registry.remove("org/hello:latest");
    broker.refresh().await;
    assert_eq!(broker.offers().await, NOTHING);
    registry.push("org/hello:latest", &manifest("1.0.0"));
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.provision("i", "").await.0, 201);
}

#[tokio::test]
async fn r20_a_provision_beside_a_deletion_by_another_replica_is_served_or_refused() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    let other = fixture.open().await;
    assert_eq!(other.offers().await, ["hello"]);
    registry.remove("org/hello:latest");
    broker.refresh().await;
    // Even if the other replica has not read the withdrawal yet: no instance is made from it.
    let (status, answer) = other.provision("late", "").await;
    assert_eq!(status, 400, "{answer}");
    broker.delete().await;
    assert_eq!(broker.specs("dh").await, NOTHING);
    assert_eq!(other.provision("later", "").await.0, 400);
}

#[tokio::test]
async fn r23_refreshes_that_are_asked_for_together_are_done_one_after_the_other() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    let other = fixture.open().await;
    registry.push("org/hello:latest", &manifest("1.0.1"));
    let fetched = registry.fetched();
    let (one, two, three) = tokio::join!(broker.refresh(), other.refresh(), broker.refresh());
    assert_eq!((one, two, three), ((), (), ()));
    // The item was read once, so the refreshes did not overlap.
    assert_eq!(registry.fetched(), fetched + 1);
    until("both replicas offer the new version", async || {
        let version = async |it: &super::fixture::TestBroker| {
            let (_, catalog) = it.send("GET", "/v2/catalog", Value::Null).await;
            catalog["services"][0]["metadata"]["bundleVersion"].clone()
        };
        version(&broker).await == "1.0.1" && version(&other).await == "1.0.1"
    })
    .await;
}

#[tokio::test]
async fn a_replica_serves_an_instance_of_a_version_that_it_never_offered() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    let given = Script::well().credentials(json!({ "user": "u" }));
    fixture.fake.set_script(Action::Bind, given);
    let other = fixture.open().await;
    // Both versions are replaced before the other replica reads the records again.
    registry.push("org/hello:latest", &manifest("2.0.0"));
    broker.refresh().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    registry.push("org/hello:latest", &manifest("3.0.0"));
    broker.refresh().await;
    assert_eq!(other.bind("i", "b").await, 201);
    assert_eq!(other.unbind("i", "b").await, 200);
    assert_eq!(other.deprovision("i").await, 200);
}

#[tokio::test]
async fn a_provision_before_the_first_refresh_is_over_waits_for_it() {
    let registry = FakeRegistry::new("dh");
    registry.push("org/hello:latest", &manifest("1.0.0"));
    registry.hold();
    let fixture = Fixture::with(std::slice::from_ref(&registry));
    let broker = fixture.open().await;
    assert_eq!(broker.offers().await, NOTHING);
    let (status, accepted) = broker.provision("i", "accepts_incomplete=true").await;
    assert_eq!(status, 202, "{accepted}");
    let operation = accepted["operation"]
        .as_str()
        .expect("an operation")
        .to_owned();
    let waits = broker.provision("j", "");
    let done = async {
        until("the refresh runs", async || {
            let status = broker.running.task_status(REFRESH).await;
            status.expect("the store answers").running_since.is_some()
        })
        .await;
        registry.release();
        broker.until_done("i", &operation).await
    };
    let ((sync, answer), done) = tokio::join!(waits, done);
    assert_eq!(sync, 201, "{answer}");
    assert_eq!(done["state"], "succeeded", "{done}");
    let unknown = broker.send(
        "PUT",
        "/v2/service_instances/k",
        json!({
            "service_id": "no-such", "plan_id": "no-such", "organization_guid": "o", "space_guid": "s",
        }),
    );
    assert_eq!(unknown.await.0, 400);
}
