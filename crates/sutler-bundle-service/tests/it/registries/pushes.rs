//! Automation Broker's additional paths: refreshing registries, and services that developers push (R22, R23).

use super::fixture::{FakeRegistry, Fixture, PLAN, SERVICE, TestBroker, manifest, until};
use crate::service::fake_runner::Script;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use sutler_bundle::Action;
use sutler_bundle_service::{Pushes, REFRESH};
use sutler_registry::PUSHED_REGISTRY;

const NOTHING: [&str; 0] = [];

/// A fixture whose brokers accept pushes, with one registry that has another bundle.
async fn open() -> (Fixture, Arc<FakeRegistry>, TestBroker) {
    let registry = FakeRegistry::new("dh");
    registry.push("org/other:latest", &other("1.0.0"));
    let mut fixture = Fixture::with(std::slice::from_ref(&registry));
    fixture.pushes = Pushes::Taken;
    let broker = fixture.open().await;
    broker.refresh().await;
    (fixture, registry, broker)
}

fn other(version: &str) -> String {
    let own = manifest(version).replace("hello", "other");
    own.replace(PLAN, "other-plan")
}

async fn version(broker: &TestBroker, name: &str) -> Value {
    let (_, catalog) = broker.send("GET", "/v2/catalog", Value::Null).await;
    let services = catalog["services"].as_array().cloned().unwrap_or_default();
    let service = services.into_iter().find(|it| it["name"] == name);
    service.unwrap_or_default()["metadata"]["bundleVersion"].clone()
}

async fn delete(broker: &TestBroker, path: &str) -> (u16, Value) {
    broker.send("DELETE", path, Value::Null).await
}

#[tokio::test]
async fn r22_a_pushed_service_survives_refreshes_and_restarts_and_goes_when_its_developer_deletes_it()
 {
    let (fixture, registry, broker) = open().await;
    let (status, shown) = broker.push(&manifest("1.0.0")).await;
    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["services"][0]["id"], SERVICE);
    assert_eq!(broker.offers().await, ["hello", "other"]);
    broker.refresh().await;
    registry.is_down(true);
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.offers().await, ["hello", "other"]);
    broker.close().await;
    let broker = fixture.open().await;
    assert_eq!(broker.offers().await, ["hello", "other"]);
    broker.refresh().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    assert_eq!(fixture.ran(Action::Provision), "hello");
    let gone = format!("/v2/apb/{SERVICE}");
    assert_eq!(delete(&broker, &gone).await.0, 204);
    assert_eq!(broker.offers().await, ["other"]);
    let (status, refused) = broker.provision("j", "").await;
    assert_eq!(status, 400, "{refused}");
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.contains("its developer deleted it"),
        "{description}"
    );
    // It stays while its instance exists, across refreshes and deletions, and is deleted with it.
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(
        broker.specs(PUSHED_REGISTRY).await,
        ["hello: its developer deleted it"]
    );
    assert_eq!(broker.deprovision("i").await, 200);
    assert_eq!(fixture.ran(Action::Deprovision), "hello");
    broker.delete().await;
    assert_eq!(broker.specs(PUSHED_REGISTRY).await, NOTHING);
    assert_eq!(delete(&broker, &gone).await.0, 404);
}

#[tokio::test]
async fn a_push_replaces_the_previous_one_and_instances_keep_their_version() {
    let (fixture, _registry, broker) = open().await;
    let first = format!("{}\nimage: r.example/hello:1", block("1.0.0"));
    assert_eq!(broker.push(&first).await.0, 200);
    assert_eq!(broker.provision("old", "").await.0, 201);
    assert_eq!(fixture.ran(Action::Provision), "r.example/hello:1");
    let second = format!("{}\nimage: r.example/hello:2", block("2.0.0"));
    assert_eq!(broker.push(&second).await.0, 200);
    assert_eq!(version(&broker, "hello").await, "2.0.0");
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.provision("new", "").await.0, 201);
    assert_eq!(fixture.ran(Action::Provision), "r.example/hello:2");
    assert_eq!(broker.deprovision("old").await, 200);
    assert_eq!(fixture.ran(Action::Deprovision), "r.example/hello:1");
}

/// The manifest, in block style.
fn block(version: &str) -> String {
    format!(
        "version: 1.0\nname: hello\nid: {SERVICE}\nbundle_version: {version}\ndescription: Greets.\n\
         plans: [{{name: small, id: {PLAN}, description: One.}}]"
    )
}

#[tokio::test]
async fn every_replica_offers_a_service_pushed_to_one_of_them() {
    let (fixture, registry, broker) = open().await;
    let other_broker = fixture.open().await;
    // Also during a refresh, which continues.
    registry.hold();
    let requested = other_broker
        .running
        .request_run(REFRESH)
        .await
        .expect("it answers");
    assert_eq!(broker.push(&manifest("1.0.0")).await.0, 200);
    until("the other replica offers it", async || {
        other_broker.offers().await == ["hello", "other"]
    })
    .await;
    registry.release();
    until("the refresh is over", async || {
        let status = broker.running.task_status(REFRESH).await;
        status.expect("the store answers").served >= requested
    })
    .await;
    let status = broker.running.task_status(REFRESH).await;
    assert_eq!(status.expect("the store answers").failure, None);
    assert_eq!(other_broker.provision("i", "").await.0, 201);
    assert_eq!(delete(&other_broker, "/v2/apb").await.0, 204);
    until("the first replica withdraws it", async || {
        broker.offers().await == ["other"]
    })
    .await;
    // Even if the withdrawal was not read here yet: no instance is made from it.
    assert_eq!(broker.provision("late", "").await.0, 400);
}

#[tokio::test]
async fn pushes_at_once_are_all_written() {
    let (fixture, _registry, broker) = open().await;
    let other_broker = fixture.open().await;
    let named = |nth: u32| {
        let plan = format!("plan-{nth}");
        let named = manifest("1.0.0").replace("hello", &format!("hello-{nth}"));
        named.replace(PLAN, &plan)
    };
    let texts: Vec<String> = (0..4).map(named).collect();
    let pushes = tokio::join!(
        broker.push(&texts[0]),
        other_broker.push(&texts[1]),
        broker.push(&texts[2]),
        other_broker.push(&texts[3]),
    );
    let statuses = [pushes.0.0, pushes.1.0, pushes.2.0, pushes.3.0];
    assert_eq!(statuses, [200; 4]);
    assert_eq!(broker.specs(PUSHED_REGISTRY).await.len(), 4);
    assert_eq!(delete(&broker, "/v2/apb").await.0, 204);
    broker.delete().await;
    assert_eq!(broker.specs(PUSHED_REGISTRY).await, NOTHING);
}

#[tokio::test]
async fn a_push_that_cannot_be_offered_is_refused_with_reasons_and_nothing_is_written() {
    let (_town, _registry, broker) = open().await;
    for (text, expected) in [
        ("{name: hello", "YAML"),
        ("version: 1.0\nname: hello\n", "plans"),
        (&other("2.0.0"), "dh/org/other:latest has the "),
    ] {
        let (status, refused) = broker.push(text).await;
        assert_eq!(status, 400, "{refused}");
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains(expected), "{sentence}");
    }
    let form = "/v2/apb";
    let (status, refused) = broker.send("POST", form, json!({ "apbSpec": "x" })).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(broker.specs(PUSHED_REGISTRY).await, NOTHING);
    assert_eq!(broker.offers().await, ["other"]);
}

#[tokio::test]
async fn pushed_services_are_withdrawn_while_pushes_are_disabled() {
    let (mut fixture, _registry, broker) = open().await;
    fixture.rules.grace = Duration::from_secs(3600);
    assert_eq!(broker.push(&manifest("1.0.0")).await.0, 200);
    let given = Script::well().credentials(json!({ "user": "u" }));
    fixture.fake.set_script(Action::Bind, given);
    assert_eq!(broker.provision("i", "").await.0, 201);
    broker.close().await;
    fixture.pushes = Pushes::Refused;
    let broker = fixture.open().await;
    assert_eq!(broker.push(&manifest("2.0.0")).await.0, 404);
    assert_eq!(delete(&broker, "/v2/apb").await.0, 404);
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.offers().await, ["other"]);
    assert_eq!(broker.bind("i", "b").await, 201);
    broker.close().await;
    fixture.pushes = Pushes::Taken;
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello", "other"]);
    assert_eq!(broker.unbind("i", "b").await, 200);
    assert_eq!(broker.deprovision("i").await, 200);
}

/// Regression: R23.
#[tokio::test]
async fn bootstraps_that_are_asked_for_together_are_done_one_after_the_other() {
    let (fixture, registry, broker) = open().await;
    let other_broker = fixture.open().await;
    registry.push("org/other:latest", &other("2.0.0"));
    let fetched = registry.fetched();
    let before = broker.running.task_status(REFRESH).await;
    let before = before.expect("the store answers").requested;
    let bootstrap =
        async |broker: &TestBroker| broker.send("POST", "/v2/bootstrap", Value::Null).await;
    let answers = tokio::join!(
        bootstrap(&broker),
        bootstrap(&other_broker),
        bootstrap(&broker)
    );
    for (status, answer) in [answers.0, answers.1, answers.2] {
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer, json!({ "msg": "Bootstrap job started" }));
    }
    until("all of them are served", async || {
        let status = broker.running.task_status(REFRESH).await;
        status.expect("the store answers").served >= before + 3
    })
    .await;
    assert_eq!(registry.fetched(), fetched + 1);
    until("the new version is offered", async || {
        version(&broker, "other").await == "2.0.0"
    })
    .await;
}

#[tokio::test]
async fn without_any_registry_a_bootstrap_is_refused_and_pushes_are_accepted() {
    let mut fixture = Fixture::with(&[]);
    fixture.pushes = Pushes::Taken;
    let broker = fixture.open().await;
    let (status, refused) = broker.send("POST", "/v2/bootstrap", Value::Null).await;
    assert_eq!(status, 400);
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.starts_with("There is no registry"),
        "{description}"
    );
    assert_eq!(broker.push(&manifest("1.0.0")).await.0, 200);
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.provision("i", "").await.0, 201);
}
