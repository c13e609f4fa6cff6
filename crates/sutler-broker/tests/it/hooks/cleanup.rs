//! Scheduled clean-up: what goes when, what never goes, and that it happens once.

use super::{HookFixture, RestartableBroker};
use crate::fixture::test_catalog::SMALL;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{
    Broker, CatalogFile, CleanupSettings, Cx, Error, Policy, Provisioned, Result, Schedule,
    Service, Update, Updated,
};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Outcome, State, Store, Sweep};
use sutler_osb::{OperationKind, PinnedPlan};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Fails given updates, and takes a given time.
struct PlainService;

impl Service for PlainService {
    type Params = serde_json::Map<String, Value>;
    type State = ();
    const UPDATES: bool = true;

    async fn provision(&self, _: &Cx, params: Self::Params) -> Result<Provisioned<()>> {
        let minutes = params.get("minutes").and_then(Value::as_u64).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
        if params.contains_key("refuse") {
            return Err(Error::invalid("As told."));
        }
        Ok(Provisioned::new(()))
    }

    async fn update(&self, _: &Cx, (): (), update: Update<Self::Params>) -> Result<Updated<()>> {
        if update.sent.0.contains_key("fail") {
            return Err(Error::failed("As told."));
        }
        Ok(Provisioned::new(()))
    }

    async fn deprovision(&self, _: &Cx, _: Option<()>) -> Result<()> {
        Ok(())
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy::default().within(30 * DAY)
    }
}

fn every(schedule: &str) -> Option<Schedule> {
    Some(Schedule::parse(schedule).unwrap())
}

const HOURLY: &str = "0 0 * * * *";

/// Instances are cleaned up like this.
fn cleaning(cleanup: CleanupSettings) -> impl FnOnce(Broker) -> Broker {
    |broker| broker.settings(|settings| settings.instances.cleanup = cleanup)
}

/// The verbs and outcomes of what is kept, oldest first.
async fn kept(house: &RestartableBroker) -> Vec<String> {
    let rows = house.operations().await;
    let said = rows.iter().rev().map(|row| {
        let outcome = match row.state {
            State::Done(Outcome::Succeeded) => "succeeded",
            State::Done(_) => "failed",
            State::Waiting | State::Ready | State::Running => "unfinished",
        };
        format!("{} {outcome}", row.verb)
    });
    said.collect()
}

/// A provision, a failed update and a successful one: only the last is pinned.
async fn three_operations(room: &HookFixture) {
    room.provision("i").send().await.is(201);
    let fail = room.update("i").parameters(json!({ "fail": true }));
    fail.send().await.is(500);
    let update = room.update("i").parameters(json!({ "size": 1 }));
    update.send().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn all_succeeded_or_failed_operations_go_and_what_a_document_points_to_stays() {
    let schedule = || every(HOURLY);
    let base = || CleanupSettings {
        age: HOUR,
        ..CleanupSettings::default()
    };
    let cases = [
        (
            CleanupSettings {
                all: schedule(),
                ..base()
            },
            vec!["update succeeded"],
        ),
        (
            CleanupSettings {
                succeeded: schedule(),
                ..base()
            },
            vec!["update failed", "update succeeded"],
        ),
        (
            CleanupSettings {
                failed: schedule(),
                ..base()
            },
            vec!["provision succeeded", "update succeeded"],
        ),
        (
            base(),
            vec!["provision succeeded", "update failed", "update succeeded"],
        ),
    ];
    for (cleanup, expected) in cases {
        let house = RestartableBroker::new();
        let room = house
            .open_with(PlainService, cleaning(cleanup.clone()))
            .await;
        three_operations(&room).await;
        for _ in 0..100 {
            house.pass(3 * HOUR).await;
        }
        assert_eq!(kept(&house).await, expected, "{cleanup:?}");
        let stats = house.memory.stats().await.unwrap();
        assert_eq!(stats.accepted, stats.live + stats.terminal + stats.cleaned);
        room.fetch("i").send().await.is(200);
        let polled = room.poll("i").send().await.is(200);
        assert_eq!(polled.json["state"], "succeeded");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_ages_from_its_end_and_one_that_runs_never_goes() {
    let house = RestartableBroker::new();
    let cleanup = CleanupSettings {
        age: 5 * HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let room = house.open_with(PlainService, cleaning(cleanup)).await;
    let slow = json!({ "minutes": 30 });
    let ask = room.provision("i").parameters(slow).accepts_incomplete();
    let operation = ask.send().await.operation();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Accepted ten hours ago, by the store's clock: it is taken over, and still runs.
    house.pass(10 * HOUR).await;
    assert_eq!(kept(&house).await, ["provision unfinished"]);
    tokio::time::sleep(HOUR).await;
    room.poll_until_done(room.poll("i").operation(&operation))
        .await;
    room.update("i")
        .parameters(json!({ "a": 1 }))
        .send()
        .await
        .is(200);
    house.pass(2 * HOUR).await;
    assert_eq!(
        kept(&house).await.len(),
        2,
        "it ended less than five hours ago"
    );
    house.pass(5 * HOUR).await;
    house.pass(HOUR).await;
    assert_eq!(kept(&house).await, ["update succeeded"]);
}

/// Number of sweeps of operations of instances.
fn count_sweeps(house: &RestartableBroker) -> Arc<Mutex<usize>> {
    let sweeps = Arc::new(Mutex::new(0));
    let counted = sweeps.clone();
    house.tap(move |call| {
        if let Call::Sweep(Sweep::Operations { lanes, .. }) = call
            && lanes.windows(8).any(|window| window == b"instance")
        {
            *counted.lock().unwrap() += 1;
        }
        Intercept::Pass
    });
    sweeps
}

#[tokio::test(start_paused = true)]
async fn it_happens_once_however_many_brokers_there_are() {
    let house = RestartableBroker::new();
    let cleanup = || CleanupSettings {
        all: every("0 0 0 * * *"),
        ..CleanupSettings::default()
    };
    let _one = house.open_with(PlainService, cleaning(cleanup())).await;
    let _two = house.open_with(PlainService, cleaning(cleanup())).await;
    let sweeps = count_sweeps(&house);
    for day in 1..=10 {
        house.pass(DAY).await;
        assert_eq!(*sweeps.lock().unwrap(), day, "once a day");
    }
}

#[tokio::test(start_paused = true)]
async fn another_schedule_holds_from_the_next_start_on() {
    let house = RestartableBroker::new();
    let with = |schedule: Option<Schedule>| CleanupSettings {
        age: HOUR,
        all: schedule,
        ..CleanupSettings::default()
    };
    let yearly = cleaning(with(every("0 0 0 1 1 *")));
    let room = house.open_with(PlainService, yearly).await;
    three_operations(&room).await;
    room.running.shut_down().await;
    let room = house
        .open_with(PlainService, cleaning(with(every(HOURLY))))
        .await;
    house.pass(3 * HOUR).await;
    house.pass(3 * HOUR).await;
    assert_eq!(kept(&house).await, ["update succeeded"]);
    room.running.shut_down().await;
    let room = house.open_with(PlainService, cleaning(with(None))).await;
    let sweeps = count_sweeps(&house);
    let update = room.update("i").parameters(json!({ "size": 2 }));
    update.send().await.is(200);
    for _ in 0..5 {
        house.pass(DAY).await;
    }
    assert_eq!(kept(&house).await.len(), 2, "nothing is scheduled any more");
    assert_eq!(*sweeps.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_poll_after_a_delete_says_200_then_410_then_404() {
    let house = RestartableBroker::new();
    let cleanup = || CleanupSettings {
        age: HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let room = house.open_with(PlainService, cleaning(cleanup())).await;
    room.provision("i").send().await.is(201);
    let ask = room.deprovision("i").accepts_incomplete();
    let operation = ask.send().await.operation();
    let poll = |room: &HookFixture| room.poll("i").operation(&operation).send();
    room.poll_until_done(room.poll("i").operation(&operation))
        .await;
    let reply = poll(&room).await.is(200);
    assert_eq!(reply.json["state"], "succeeded");
    house.pass(3 * HOUR).await;
    house.pass(3 * HOUR).await;
    assert!(kept(&house).await.is_empty());
    poll(&room).await.is(410);
    room.poll("i").send().await.is(410);
    room.deprovision("i").send().await.is(410);
    room.running.shut_down().await;
    let room = house
        .open_with(PlainService, |broker| {
            let broker = broker.settings(|settings| settings.tombstones = Duration::ZERO);
            cleaning(cleanup())(broker)
        })
        .await;
    house.pass(2 * HOUR).await;
    poll(&room).await.is(404);
    room.provision("i").send().await.is(201);
}

/// A 410 would mean that the resource existed and is deleted.
#[tokio::test(start_paused = true)]
async fn a_creation_that_was_refused_is_never_said_to_be_deleted() {
    let house = RestartableBroker::new();
    let cleanup = CleanupSettings {
        age: HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let room = house.open_with(PlainService, cleaning(cleanup)).await;
    let ask = room.provision("i").parameters(json!({ "refuse": true }));
    let operation = ask.accepts_incomplete().send().await.operation();
    let poll = || room.poll("i").operation(&operation);
    let reply = room.poll_until_done(poll()).await;
    assert_eq!(reply.json["state"], "failed");
    house.pass(3 * HOUR).await;
    house.pass(3 * HOUR).await;
    assert!(kept(&house).await.is_empty());
    poll().send().await.is(404);
    room.poll("i").send().await.is(404);
}

/// The settings of the Spring framework's documentation, as they are, and a catalog of ours.
const APPLICATION_YAML: &str = r#"
spring:
  cloud:
    openservicebroker:
      catalog:
        services:
        - id: db-id
          name: db
          description: A database.
          bindable: false
          plans:
          - id: small-id
            name: small
            description: For few.
com:
  equalities:
    osbapi:
      service-bindings:
        operations:
          cleanup-age:      "10d" # the age an operation should have to qualify for scheduled removal / clean up. Format: 1s / 2h / 3d
          cleanup-all:       "0 0 0 */10 * *"  # CRON pattern to schedule removal of all qualifying operations.
          cleanup-succeeded: "0 0 0 */10 * *"  # CRON pattern to schedule removal of succeeded, qualifying operations.
          cleanup-failed:    "0 0 0 */10 * *"  # CRON pattern to schedule removal of failed, qualifying operations.
      service-instances:
        operations:
          cleanup-age:      "10d" # the age an operation should have to qualify for scheduled removal / clean up. Format: 1s / 2h / 3d
          cleanup-all:       "0 0 0 */10 * *"  # CRON pattern to schedule removal of all qualifying operations.
          cleanup-succeeded: "0 0 0 */10 * *"  # CRON pattern to schedule removal of succeeded, qualifying operations.
          cleanup-failed:    "0 0 0 */10 * *"  # CRON pattern to schedule removal of failed, qualifying operations.
"#;

#[tokio::test(start_paused = true)]
async fn the_keys_of_the_spring_framework_drive_it_from_end_to_end() {
    let house = RestartableBroker::new();
    let file = CatalogFile::parse(APPLICATION_YAML, None).unwrap();
    let (store, ring) = (house.memory.clone(), house.ring.clone());
    let broker = Broker::new(file)
        .service("db", PlainService)
        .shared_store(store, sutler_journal::KeyRing::parse(&ring).unwrap())
        .basic_auth("user", "s3cret");
    let room = crate::fixture::Fixture::around(broker.start().await.unwrap());
    room.provision("i").plan(SMALL).send().await.is(201);
    room.deprovision("i").plan(SMALL).send().await.is(200);
    for _ in 0..9 {
        house.pass(DAY).await;
    }
    assert_eq!(kept(&house).await.len(), 2, "nothing is ten days old");
    for _ in 0..22 {
        house.pass(DAY).await;
    }
    assert!(kept(&house).await.is_empty());
    room.poll("i").send().await.is(410);
}
