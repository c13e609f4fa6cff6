//! Offered and running versions (R21), named tags, and dry-run plans.

use super::fixture::{FakeRegistry, Fixture, PLAN, SERVICE, TestBroker, manifest, until};
use crate::service::fake_runner::Script;
use serde_json::{Value, json};
use sutler_bundle::Action;

#[tokio::test]
async fn r21_an_instance_keeps_the_version_that_made_it() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    assert_eq!(broker.provision("old", "").await.0, 201);
    let made_by = fixture.ran(Action::Provision);
    assert!(
        made_by.starts_with("registry.example/org/hello@sha256:"),
        "{made_by}"
    );
    registry.push("org/hello:latest", &manifest("2.0.0"));
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.provision("new", "").await.0, 201);
    assert_ne!(fixture.ran(Action::Provision), made_by);
    broker.close().await;
    // Also when only its records are left.
    registry.remove("org/hello:latest");
    let broker = fixture.open().await;
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(broker.deprovision("old").await, 200);
    assert_eq!(fixture.ran(Action::Deprovision), made_by);
}

#[tokio::test]
async fn an_instance_is_upgraded_to_the_current_version_of_a_registry_on_request() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    let made_by = fixture.ran(Action::Provision);
    registry.push("org/hello:latest", &manifest("2.0.0"));
    broker.refresh().await;
    let offered = async || {
        let (_, catalog) = broker.send("GET", "/v2/catalog", Value::Null).await;
        catalog["services"][0]["plans"][0]["maintenance_info"].clone()
    };
    let fetched = async |broker: &TestBroker| {
        let (_, instance) = broker
            .send("GET", "/v2/service_instances/i", Value::Null)
            .await;
        instance["maintenance_info"]["version"].clone()
    };
    assert_eq!(offered().await, json!({ "version": "2.0.0" }));
    assert_eq!(fetched(&broker).await, "1.0.0");
    let upgrade = async |broker: &TestBroker, version: &str| {
        let info = json!({ "version": version });
        let body = json!({ "service_id": SERVICE, "maintenance_info": info });
        let (status, answer) = broker.send("PATCH", "/v2/service_instances/i", body).await;
        (status, answer["error"].clone())
    };
    let conflict = (422, json!("MaintenanceInfoConflict"));
    assert_eq!(upgrade(&broker, "1.0.0").await, conflict);
    fixture.fake.set_script(Action::Update, Script::exits(1));
    assert_eq!(upgrade(&broker, "2.0.0").await.0, 500);
    assert_eq!(fetched(&broker).await, "1.0.0");
    fixture.fake.set_script(Action::Update, Script::well());
    assert_eq!(upgrade(&broker, "2.0.0").await.0, 200);
    let moved_by = fixture.ran(Action::Update);
    assert_ne!(moved_by, made_by);
    assert_eq!(
        fixture.fake.last_vars()["_apb_previous_bundle_version"],
        "1.0.0"
    );
    assert_eq!(fetched(&broker).await, "2.0.0");
    // The registry replaces and then removes it; the instance keeps its version, also after a restart.
    registry.push("org/hello:latest", &manifest("3.0.0"));
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(upgrade(&broker, "2.0.0").await, conflict);
    registry.remove("org/hello:latest");
    broker.close().await;
    let broker = fixture.open().await;
    broker.refresh().await;
    broker.delete().await;
    assert_eq!(fetched(&broker).await, "2.0.0");
    assert_eq!(broker.deprovision("i").await, 200);
    assert_eq!(fixture.ran(Action::Deprovision), moved_by);
    assert_eq!(fixture.fake.last_vars()["_apb_bundle_version"], "2.0.0");
}

#[tokio::test]
async fn a_version_that_an_upgrade_is_on_its_way_to_is_not_deleted() {
    let plans = |version: &str, plans: &str| {
        format!(
            "{{version: 1.0, name: hello, id: {SERVICE}, bundle_version: {version}, description: Greets., \
             plans: [{plans}]}}"
        )
    };
    let small = format!("{{name: small, id: {PLAN}, description: One., updates_to: [large]}}");
    let large = "{name: large, id: large-id, description: Two.}";
    let registry = FakeRegistry::new("dh");
    let both = format!("{small}, {large}");
    registry.push("org/hello:latest", &plans("1.0.0", &both));
    let fixture = Fixture::with(std::slice::from_ref(&registry));
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    registry.push("org/hello:latest", &plans("2.0.0", large));
    broker.refresh().await;
    fixture
        .fake
        .set_script(Action::Update, Script::well().held());
    let body = json!({
        "service_id": SERVICE, "plan_id": "large-id", "maintenance_info": { "version": "2.0.0" },
    });
    let path = "/v2/service_instances/i?accepts_incomplete=true";
    let (status, started) = broker.send("PATCH", path, body).await;
    assert_eq!(status, 202, "{started}");
    let operation = started["operation"].as_str().expect("an operation");
    until("it runs", async || fixture.fake.started_specs().len() == 2).await;
    let moved_by = fixture.ran(Action::Update);
    registry.push("org/hello:latest", &plans("3.0.0", &small));
    broker.refresh().await;
    broker.delete().await;
    broker.close().await;
    let broker = fixture.open().await;
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(broker.deprovision("i").await, 200);
    assert_eq!(fixture.ran(Action::Deprovision), moved_by);
}

#[tokio::test]
async fn each_named_tag_is_an_offering_of_its_own() {
    let registry = FakeRegistry::new("dh");
    registry.push("org/hello:latest", &manifest("2.0.0"));
    registry.push("org/hello:v1.0", &manifest("1.0.0"));
    let fixture = Fixture::with(&[registry]);
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello", "hello-v1.0"]);
    let (_, catalog) = broker.send("GET", "/v2/catalog", Value::Null).await;
    assert_eq!(catalog["services"][0]["id"], "hello-id");
    assert_ne!(catalog["services"][1]["id"], "hello-id");
}

#[tokio::test]
async fn unchanged_items_are_not_read_again() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    let fetched = registry.fetched();
    broker.refresh().await;
    broker.refresh().await;
    assert_eq!(registry.fetched(), fetched);
}

#[tokio::test]
async fn a_dry_run_lists_changes_and_writes_nothing() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    registry.remove("org/hello:latest");
    registry.push("org/new:latest", &manifest("1.0.0"));
    let plan = broker.publisher.plan().await.expect("the store answers");
    let words: Vec<&str> = plan
        .iter()
        .map(sutler_registry::RegistryChange::word)
        .collect();
    assert_eq!(words, ["listed", "add", "mark"]);
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.specs("dh").await, ["org/hello:latest"]);
}
