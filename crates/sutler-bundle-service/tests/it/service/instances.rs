//! Instances: inputs of provision, update and deprovision, and the use of their results.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST, until};
use serde_json::{Value, json};
use sutler_bundle::Action;
use sutler_runner::Exit;

/// Regression: R28.
#[tokio::test]
async fn an_instance_lives_from_provision_to_deprovision_with_its_state() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let made = Script::well()
        .state(json!({ "db": "d1", "gone": 1 }))
        .credentials(json!({ "root": "toor-toor" }));
    fixture.fake.set_script(Action::Provision, made);
    let parameters = json!({ "size": 2 });
    broker
        .send(broker.provision("i").with("parameters", parameters))
        .await
        .is(201);
    let vars = fixture.fake.last_vars();
    for (name, expected) in [
        ("size", json!(2)),
        ("_apb_plan_id", json!("small")),
        ("_apb_service_instance_id", json!("i")),
        ("_apb_last_requesting_user", json!("duke")),
        ("_apb_bundle_version", json!("1.2.3")),
        ("namespace", json!("blue")),
        ("cluster", json!("kubernetes")),
    ] {
        assert_eq!(vars.get(name), Some(&expected), "{name}");
    }
    assert!(!vars.keys().any(|name| name.starts_with("state_")));
    let started_specs = fixture.fake.started_specs();
    assert!(
        started_specs[0].state.is_none(),
        "no state before the first provision"
    );

    fixture.fake.set_script(
        Action::Update,
        Script::well().state(json!({ "gone": null, "n": 2 })),
    );
    let change = json!({ "parameters": { "size": 3 } });
    broker.send(broker.update("i", change)).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["size"], json!(3));
    assert_eq!(vars["_apb_previous_parameters"], json!({ "size": 2 }));
    assert_eq!(vars["state_db"], json!("d1"));
    assert_eq!(vars["state_gone"], json!(1));

    broker.send(broker.deprovision("i")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["state_db"], json!("d1"));
    assert_eq!(vars["state_n"], json!(2));
    assert!(!vars.contains_key("state_gone"), "a key can be removed");
    assert_eq!(vars["_apb_provision_creds"], json!({ "root": "toor-toor" }));
    assert_eq!(
        fixture.fake.actions(),
        [Action::Provision, Action::Update, Action::Deprovision]
    );
    until("what is over is removed", async || fixture.fake.left() == 0).await;
}

/// Regression: R25.
#[tokio::test]
async fn a_failed_deprovision_keeps_the_state_for_the_next() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture.fake.set_script(
        Action::Provision,
        Script::well().state(json!({ "db": "d1" })),
    );
    broker.send(broker.provision("i")).await.is(201);
    fixture.fake.set_script(
        Action::Deprovision,
        Script::exits(1).state(json!({ "db": null })),
    );
    broker.send(broker.deprovision("i")).await.is(500);
    fixture.fake.set_script(Action::Deprovision, Script::well());
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(fixture.fake.last_vars()["state_db"], json!("d1"));
}

/// Regression: R3, R5.
#[tokio::test]
async fn a_failed_provision_says_why_and_leaves_its_state_to_the_clean_up() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let failing = Script::exits(3)
        .state(json!({ "half": "made" }))
        .error("No room left.");
    fixture.fake.set_script(Action::Provision, failing);
    let refused = broker.send(broker.provision("i")).await.is(500);
    assert_eq!(refused["description"], "No room left.");
    broker.send(broker.fetch("i")).await.is(404);
    fixture.fake.set_script(Action::Provision, Script::exits(1));
    broker.send(broker.provision("i")).await.is(500);
    assert_eq!(
        fixture.fake.last_vars()["state_half"],
        json!("made"),
        "the next try knows"
    );
    broker.send(broker.deprovision("i")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["state_half"], json!("made"));
    assert_eq!(vars["_apb_provision_creds"], json!({}));
}

/// Regression: R34, R35.
#[tokio::test]
async fn typed_values_are_updated_and_a_failed_update_changes_nothing() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let parameters = json!({ "size": 1, "flags": { "fast": false } });
    broker
        .send(broker.provision("i").with("parameters", parameters.clone()))
        .await
        .is(201);
    fixture
        .fake
        .set_script(Action::Update, Script::exits(1).state(json!({ "half": 1 })));
    let change =
        json!({ "parameters": { "size": 9, "flags": { "fast": true } }, "plan_id": "large-id" });
    broker
        .send(broker.update("i", json!({ "plan_id": "large-id" })))
        .await
        .is(500);
    let typed = json!({ "parameters": change["parameters"] });
    broker.send(broker.update("i", typed.clone())).await.is(500);
    let there = broker.send(broker.fetch("i")).await.is(200);
    assert_eq!(there["parameters"], parameters);
    assert_eq!(there["plan_id"], "small-id");
    fixture.fake.set_script(Action::Update, Script::well());
    broker.send(broker.update("i", typed)).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(
        (&vars["size"], &vars["flags"]),
        (&json!(9), &json!({ "fast": true }))
    );
    assert!(
        !vars.contains_key("state_half"),
        "only what succeeded is kept"
    );
    broker
        .send(broker.update("i", json!({ "parameters": { "size": "nine" } })))
        .await
        .is(400);
}

/// Regression: R39.
#[tokio::test]
async fn a_fetch_shows_real_ids_the_dashboard_and_nothing_internal() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture.fake.set_script(
        Action::Provision,
        Script::well().state(json!({ "db": "d1" })),
    );
    let made = broker.send(broker.provision("i")).await.is(201);
    assert_eq!(made["dashboard_url"], "https://db.example.com/i");
    let there = broker.send(broker.fetch("i")).await.is(200);
    let expected = json!({
        "service_id": "db-id", "plan_id": "small-id", "parameters": {},
        "dashboard_url": "https://db.example.com/i",
        "maintenance_info": { "version": "1.2.3" },
    });
    assert_eq!(there, expected);
    fixture.fake.set_script(
        Action::Update,
        Script::well().dashboard("https://db.example.com/own"),
    );
    broker
        .send(broker.update("i", json!({ "parameters": { "size": 2 } })))
        .await
        .is(200);
    let there = broker.send(broker.fetch("i")).await.is(200);
    assert_eq!(there["dashboard_url"], "https://db.example.com/own");
}

#[tokio::test]
async fn names_of_the_broker_and_ways_that_do_not_exist_are_refused_at_once() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let forged = json!({ "_apb_plan_id": "large" });
    broker
        .send(broker.provision("i").with("parameters", forged))
        .await
        .is(400);
    broker.send(broker.provision("i")).await.is(201);
    let moved = broker.update("i", json!({ "plan_id": "tiny-id" }));
    let refused = broker.send(moved).await.is(400);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("large"), "{sentence}");
    assert_eq!(fixture.fake.actions(), [Action::Provision]);
}

#[tokio::test]
async fn the_same_request_by_another_user_is_the_same_request() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    broker
        .send(broker.provision("i").by("duchess"))
        .await
        .is(200);
    assert_eq!(fixture.fake.actions(), [Action::Provision]);
}

/// Regression: R4.
#[tokio::test]
async fn what_a_run_says_is_told_to_polls_and_kept_without_secrets() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let talking = Script::well()
        .with_output("making it with hunt")
        .with_output("er22 and nothing else\n")
        .with_progress("half of it made by hunter22")
        .held();
    fixture.fake.set_script(Action::Provision, talking);
    let parameters = json!({ "password": "hunter22" });
    let ask = broker
        .provision("i")
        .with("parameters", parameters)
        .asynchronous();
    let operation = broker.send(ask).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
    until("the poll tells how far it is", async || {
        let answer = broker.get(&path).await;
        assert_ne!(answer["state"], "failed");
        answer["description"] == "half of it made by *** (40 %)"
    })
    .await;
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    let log = broker.send(broker.log(operation)).await.is(200);
    assert_eq!(text_of(&log), "making it with *** and nothing else\n");
}

pub(super) fn text_of(log: &Value) -> String {
    let items = log["items"].as_array().into_iter().flatten();
    items.filter_map(|it| it["text"].as_str()).collect()
}

#[tokio::test]
async fn a_delete_during_a_create_ends_the_run_and_cleans_up() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let held = Script::well().state(json!({ "db": "d1" })).held();
    fixture.fake.set_script(Action::Provision, held);
    broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202);
    until("it runs", async || fixture.fake.left() == 1).await;
    let accepted = broker
        .send(broker.deprovision("i").asynchronous())
        .await
        .is(202);
    let operation = accepted["operation"].as_str().expect("an operation");
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(
        fixture.fake.actions(),
        [Action::Provision, Action::Deprovision]
    );
    assert_eq!(
        fixture.fake.last_vars()["state_db"],
        json!("d1"),
        "what was set is known"
    );
    until("nothing is left", async || fixture.fake.left() == 0).await;
}

#[tokio::test]
async fn forced_ends_are_reported_in_a_sentence() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    for (exit, word) in [
        (Exit::Deadline, "longer than it may"),
        (Exit::Memory, "memory"),
        (Exit::Signal(11), "signal 11"),
        (Exit::Code(8), "no provision action"),
        (Exit::Code(7), "exit code 7"),
    ] {
        let mut play = Script::well();
        play.exit = exit;
        fixture.fake.set_script(Action::Provision, play);
        let refused = broker.send(broker.provision("i")).await.is(500);
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains(word), "{sentence}");
    }
}

#[tokio::test]
async fn conditions_between_parameters_are_checked_against_the_current_ones() {
    let fixture = Fixture::new();
    let manifest = super::fixture::MANIFEST.replace(
        "    bind_parameters:\n",
        "      - {name: storage, type: string, enum: [none, disk], default: none, updatable: true}\n      \
         - name: gigabytes\n        type: int\n        required: true\n        updatable: true\n        \
         dependencies: [{key: storage, value: [disk]}]\n    bind_parameters:\n",
    );
    fixture.write("db", &manifest);
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let change = async |parameters: Value| {
        let reply = broker.send(broker.update("i", json!({ "parameters": parameters })));
        let reply = reply.await;
        let sentence = reply.json["description"].as_str().map(str::to_owned);
        (reply.status, sentence.unwrap_or_default())
    };
    let (status, sentence) = change(json!({ "gigabytes": 5 })).await;
    assert_eq!(status, 400, "there is no storage: {sentence}");
    assert!(sentence.contains("gigabytes cannot be given"), "{sentence}");
    let (status, sentence) = change(json!({ "storage": "disk" })).await;
    assert_eq!(status, 400, "a disk needs a size: {sentence}");
    assert!(sentence.contains("gigabytes is required"), "{sentence}");
    assert_eq!(
        fixture.fake.actions(),
        [Action::Provision],
        "nothing was run"
    );
    let both = json!({ "storage": "disk", "gigabytes": 5 });
    assert_eq!(change(both).await.0, 200);
    assert_eq!(
        change(json!({ "gigabytes": 6 })).await.0,
        200,
        "there is a disk now"
    );
    assert_eq!(change(json!({ "size": 2 })).await.0, 200);
    assert_eq!(change(json!({ "storage": "none" })).await.0, 200);
}

#[tokio::test]
async fn credentials_are_stored_although_the_state_is_too_large() {
    let large = || json!({ "db": "d1", "blob": "x".repeat(200_000), "more": "y".repeat(100_000) });
    let gives = |root: &str| Script::well().credentials(json!({ "root": root }));
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, gives("first").state(large()));
    let refused = broker.send(broker.provision("i")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("state would have"), "{sentence}");
    broker.send(broker.deprovision("i")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["_apb_provision_creds"], json!({ "root": "first" }));
    assert_eq!(vars["state_db"], json!("d1"));

    fixture.fake.set_script(Action::Provision, gives("first"));
    broker.send(broker.provision("j")).await.is(201);
    fixture
        .fake
        .set_script(Action::Update, gives("second").state(large()));
    let change = json!({ "parameters": { "size": 3 } });
    broker.send(broker.update("j", change)).await.is(500);
    broker.send(broker.deprovision("j")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["_apb_provision_creds"], json!({ "root": "second" }));
    assert!(
        !vars.contains_key("state_db"),
        "a failed update sets nothing"
    );
}

/// The entry point of an image may be an Ansible that does not know how to read a literal text.
#[tokio::test]
async fn an_image_of_playbooks_gets_no_id_user_or_place_that_is_a_template() {
    const TEMPLATE: &str = "{{lookup('pipe','id')}}";
    const IN_PATH: &str = "%7B%7Blookup('pipe','id')%7D%7D";
    let mut fixture = Fixture::new();
    let image = format!(
        "async: optional\nentrypoint: playbooks\nimage: example.com/db@sha256:{}",
        "a".repeat(64)
    );
    fixture.write("db", &MANIFEST.replace("async: optional", &image));
    fixture.has_engine = true;
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let runs = fixture.fake.actions().len();
    let place =
        |field: &str| json!({ "platform": "kubernetes", "namespace": "blue", field: TEMPLATE });
    let change = |context: Value| json!({ "context": context, "parameters": { "size": 3 } });
    let same = json!({ "platform": "kubernetes", "namespace": "blue" });
    let context_only = json!({ "context": place("namespace") });
    for (word, ask) in [
        ("instance id", broker.provision(IN_PATH)),
        ("user", broker.provision("j").by(TEMPLATE)),
        (
            "namespace",
            broker.provision("j").with("context", place("namespace")),
        ),
        (
            "platform",
            broker.provision("j").with("context", place("platform")),
        ),
        ("user", broker.update("i", change(same)).by(TEMPLATE)),
        ("namespace", broker.update("i", change(place("namespace")))),
        ("namespace", broker.update("i", context_only)),
        ("binding id", broker.bind("i", IN_PATH)),
        ("user", broker.bind("i", "b").by(TEMPLATE)),
        (
            "platform",
            broker.bind("i", "b").with("context", place("platform")),
        ),
    ] {
        let refused = broker.send(ask).await.is(400);
        let why = refused["description"].as_str().unwrap_or_default();
        assert!(why.contains(word) && !why.contains("lookup"), "{why}");
    }
    assert_eq!(fixture.fake.actions().len(), runs, "nothing was run");
    // Other values of the context are not passed on.
    let other = place("instance_name");
    broker
        .send(broker.provision("j").with("context", other))
        .await
        .is(201);
    // A removal is never refused, and does without the name.
    broker
        .send(broker.deprovision("i").by(TEMPLATE))
        .await
        .is(200);
    assert_eq!(fixture.fake.last_vars()["_apb_last_requesting_user"], "");
    broker.send(broker.deprovision(IN_PATH)).await.is(410);
}

#[tokio::test]
async fn a_folder_takes_ids_users_and_places_that_look_like_templates() {
    const TEMPLATE: &str = "{{lookup('pipe','id')}}";
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let id = "%7B%7Blookup('pipe','id')%7D%7D";
    let ask = broker.provision(id).by(TEMPLATE);
    let ask = ask.with("context", json!({ "platform": "x", "namespace": TEMPLATE }));
    broker.send(ask).await.is(201);
    broker.send(broker.deprovision(id)).await.is(200);
}
