//! Typed services: schemas from types, state handed on from hook to hook, two messages per error.

use super::{Log, RestartableBroker};
use crate::fixture::test_catalog::{LARGE, SMALL};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use sutler_broker::prelude::JsonSchema;
use sutler_broker::{
    Bound, Cx, Error, InstanceSpec, Policy, Predecessor, Provisioned, Result, Service, Update,
    Updated,
};
use sutler_osb::{InstanceId, OperationKind, PinnedPlan};

/// Parameters of the user.
#[derive(Deserialize, JsonSchema)]
struct Params {
    /// How many seats it has.
    seats: u32,
    #[serde(default)]
    colour: Option<String>,
}

/// State of an instance.
#[derive(Debug, Serialize, Deserialize)]
struct Car {
    seats: u32,
    history: Vec<String>,
}

/// Arguments of hooks, in order.
type HookCalls = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Default)]
struct Garage {
    calls: HookCalls,
    fails: bool,
}

impl Garage {
    fn was_given(&self, what: impl Into<String>) {
        self.calls.lock().unwrap().push(what.into());
    }

    fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// The caller reads one sentence, the operator another.
    fn outcome(&self) -> Result<()> {
        if self.fails {
            let error = Error::failed("The garage is closed.");
            return Err(error.because("the mechanic of bay 7 is ill"));
        }
        Ok(())
    }
}

impl Service for Garage {
    type Params = Params;
    type State = Car;
    const UPDATES: bool = true;

    async fn provision(&self, _: &Cx, params: Params) -> Result<Provisioned<Car>> {
        self.outcome()?;
        let history = vec![params.colour.unwrap_or_default()];
        Ok(Provisioned::new(Car {
            seats: params.seats,
            history,
        }))
    }

    async fn update(&self, _: &Cx, mut car: Car, update: Update<Params>) -> Result<Updated<Car>> {
        self.outcome()?;
        car.seats = update.params.seats;
        car.history.extend(update.params.colour);
        Ok(Provisioned::new(car))
    }

    async fn deprovision(&self, _: &Cx, car: Option<Car>) -> Result<()> {
        self.outcome()?;
        self.was_given(format!("deprovision {:?}", car.map(|car| car.history)));
        Ok(())
    }

    async fn bind(&self, cx: &Cx, car: &Car) -> Result<Bound> {
        self.outcome()?;
        let id = cx.binding_id().map_or("", |id| id.as_str());
        self.was_given(format!("bind {id} {:?}", car.history));
        Bound::credentials(json!({ "key": id })).state(&format!("key of {id}"))
    }

    async fn rotate(&self, cx: &Cx, car: &Car, from: Predecessor) -> Result<Bound> {
        let state = from.state.map(|state| state.0);
        let binding = from.binding_id.as_str();
        self.was_given(format!("rotate {binding} {}", state.unwrap_or_default()));
        self.bind(cx, car).await
    }

    async fn unbind(&self, cx: &Cx, car: &Car) -> Result<()> {
        self.outcome()?;
        let key: Option<String> = cx.binding_state()?;
        self.was_given(format!("unbind {key:?} {:?}", car.seats));
        Ok(())
    }

    fn dashboard_url(&self, instance: &InstanceId, spec: &InstanceSpec) -> Option<String> {
        let colour = spec.parameters.0.get("colour").and_then(Value::as_str);
        let id = instance.as_str();
        Some(format!("https://garage/{id}/{}", colour.unwrap_or("plain")))
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_the_parameters_is_published_in_the_catalog() {
    let house = RestartableBroker::new();
    let room = house.open(Garage::default()).await;
    let catalog = room.catalog().send().await.is(200).json;
    for plan in catalog["services"][0]["plans"].as_array().unwrap() {
        let schemas = &plan["schemas"]["service_instance"];
        let create = &schemas["create"]["parameters"];
        assert_eq!(create["properties"]["seats"]["type"], "integer");
        assert_eq!(create["required"], json!(["seats"]));
        let said = create["properties"]["seats"]["description"].as_str();
        assert_eq!(said, Some("How many seats it has."));
        let update = &schemas["update"]["parameters"];
        assert_eq!(update["properties"]["seats"]["type"], "integer");
        assert_eq!(update.get("required"), None, "an update names what changes");
    }
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_the_parameters_is_enforced_with_a_sentence_that_names_the_parameter() {
    let house = RestartableBroker::new();
    let room = house.open(Garage::default()).await;
    let wrong = [
        json!({}),
        json!({ "seats": "hunter2" }),
        json!({ "seats": -4 }),
        json!({ "seats": 4.5 }),
    ];
    for parameters in wrong {
        let ask = room.provision("i").parameters(parameters.clone());
        let reply = ask.send().await.is(400);
        assert!(reply.description().contains("seats"), "{}", reply.text);
        assert!(!reply.text.contains("hunter2"), "a value may be a secret");
    }
    assert!(house.operations().await.is_empty(), "nothing was written");
    room.provision("i")
        .parameters(json!({ "seats": 4 }))
        .send()
        .await
        .is(201);
    let ask = room.update("i").parameters(json!({ "colour": 7 }));
    let reply = ask.send().await.is(400);
    assert!(reply.description().contains("colour"), "{}", reply.text);
    let ask = room.update("i").parameters(json!({ "colour": "red" }));
    ask.send().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn state_is_handed_on_from_hook_to_hook() {
    let house = RestartableBroker::new();
    let garage = Garage::default();
    let room = house.open(garage.clone()).await;
    let asked = json!({ "seats": 4, "colour": "red" });
    room.provision("i").parameters(asked).send().await.is(201);
    room.bind("i", "a").send().await.is(201);
    let blue = room.update("i").parameters(json!({ "colour": "blue" }));
    blue.send().await.is(200);
    let rotated = room.bind("i", "b").with("predecessor_binding_id", "a");
    rotated.send().await.is(201);
    room.unbind("i", "a").send().await.is(200);
    // Another broker on the same store knows as much.
    room.running.shut_down().await;
    let room = house.open(garage.clone()).await;
    room.unbind("i", "b").send().await.is(200);
    room.deprovision("i").send().await.is(200);
    let expected = [
        "bind a [\"red\"]",
        "rotate a \"key of a\"",
        "bind b [\"red\", \"blue\"]",
        "unbind Some(\"key of a\") 4",
        "unbind Some(\"key of b\") 4",
        "deprovision Some([\"red\", \"blue\"])",
    ];
    assert_eq!(garage.take_calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_deprovision_after_a_create_without_a_state_is_given_none() {
    let house = RestartableBroker::new();
    let mut garage = Garage {
        fails: true,
        ..Garage::default()
    };
    let room = house.open(garage.clone()).await;
    room.provision("i")
        .parameters(json!({ "seats": 1 }))
        .send()
        .await
        .is(500);
    room.running.shut_down().await;
    garage.fails = false;
    let room = house.open(garage.clone()).await;
    room.deprovision("i").send().await.is(200);
    assert_eq!(garage.take_calls(), ["deprovision None"]);
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_is_in_the_first_answer_though_the_work_has_not_begun() {
    let house = RestartableBroker::new();
    let room = house.open(Garage::default()).await;
    let asked = json!({ "seats": 4, "colour": "red" });
    let ask = room.provision("i").parameters(asked).accepts_incomplete();
    let accepted = ask.send().await.is(202);
    assert_eq!(accepted.json["dashboard_url"], "https://garage/i/red");
    let poll = room.poll("i").operation(&accepted.operation());
    room.poll_until_done(poll).await;
    let ask = room.update("i").parameters(json!({ "colour": "blue" }));
    let updated = ask.accepts_incomplete().send().await.is(202);
    assert_eq!(updated.json["dashboard_url"], "https://garage/i/blue");
    let poll = room.poll("i").operation(&updated.operation());
    room.poll_until_done(poll).await;
    let shown = room.fetch("i").send().await.is(200);
    assert_eq!(shown.json["dashboard_url"], "https://garage/i/blue");
}

#[tokio::test(start_paused = true)]
async fn a_caller_reads_one_message_and_the_operators_log_has_the_other() {
    let (log, _listening) = Log::listen();
    let house = RestartableBroker::new();
    let mut garage = Garage::default();
    let room = house.open(garage.clone()).await;
    for id in ["i", "k"] {
        let ask = room.provision(id).parameters(json!({ "seats": 4 }));
        ask.send().await.is(201);
    }
    room.bind("i", "b").send().await.is(201);
    room.running.shut_down().await;
    garage.fails = true;
    let room = house.open(garage).await;
    let seats = json!({ "seats": 5 });
    let asks = [
        room.provision("j").parameters(seats.clone()),
        room.update("i").parameters(seats).only_plan(LARGE),
        room.bind("i", "c").plan(SMALL),
        room.unbind("i", "b"),
        room.deprovision("k"),
    ];
    for ask in asks {
        let reply = ask.send().await.is(500);
        assert!(!reply.text.contains("mechanic"), "{}", reply.text);
        assert_eq!(reply.description(), "The garage is closed.");
    }
    let text = log.text();
    assert_eq!(
        text.matches("the mechanic of bay 7 is ill").count(),
        5,
        "{text}"
    );
}

/// The same service with another state, as after a careless release.
struct Rebuilt;

impl Service for Rebuilt {
    type Params = Params;
    type State = Vec<bool>;

    async fn provision(&self, _: &Cx, _: Params) -> Result<Provisioned<Vec<bool>>> {
        // Errors of libraries come in by `?` and have no words for the caller.
        let number: u32 = "no number".parse()?;
        Ok(Provisioned::new(vec![number > 0]))
    }

    async fn deprovision(&self, _: &Cx, _: Option<Vec<bool>>) -> Result<()> {
        Ok(())
    }

    async fn bind(&self, _: &Cx, _: &Vec<bool>) -> Result<Bound> {
        Ok(Bound::credentials(json!({})))
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_no_longer_fits_its_type_is_a_clear_failure() {
    let (log, _listening) = Log::listen();
    let house = RestartableBroker::new();
    let room = house.open(Garage::default()).await;
    let asked = json!({ "seats": 4, "colour": "s3cret red" });
    room.provision("i").parameters(asked).send().await.is(201);
    room.running.shut_down().await;
    let room = house.open(Rebuilt).await;
    for ask in [room.deprovision("i"), room.fetch("i"), room.bind("i", "b")] {
        let reply = ask.send().await.is(500);
        let sentence = "The stored state of the service instance cannot be read.";
        assert_eq!(reply.description(), sentence);
    }
    let text = log.text();
    assert!(
        text.contains("does not fit the service's State type"),
        "{text}"
    );
    assert!(
        !text.contains("s3cret red"),
        "what is stored is nobody's to read"
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_library_has_no_words_for_the_caller() {
    let (log, _listening) = Log::listen();
    let house = RestartableBroker::new();
    let room = house.open(Rebuilt).await;
    let ask = room.provision("i").parameters(json!({ "seats": 4 }));
    let reply = ask.send().await.is(500);
    assert!(!reply.text.contains("digit"), "{}", reply.text);
    assert!(
        reply.description().ends_with("can see why."),
        "{}",
        reply.text
    );
    assert!(log.text().contains("invalid digit found in string"));
}

/// A service with nothing to remember.
struct Forgetful(HookCalls);

impl Service for Forgetful {
    type Params = serde_json::Map<String, Value>;
    type State = ();

    async fn provision(&self, _: &Cx, _: Self::Params) -> Result<Provisioned<()>> {
        Ok(Provisioned::new(()))
    }

    async fn deprovision(&self, _: &Cx, state: Option<()>) -> Result<()> {
        self.0
            .lock()
            .unwrap()
            .push(format!("deprovision {state:?}"));
        Ok(())
    }

    async fn bind(&self, _: &Cx, (): &()) -> Result<Bound> {
        Ok(Bound::credentials(json!({})))
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_of_nothing_is_a_state() {
    let house = RestartableBroker::new();
    let calls = HookCalls::default();
    let room = house.open(Forgetful(calls.clone())).await;
    room.provision("i").send().await.is(201);
    room.bind("i", "b").send().await.is(201);
    room.unbind("i", "b").send().await.is(200);
    room.deprovision("i").send().await.is(200);
    assert_eq!(*calls.lock().unwrap(), ["deprovision Some(())"]);
}
