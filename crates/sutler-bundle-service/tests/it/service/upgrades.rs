//! Upgrades: an update that asks for the catalog's version runs that version, and leaves the instance with it.

use super::fake::Play;
use super::house::{Ask, House, MANIFEST, Reply, Room, until};
use serde_json::{Value, json};
use sutler_bundle::Action;
use sutler_bundle_service::NO_SUCH_ACTION;
use sutler_runner::{Order, Runnable};

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
async fn old_instance() -> (House, Room) {
    let house = House::new();
    let mut room = house.open().await;
    let made = Play::well().state(json!({ "db": "d1" }));
    house.fake.plays(Action::Provision, made);
    room.send(room.provision("i")).await.is(201);
    house.write("db", &newer(NEW));
    room.refresh().await;
    (house, room)
}

fn upgrade(room: &Room, version: &str) -> Ask {
    room.update("i", json!({ "maintenance_info": { "version": version } }))
}

async fn fetched(room: &Room) -> Value {
    let instance = room.send(room.fetch("i")).await.is(200);
    instance["maintenance_info"]["version"].clone()
}

fn last(house: &House) -> Order {
    house.fake.ordered().pop().expect("a run")
}

fn content(order: &Order) -> String {
    match &order.runnable {
        Runnable::Folder { path, .. } => path.display().to_string(),
        Runnable::Image { reference, .. } => reference.clone(),
    }
}

/// What a run is told of versions: its own, and the one before.
fn told(order: &Order) -> (Value, Option<Value>) {
    let of = |name: &str| order.vars.0.get(name).cloned();
    let own = of("_apb_bundle_version").unwrap_or_default();
    (own, of("_apb_previous_bundle_version"))
}

fn refused_as(reply: Reply, word: &str) {
    assert_eq!(reply.is(422)["error"], word);
}

/// Holds: B-077, B-155, B-167.
#[tokio::test]
async fn an_instance_is_moved_on_by_the_new_version_and_then_served_by_it() {
    let (house, room) = old_instance().await;
    let catalog = room.get("/v2/catalog").await;
    for plan in catalog["services"][0]["plans"].as_array().expect("plans") {
        let info = json!({ "version": NEW, "description": "It restarts." });
        assert_eq!(plan["maintenance_info"], info);
    }
    assert_eq!(fetched(&room).await, OLD, "an upgrade is offered");
    let made_by = content(&last(&house));

    // Without a version it stays where it is.
    let grown = room.update("i", json!({ "parameters": { "size": 2 } }));
    room.send(grown).await.is(200);
    assert_eq!(content(&last(&house)), made_by);
    assert_eq!(told(&last(&house)), (json!(OLD), None));
    refused_as(
        room.send(upgrade(&room, "9.0.0")).await,
        "MaintenanceInfoConflict",
    );
    refused_as(
        room.send(upgrade(&room, OLD)).await,
        "MaintenanceInfoConflict",
    );

    let painted = Play::well().state(json!({ "schema": 2 }));
    house.fake.plays(Action::Update, painted);
    let patch = upgrade(&room, NEW).with(
        "previous_values",
        json!({ "maintenance_info": { "version": "0.0.1" } }),
    );
    room.send(patch.clone()).await.is(200);
    let ran = last(&house);
    assert_eq!(ran.action, Action::Update);
    assert_ne!(content(&ran), made_by);
    assert_eq!(told(&ran), (json!(NEW), Some(json!(OLD))));
    assert_eq!(ran.vars.0["state_db"], "d1");
    assert_eq!(fetched(&room).await, NEW);
    let runs = house.fake.ordered().len();
    room.send(patch).await.is(200);
    assert_eq!(house.fake.ordered().len(), runs, "it is there already");

    let given = Play::well().credentials(json!({ "user": "u" }));
    house.fake.plays(Action::Bind, given);
    room.send(room.bind("i", "b")).await.is(201);
    room.send(room.unbind("i", "b")).await.is(200);
    drop(room);
    let room = house.open().await;
    room.send(room.deprovision("i")).await.is(200);
    for order in &house.fake.ordered()[runs..] {
        assert_eq!(content(order), content(&ran), "{}", order.action);
        assert_eq!(told(order), (json!(NEW), None));
    }
    assert_eq!(last(&house).vars.0["state_schema"], 2);
}

/// Holds: B-169.
#[tokio::test]
async fn an_upgrade_that_fails_or_is_stopped_leaves_the_instance_at_the_old_version() {
    let (house, room) = old_instance().await;
    let made_by = content(&last(&house));
    house.fake.plays(Action::Update, Play::exits(1));
    room.send(upgrade(&room, NEW)).await.is(500);
    assert_ne!(content(&last(&house)), made_by);
    assert_eq!(fetched(&room).await, OLD);

    house.fake.plays(Action::Update, Play::well().held());
    let started = room.send(upgrade(&room, NEW).later()).await.is(202);
    until("it runs", async || house.fake.ordered().len() == 3).await;
    let cancel = Ask::order(&room, "/admin/v1/instances/i/cancel");
    room.send(cancel).await.is(200);
    let operation = started["operation"].as_str().expect("an operation");
    assert_eq!(room.until_done("i", operation).await["state"], "failed");
    assert_eq!(fetched(&room).await, OLD);
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(content(&last(&house)), made_by);
    assert_eq!(told(&last(&house)), (json!(OLD), None));
}

#[tokio::test]
async fn an_upgrade_goes_on_with_the_version_it_began_with_whatever_becomes_of_the_catalog() {
    let (house, room) = old_instance().await;
    house.fake.plays(Action::Update, Play::well().held());
    let started = room.send(upgrade(&room, NEW).later()).await.is(202);
    let operation = started["operation"]
        .as_str()
        .expect("an operation")
        .to_owned();
    until("it runs", async || house.fake.ordered().len() == 2).await;
    room.crash();
    house.write("db", &newer("3.0.0"));
    let room = house.open().await;
    let again = room.send(upgrade(&room, NEW).later()).await.is(202);
    assert_eq!(again["operation"], operation, "a repeat joins it");
    refused_as(
        room.send(upgrade(&room, "3.0.0").later()).await,
        "ConcurrencyError",
    );
    house.fake.release();
    assert_eq!(room.until_done("i", &operation).await["state"], "succeeded");
    assert_eq!(house.fake.ordered().len(), 2, "one run");
    assert_eq!(fetched(&room).await, NEW);
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(content(&last(&house)), content(&house.fake.ordered()[1]));
    assert_eq!(told(&last(&house)).0, json!(NEW));
}

#[tokio::test]
async fn another_plan_alone_is_no_upgrade() {
    let (house, room) = old_instance().await;
    let made_by = content(&last(&house));
    let moved = room.update("i", json!({ "plan_id": "large-id" }));
    room.send(moved).await.is(200);
    assert_eq!(content(&last(&house)), made_by);
    assert_eq!(told(&last(&house)), (json!(OLD), None));
    assert_eq!(fetched(&room).await, OLD);
    room.send(upgrade(&room, NEW)).await.is(200);
    assert_eq!(told(&last(&house)), (json!(NEW), Some(json!(OLD))));
    assert_eq!(fetched(&room).await, NEW);
}

/// Holds: B-165.
#[tokio::test]
async fn nobody_is_taken_back_or_moved_by_a_bundle_that_cannot_update() {
    let (house, mut room) = old_instance().await;
    house.write("db", &newer("1.0.0"));
    room.refresh().await;
    let reply = room.send(upgrade(&room, "1.0.0")).await.is(422);
    let sentence = reply["description"].as_str().expect("a sentence");
    assert!(
        sentence.contains(OLD) && reply.get("error").is_none(),
        "{reply}"
    );

    house.write("db", &newer(NEW));
    room.refresh().await;
    house
        .fake
        .plays(Action::Update, Play::exits(NO_SUCH_ACTION));
    room.send(upgrade(&room, NEW)).await.is(422);
    assert_eq!(fetched(&room).await, OLD);

    let script = house.bundles().join("db/actions/update");
    std::fs::remove_file(script).expect("it goes");
    room.refresh().await;
    let catalog = room.get("/v2/catalog").await;
    let plan = &catalog["services"][0]["plans"][0];
    assert!(plan.get("maintenance_info").is_none(), "{plan}");
    refused_as(
        room.send(upgrade(&room, NEW)).await,
        "MaintenanceInfoConflict",
    );
}

#[tokio::test]
async fn what_was_secret_in_the_old_version_is_kept_out_of_the_log_of_the_new_one() {
    let house = House::new();
    let flags = "      - {name: phrase, type: string, secret: true}\n    bind_parameters:";
    house.write("db", &MANIFEST.replace("    bind_parameters:", flags));
    let mut room = house.open().await;
    let parameters = json!({ "phrase": "open-sesame" });
    room.send(room.provision("i").with("parameters", parameters))
        .await
        .is(201);
    house.write("db", &newer(NEW));
    room.refresh().await;
    let said = Play::well().says("it was open-sesame\n");
    house.fake.plays(Action::Update, said);
    let started = room.send(upgrade(&room, NEW).later()).await.is(202);
    let operation = started["operation"].as_str().expect("an operation");
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(last(&house).vars.0["phrase"], "open-sesame");
    let log = room.send(room.log(operation)).await.is(200).to_string();
    assert!(log.contains("it was") && !log.contains("sesame"), "{log}");
}

#[tokio::test]
async fn operators_see_which_version_runs_an_instance_and_which_one_is_offered() {
    let (_house, room) = old_instance().await;
    let line = async || room.get("/admin/v1/instances?version=1.2.3").await["items"][0].clone();
    let before = line().await;
    assert_eq!(
        (&before["version"], &before["upgrade_to"]),
        (&json!(OLD), &json!(NEW))
    );
    room.send(upgrade(&room, NEW)).await.is(200);
    assert!(line().await.is_null(), "none is at that version any more");
    let shown = room.get("/admin/v1/instances/i").await;
    assert_eq!(
        (&shown["bundle"], &shown["version"]),
        (&json!("db"), &json!(NEW))
    );
    assert!(shown["upgrade_to"].is_null());
    let digest = shown["bundle_digest"].as_str().expect("a digest");
    assert!(digest.starts_with("sha256:"), "{digest}");
}
