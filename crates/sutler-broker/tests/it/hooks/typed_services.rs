//! Typed services: schemas from types, state passed from hook to hook, two messages per error.

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

    /// An error with one message for the caller and another for the operator.
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
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Garage::default()).await;
    let catalog = fixture.catalog().send().await.is(200).json;
    for plan in catalog["services"][0]["plans"].as_array().unwrap() {
        let schemas = &plan["schemas"]["service_instance"];
        let create = &schemas["create"]["parameters"];
        assert_eq!(create["properties"]["seats"]["type"], "integer");
        assert_eq!(create["required"], json!(["seats"]));
        let description = create["properties"]["seats"]["description"].as_str();
        assert_eq!(description, Some("How many seats it has."));
        let update = &schemas["update"]["parameters"];
        assert_eq!(update["properties"]["seats"]["type"], "integer");
        assert_eq!(update.get("required"), None, "an update names what changes");
    }
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_the_parameters_is_enforced_with_a_message_that_names_the_parameter() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Garage::default()).await;
    let wrong = [
        json!({}),
        json!({ "seats": "hunter2" }),
        json!({ "seats": -4 }),
        json!({ "seats": 4.5 }),
    ];
    for parameters in wrong {
        let request = fixture.provision("i").parameters(parameters.clone());
        let reply = request.send().await.is(400);
        assert!(reply.description().contains("seats"), "{}", reply.text);
        assert!(!reply.text.contains("hunter2"), "a value may be a secret");
    }
    assert!(brokers.operations().await.is_empty(), "nothing was written");
    fixture
        .provision("i")
        .parameters(json!({ "seats": 4 }))
        .send()
        .await
        .is(201);
    let request = fixture.update("i").parameters(json!({ "colour": 7 }));
    let reply = request.send().await.is(400);
    assert!(reply.description().contains("colour"), "{}", reply.text);
    let request = fixture.update("i").parameters(json!({ "colour": "red" }));
    request.send().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn state_is_passed_from_hook_to_hook() {
    let brokers = RestartableBroker::new();
    let garage = Garage::default();
    let fixture = brokers.open(garage.clone()).await;
    let parameters = json!({ "seats": 4, "colour": "red" });
    fixture
        .provision("i")
        .parameters(parameters)
        .send()
        .await
        .is(201);
    fixture.bind("i", "a").send().await.is(201);
    let blue = fixture.update("i").parameters(json!({ "colour": "blue" }));
    blue.send().await.is(200);
    let rotated = fixture.bind("i", "b").with("predecessor_binding_id", "a");
    rotated.send().await.is(201);
    fixture.unbind("i", "a").send().await.is(200);
    // Another broker on the same store has the same state.
    fixture.running.shut_down().await;
    let fixture = brokers.open(garage.clone()).await;
    fixture.unbind("i", "b").send().await.is(200);
    fixture.deprovision("i").send().await.is(200);
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
async fn a_deprovision_after_a_create_without_a_state_gets_no_state() {
    let brokers = RestartableBroker::new();
    let mut garage = Garage {
        fails: true,
        ..Garage::default()
    };
    let fixture = brokers.open(garage.clone()).await;
    fixture
        .provision("i")
        .parameters(json!({ "seats": 1 }))
        .send()
        .await
        .is(500);
    fixture.running.shut_down().await;
    garage.fails = false;
    let fixture = brokers.open(garage.clone()).await;
    fixture.deprovision("i").send().await.is(200);
    assert_eq!(garage.take_calls(), ["deprovision None"]);
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_is_in_the_first_answer_before_the_hook_runs() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Garage::default()).await;
    let parameters = json!({ "seats": 4, "colour": "red" });
    let request = fixture
        .provision("i")
        .parameters(parameters)
        .accepts_incomplete();
    let accepted = request.send().await.is(202);
    assert_eq!(accepted.json["dashboard_url"], "https://garage/i/red");
    let poll = fixture.poll("i").operation(&accepted.operation());
    fixture.poll_until_done(poll).await;
    let request = fixture.update("i").parameters(json!({ "colour": "blue" }));
    let updated = request.accepts_incomplete().send().await.is(202);
    assert_eq!(updated.json["dashboard_url"], "https://garage/i/blue");
    let poll = fixture.poll("i").operation(&updated.operation());
    fixture.poll_until_done(poll).await;
    let shown = fixture.fetch("i").send().await.is(200);
    assert_eq!(shown.json["dashboard_url"], "https://garage/i/blue");
}

#[tokio::test(start_paused = true)]
async fn a_caller_reads_one_message_and_the_operators_log_has_the_other() {
    let (log, _guard) = Log::capture();
    let brokers = RestartableBroker::new();
    let mut garage = Garage::default();
    let fixture = brokers.open(garage.clone()).await;
    for id in ["i", "k"] {
        let request = fixture.provision(id).parameters(json!({ "seats": 4 }));
        request.send().await.is(201);
    }
    fixture.bind("i", "b").send().await.is(201);
    fixture.running.shut_down().await;
    garage.fails = true;
    let fixture = brokers.open(garage).await;
    let seats = json!({ "seats": 5 });
    let requests = [
        fixture.provision("j").parameters(seats.clone()),
        fixture.update("i").parameters(seats).only_plan(LARGE),
        fixture.bind("i", "c").plan(SMALL),
        fixture.unbind("i", "b"),
        fixture.deprovision("k"),
    ];
    for request in requests {
        let reply = request.send().await.is(500);
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

/// The same service with an incompatible state type.
struct ChangedStateService;

impl Service for ChangedStateService {
    type Params = Params;
    type State = Vec<bool>;

    async fn provision(&self, _: &Cx, _: Params) -> Result<Provisioned<Vec<bool>>> {
        // Errors of libraries are converted by `?` and have no message for the caller.
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
async fn a_state_that_does_not_match_its_type_is_a_clear_failure() {
    let (log, _guard) = Log::capture();
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(Garage::default()).await;
    let parameters = json!({ "seats": 4, "colour": "s3cret red" });
    fixture
        .provision("i")
        .parameters(parameters)
        .send()
        .await
        .is(201);
    fixture.running.shut_down().await;
    let fixture = brokers.open(ChangedStateService).await;
    for request in [
        fixture.deprovision("i"),
        fixture.fetch("i"),
        fixture.bind("i", "b"),
    ] {
        let reply = request.send().await.is(500);
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
async fn an_error_of_a_library_has_no_message_for_the_caller() {
    let (log, _guard) = Log::capture();
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(ChangedStateService).await;
    let request = fixture.provision("i").parameters(json!({ "seats": 4 }));
    let reply = request.send().await.is(500);
    assert!(!reply.text.contains("digit"), "{}", reply.text);
    assert!(
        reply.description().ends_with("can see why."),
        "{}",
        reply.text
    );
    assert!(log.text().contains("invalid digit found in string"));
}

/// A service without a state.
struct StatelessService(HookCalls);

impl Service for StatelessService {
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
async fn the_unit_state_is_a_state() {
    let brokers = RestartableBroker::new();
    let calls = HookCalls::default();
    let fixture = brokers.open(StatelessService(calls.clone())).await;
    fixture.provision("i").send().await.is(201);
    fixture.bind("i", "b").send().await.is(201);
    fixture.unbind("i", "b").send().await.is(200);
    fixture.deprovision("i").send().await.is(200);
    assert_eq!(*calls.lock().unwrap(), ["deprovision Some(())"]);
}
