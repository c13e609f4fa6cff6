//! Upgrades: an update that requests the catalog's version runs that version, and the instance has it afterwards.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST, Reply, TestBroker, TestRequest, until};
use serde_json::{Value, json};
use sutler_bundle::Action;
use sutler_bundle_service::NO_SUCH_ACTION;
use sutler_runner::{RunSpec, Runnable};

const OLD: &str = "1.2.3";
const NEW: &str = "2.0.0";

fn newer(version: &str) -> String {
    let manifest = MANIFEST.replace(OLD, version);
    manifest.replace(
        "description: A database.",
        "description: A database.\nupgrade: It restarts.",
    )
}

/// An instance `i` of the old version, and the new version in the catalog.
async fn old_instance() -> (Fixture, TestBroker) {
    let fixture = Fixture::new();
    let mut broker = fixture.open().await;
    let made = Script::well().state(json!({ "db": "d1" }));
    fixture.fake.set_script(Action::Provision, made);
    broker.send(broker.provision("i")).await.is(201);
    fixture.write("db", &newer(NEW));
    broker.refresh().await;
    (fixture, broker)
}

fn upgrade(broker: &TestBroker, version: &str) -> TestRequest {
    broker.update("i", json!({ "maintenance_info": { "version": version } }))
}

async fn fetched(broker: &TestBroker) -> Value {
    let instance = broker.send(broker.fetch("i")).await.is(200);
    instance["maintenance_info"]["version"].clone()
}

fn last(fixture: &Fixture) -> RunSpec {
    fixture.fake.started_specs().pop().expect("a run")
}

fn content(run_spec: &RunSpec) -> String {
    match &run_spec.runnable {
        Runnable::Folder { path, .. } => path.display().to_string(),
        Runnable::Image { reference, .. } => reference.clone(),
    }
}

/// Versions among the inputs of a run: its own, and the one before.
fn version_inputs(run_spec: &RunSpec) -> (Value, Option<Value>) {
    let of = |name: &str| run_spec.vars.0.get(name).cloned();
    let own = of("_apb_bundle_version").unwrap_or_default();
    (own, of("_apb_previous_bundle_version"))
}

fn refused_as(reply: Reply, word: &str) {
    assert_eq!(reply.is(422)["error"], word);
}

/// Holds: B-077, B-155, B-167.
#[tokio::test]
async fn an_instance_is_moved_on_by_the_new_version_and_then_served_by_it() {
    let (fixture, broker) = old_instance().await;
    let catalog = broker.get("/v2/catalog").await;
    for plan in catalog["services"][0]["plans"].as_array().expect("plans") {
        let info = json!({ "version": NEW, "description": "It restarts." });
        assert_eq!(plan["maintenance_info"], info);
    }
    assert_eq!(fetched(&broker).await, OLD, "an upgrade is offered");
    let made_by = content(&last(&fixture));

    // Without a version in the request it is not upgraded.
    let grown = broker.update("i", json!({ "parameters": { "size": 2 } }));
    broker.send(grown).await.is(200);
    assert_eq!(content(&last(&fixture)), made_by);
    assert_eq!(version_inputs(&last(&fixture)), (json!(OLD), None));
    refused_as(
        broker.send(upgrade(&broker, "9.0.0")).await,
        "MaintenanceInfoConflict",
    );
    refused_as(
        broker.send(upgrade(&broker, OLD)).await,
        "MaintenanceInfoConflict",
    );

    let painted = Script::well().state(json!({ "schema": 2 }));
    fixture.fake.set_script(Action::Update, painted);
    let patch = upgrade(&broker, NEW).with(
        "previous_values",
        json!({ "maintenance_info": { "version": "0.0.1" } }),
    );
    broker.send(patch.clone()).await.is(200);
    let ran = last(&fixture);
    assert_eq!(ran.action, Action::Update);
    assert_ne!(content(&ran), made_by);
    assert_eq!(version_inputs(&ran), (json!(NEW), Some(json!(OLD))));
    assert_eq!(ran.vars.0["state_db"], "d1");
    assert_eq!(fetched(&broker).await, NEW);
    let runs = fixture.fake.started_specs().len();
    broker.send(patch).await.is(200);
    assert_eq!(
        fixture.fake.started_specs().len(),
        runs,
        "it is there already"
    );

    let given = Script::well().credentials(json!({ "user": "u" }));
    fixture.fake.set_script(Action::Bind, given);
    broker.send(broker.bind("i", "b")).await.is(201);
    broker.send(broker.unbind("i", "b")).await.is(200);
    drop(broker);
    let broker = fixture.open().await;
    broker.send(broker.deprovision("i")).await.is(200);
    for run_spec in &fixture.fake.started_specs()[runs..] {
        assert_eq!(content(run_spec), content(&ran), "{}", run_spec.action);
        assert_eq!(version_inputs(run_spec), (json!(NEW), None));
    }
    assert_eq!(last(&fixture).vars.0["state_schema"], 2);
}

/// Holds: B-169.
#[tokio::test]
async fn an_upgrade_that_fails_or_is_stopped_leaves_the_instance_at_the_old_version() {
    let (fixture, broker) = old_instance().await;
    let made_by = content(&last(&fixture));
    fixture.fake.set_script(Action::Update, Script::exits(1));
    broker.send(upgrade(&broker, NEW)).await.is(500);
    assert_ne!(content(&last(&fixture)), made_by);
    assert_eq!(fetched(&broker).await, OLD);

    fixture
        .fake
        .set_script(Action::Update, Script::well().held());
    let started = broker
        .send(upgrade(&broker, NEW).asynchronous())
        .await
        .is(202);
    until("it runs", async || fixture.fake.started_specs().len() == 3).await;
    let cancel = TestRequest::admin_command(&broker, "/admin/v1/instances/i/cancel");
    broker.send(cancel).await.is(200);
    let operation = started["operation"].as_str().expect("an operation");
    assert_eq!(broker.until_done("i", operation).await["state"], "failed");
    assert_eq!(fetched(&broker).await, OLD);
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(content(&last(&fixture)), made_by);
    assert_eq!(version_inputs(&last(&fixture)), (json!(OLD), None));
}

#[tokio::test]
async fn an_upgrade_continues_with_its_version_although_the_catalog_changes() {
    let (fixture, broker) = old_instance().await;
    fixture
        .fake
        .set_script(Action::Update, Script::well().held());
    let started = broker
        .send(upgrade(&broker, NEW).asynchronous())
        .await
        .is(202);
    let operation = started["operation"]
        .as_str()
        .expect("an operation")
        .to_owned();
    until("it runs", async || fixture.fake.started_specs().len() == 2).await;
    broker.crash();
    fixture.write("db", &newer("3.0.0"));
    let broker = fixture.open().await;
    let again = broker
        .send(upgrade(&broker, NEW).asynchronous())
        .await
        .is(202);
    assert_eq!(again["operation"], operation, "a repeat joins it");
    refused_as(
        broker.send(upgrade(&broker, "3.0.0").asynchronous()).await,
        "ConcurrencyError",
    );
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", &operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.started_specs().len(), 2, "one run");
    assert_eq!(fetched(&broker).await, NEW);
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(
        content(&last(&fixture)),
        content(&fixture.fake.started_specs()[1])
    );
    assert_eq!(version_inputs(&last(&fixture)).0, json!(NEW));
}

#[tokio::test]
async fn another_plan_alone_is_no_upgrade() {
    let (fixture, broker) = old_instance().await;
    let made_by = content(&last(&fixture));
    let moved = broker.update("i", json!({ "plan_id": "large-id" }));
    broker.send(moved).await.is(200);
    assert_eq!(content(&last(&fixture)), made_by);
    assert_eq!(version_inputs(&last(&fixture)), (json!(OLD), None));
    assert_eq!(fetched(&broker).await, OLD);
    broker.send(upgrade(&broker, NEW)).await.is(200);
    assert_eq!(
        version_inputs(&last(&fixture)),
        (json!(NEW), Some(json!(OLD)))
    );
    assert_eq!(fetched(&broker).await, NEW);
}

/// Holds: B-165.
#[tokio::test]
async fn nobody_is_taken_back_or_moved_by_a_bundle_that_cannot_update() {
    let (fixture, mut broker) = old_instance().await;
    fixture.write("db", &newer("1.0.0"));
    broker.refresh().await;
    let reply = broker.send(upgrade(&broker, "1.0.0")).await.is(422);
    let sentence = reply["description"].as_str().expect("a sentence");
    assert!(
        sentence.contains(OLD) && reply.get("error").is_none(),
        "{reply}"
    );

    fixture.write("db", &newer(NEW));
    broker.refresh().await;
    fixture
        .fake
        .set_script(Action::Update, Script::exits(NO_SUCH_ACTION));
    broker.send(upgrade(&broker, NEW)).await.is(422);
    assert_eq!(fetched(&broker).await, OLD);

    let script = fixture.bundles().join("db/actions/update");
    std::fs::remove_file(script).expect("it goes");
    broker.refresh().await;
    let catalog = broker.get("/v2/catalog").await;
    let plan = &catalog["services"][0]["plans"][0];
    assert!(plan.get("maintenance_info").is_none(), "{plan}");
    refused_as(
        broker.send(upgrade(&broker, NEW)).await,
        "MaintenanceInfoConflict",
    );
}

#[tokio::test]
async fn secrets_of_the_old_version_are_redacted_from_the_log_of_the_new_one() {
    let fixture = Fixture::new();
    let flags = "      - {name: phrase, type: string, secret: true}\n    bind_parameters:";
    fixture.write("db", &MANIFEST.replace("    bind_parameters:", flags));
    let mut broker = fixture.open().await;
    let parameters = json!({ "phrase": "open-sesame" });
    broker
        .send(broker.provision("i").with("parameters", parameters))
        .await
        .is(201);
    fixture.write("db", &newer(NEW));
    broker.refresh().await;
    let script = Script::well().with_output("it was open-sesame\n");
    fixture.fake.set_script(Action::Update, script);
    let started = broker
        .send(upgrade(&broker, NEW).asynchronous())
        .await
        .is(202);
    let operation = started["operation"].as_str().expect("an operation");
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(last(&fixture).vars.0["phrase"], "open-sesame");
    let log = broker.send(broker.log(operation)).await.is(200).to_string();
    assert!(log.contains("it was") && !log.contains("sesame"), "{log}");
}

#[tokio::test]
async fn operators_see_which_version_runs_an_instance_and_which_one_is_offered() {
    let (_house, broker) = old_instance().await;
    let line = async || broker.get("/admin/v1/instances?version=1.2.3").await["items"][0].clone();
    let before = line().await;
    assert_eq!(
        (&before["version"], &before["upgrade_to"]),
        (&json!(OLD), &json!(NEW))
    );
    broker.send(upgrade(&broker, NEW)).await.is(200);
    assert!(line().await.is_null(), "none is at that version any more");
    let shown = broker.get("/admin/v1/instances/i").await;
    assert_eq!(
        (&shown["bundle"], &shown["version"]),
        (&json!("db"), &json!(NEW))
    );
    assert!(shown["upgrade_to"].is_null());
    let digest = shown["bundle_digest"].as_str().expect("a digest");
    assert!(digest.starts_with("sha256:"), "{digest}");
}
