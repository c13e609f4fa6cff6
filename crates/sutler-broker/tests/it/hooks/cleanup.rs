//! Scheduled cleanup: the operations it removes and keeps, and that it runs once.

use super::{HookFixture, RestartableBroker};
use crate::fixture::test_catalog::SMALL;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{
    Admin, Broker, CatalogFile, CleanupSettings, Cx, Error, FeedRetention, Policy, Provisioned,
    Result, Schedule, Service, Update, Updated,
};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Clock as _, Outcome, State, Store, StoreTime, Sweep, wall_clock};
use sutler_osb::{OperationKind, PinnedPlan};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Fails chosen updates, and takes a chosen time.
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

/// Sets the cleanup of instances.
fn cleaning(cleanup: CleanupSettings) -> impl FnOnce(Broker) -> Broker {
    |broker| broker.settings(|settings| settings.instances.cleanup = cleanup)
}

/// Verbs and outcomes of the kept operations, oldest first.
async fn kept(brokers: &RestartableBroker) -> Vec<String> {
    let rows = brokers.operations().await;
    let listed = rows.iter().rev().map(|row| {
        let outcome = match row.state {
            State::Done(Outcome::Succeeded) => "succeeded",
            State::Done(_) => "failed",
            State::Waiting | State::Ready | State::Running => "unfinished",
        };
        format!("{} {outcome}", row.verb)
    });
    listed.collect()
}

/// A provision, a failed update and a successful one: only the last is pinned.
async fn three_operations(fixture: &HookFixture) {
    fixture.provision("i").send().await.is(201);
    let fail = fixture.update("i").parameters(json!({ "fail": true }));
    fail.send().await.is(500);
    let update = fixture.update("i").parameters(json!({ "size": 1 }));
    update.send().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn finished_operations_are_removed_and_referenced_ones_are_kept() {
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
        let brokers = RestartableBroker::new();
        let fixture = brokers
            .open_with(PlainService, cleaning(cleanup.clone()))
            .await;
        three_operations(&fixture).await;
        for _ in 0..100 {
            brokers.pass(3 * HOUR).await;
        }
        assert_eq!(kept(&brokers).await, expected, "{cleanup:?}");
        let stats = brokers.memory.stats().await.unwrap();
        assert_eq!(stats.accepted, stats.live + stats.terminal + stats.cleaned);
        fixture.fetch("i").send().await.is(200);
        let polled = fixture.poll("i").send().await.is(200);
        assert_eq!(polled.json["state"], "succeeded");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_ages_from_its_end_and_a_running_one_is_never_removed() {
    let brokers = RestartableBroker::new();
    let cleanup = CleanupSettings {
        age: 5 * HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let fixture = brokers.open_with(PlainService, cleaning(cleanup)).await;
    let slow = json!({ "minutes": 30 });
    let request = fixture.provision("i").parameters(slow).accepts_incomplete();
    let operation = request.send().await.operation();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Accepted ten hours ago, by the store's clock: it is taken over, and still runs.
    brokers.pass(10 * HOUR).await;
    assert_eq!(kept(&brokers).await, ["provision unfinished"]);
    tokio::time::sleep(HOUR).await;
    fixture
        .poll_until_done(fixture.poll("i").operation(&operation))
        .await;
    fixture
        .update("i")
        .parameters(json!({ "a": 1 }))
        .send()
        .await
        .is(200);
    brokers.pass(2 * HOUR).await;
    assert_eq!(
        kept(&brokers).await.len(),
        2,
        "it ended less than five hours ago"
    );
    brokers.pass(5 * HOUR).await;
    brokers.pass(HOUR).await;
    assert_eq!(kept(&brokers).await, ["update succeeded"]);
}

/// Number of scheduled sweeps of operations of instances: of those that are younger than any is kept.
fn count_sweeps(brokers: &RestartableBroker) -> Arc<Mutex<usize>> {
    let sweeps = Arc::new(Mutex::new(0));
    let (counted, clock) = (sweeps.clone(), brokers.clock.clone());
    brokers.inject(move |call| {
        if let Call::Sweep(Sweep::Operations {
            lanes,
            finished_before,
            ..
        }) = call
            && lanes.windows(8).any(|window| window == b"instance")
            && *finished_before > clock.now().minus(13 * DAY)
        {
            *counted.lock().unwrap() += 1;
        }
        Intercept::Pass
    });
    sweeps
}

#[tokio::test(start_paused = true)]
async fn cleanup_runs_once_across_brokers() {
    let brokers = RestartableBroker::new();
    let cleanup = || CleanupSettings {
        all: every("0 0 0 * * *"),
        ..CleanupSettings::default()
    };
    let _one = brokers.open_with(PlainService, cleaning(cleanup())).await;
    let _two = brokers.open_with(PlainService, cleaning(cleanup())).await;
    let sweeps = count_sweeps(&brokers);
    for day in 1..=10 {
        brokers.pass(DAY).await;
        assert_eq!(*sweeps.lock().unwrap(), day, "once a day");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_applies_from_the_next_start() {
    let brokers = RestartableBroker::new();
    let with = |schedule: Option<Schedule>| CleanupSettings {
        age: HOUR,
        all: schedule,
        ..CleanupSettings::default()
    };
    let yearly = cleaning(with(every("0 0 0 1 1 *")));
    let fixture = brokers.open_with(PlainService, yearly).await;
    three_operations(&fixture).await;
    fixture.running.shut_down().await;
    let fixture = brokers
        .open_with(PlainService, cleaning(with(every(HOURLY))))
        .await;
    brokers.pass(3 * HOUR).await;
    brokers.pass(3 * HOUR).await;
    assert_eq!(kept(&brokers).await, ["update succeeded"]);
    fixture.running.shut_down().await;
    let fixture = brokers.open_with(PlainService, cleaning(with(None))).await;
    let sweeps = count_sweeps(&brokers);
    let update = fixture.update("i").parameters(json!({ "size": 2 }));
    update.send().await.is(200);
    for _ in 0..5 {
        brokers.pass(DAY).await;
    }
    assert_eq!(
        kept(&brokers).await.len(),
        2,
        "nothing is scheduled any more"
    );
    assert_eq!(*sweeps.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_poll_after_a_delete_is_200_then_410_then_404() {
    let brokers = RestartableBroker::new();
    let cleanup = || CleanupSettings {
        age: HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let fixture = brokers.open_with(PlainService, cleaning(cleanup())).await;
    fixture.provision("i").send().await.is(201);
    let request = fixture.deprovision("i").accepts_incomplete();
    let operation = request.send().await.operation();
    let poll = |fixture: &HookFixture| fixture.poll("i").operation(&operation).send();
    fixture
        .poll_until_done(fixture.poll("i").operation(&operation))
        .await;
    let reply = poll(&fixture).await.is(200);
    assert_eq!(reply.json["state"], "succeeded");
    brokers.pass(3 * HOUR).await;
    brokers.pass(3 * HOUR).await;
    assert!(kept(&brokers).await.is_empty());
    poll(&fixture).await.is(410);
    fixture.poll("i").send().await.is(410);
    fixture.deprovision("i").send().await.is(410);
    fixture.running.shut_down().await;
    let fixture = brokers
        .open_with(PlainService, |broker| {
            let broker = broker.settings(|settings| settings.tombstones = Duration::ZERO);
            cleaning(cleanup())(broker)
        })
        .await;
    brokers.pass(2 * HOUR).await;
    poll(&fixture).await.is(404);
    fixture.provision("i").send().await.is(201);
}

/// Each update is several commits: without a limit the feed has hundreds.
#[tokio::test(start_paused = true)]
async fn the_feed_keeps_no_more_commits_than_its_limit_and_none_that_is_too_old() {
    let brokers = RestartableBroker::new();
    let feed = FeedRetention {
        age: DAY,
        commits_max: 20,
    };
    let limited = |broker: Broker| broker.settings(|settings| settings.feed = feed);
    let fixture = brokers.open_with(PlainService, limited).await;
    fixture.provision("i").send().await.is(201);
    for size in 0..100 {
        let update = fixture.update("i").parameters(json!({ "size": size }));
        update.send().await.is(200);
    }
    let length = async || brokers.memory.feed_length().await.unwrap();
    let before = length().await;
    assert!(before > 200, "{before}");
    // A commit of unknown outcome is resolved by its id: those of the last minutes stay.
    brokers.pass(Duration::from_secs(700)).await;
    assert!(length().await >= before);
    brokers.pass(HOUR).await;
    // The commits of the clean-up itself are young.
    let limited = length().await;
    assert!((20..40).contains(&limited), "{limited}");
    fixture.running.shut_down().await;
    let fixture = brokers.open(PlainService).await;
    brokers.pass(2 * DAY).await;
    let young = length().await;
    assert!(young < 20, "{young}");
    fixture.fetch("i").send().await.is(200);
}

/// The store's clock moves by eight days, that of this machine does not.
#[tokio::test(start_paused = true)]
async fn a_deleted_id_is_remembered_by_the_clock_of_the_store() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(PlainService).await;
    fixture.provision("i").send().await.is(201);
    fixture.deprovision("i").send().await.is(200);
    for _ in 0..6 {
        brokers.pass(DAY).await;
    }
    fixture.poll("i").send().await.is(200);
    fixture.deprovision("i").send().await.is(410);
    for _ in 0..2 {
        brokers.pass(DAY).await;
    }
    fixture.poll("i").send().await.is(404);
}

/// Like it, for the audit trail; also, nothing is removed while the time of the store is unknown.
#[tokio::test(start_paused = true)]
async fn the_audit_trail_is_kept_by_the_clock_of_the_store() {
    let brokers = RestartableBroker::new();
    let set_up = |broker: Broker| {
        let admin = Admin::at("/admin").basic_auth("user", "s3cret");
        let broker = broker.settings(|settings| settings.audit_kept = 3 * DAY);
        broker.admin(admin)
    };
    let fixture = brokers.open_with(PlainService, set_up).await;
    // Entries have the time of this machine.
    let now = brokers.clock.now().since(StoreTime::default());
    brokers.pass(wall_clock().saturating_sub(now)).await;
    let drain = fixture.request("POST", "/admin/v1/drain");
    drain.send().await.is(200);
    fixture
        .request("POST", "/admin/v1/resume")
        .send()
        .await
        .is(200);
    let entries = async || {
        let listed = fixture.request("GET", "/admin/v1/audit").send().await;
        listed.is(200).json["items"].as_array().map(Vec::len)
    };
    for _ in 0..3 {
        brokers.pass(DAY).await;
    }
    assert_eq!(entries().await, Some(2), "the margin of a day");
    brokers.inject(|call| match call {
        Call::Read("now") => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    for _ in 0..2 {
        brokers.pass(DAY).await;
    }
    assert_eq!(entries().await, Some(2), "the time is unknown");
    brokers.stop_faults();
    brokers.pass(HOUR).await;
    assert_eq!(entries().await, Some(0));
}

#[tokio::test(start_paused = true)]
async fn finished_operations_are_kept_for_two_weeks_unless_a_document_refers_to_them() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(PlainService).await;
    three_operations(&fixture).await;
    for _ in 0..13 {
        brokers.pass(DAY).await;
    }
    let all = ["provision succeeded", "update failed", "update succeeded"];
    assert_eq!(kept(&brokers).await, all);
    for _ in 0..2 {
        brokers.pass(DAY).await;
    }
    assert_eq!(kept(&brokers).await, ["update succeeded"]);
    let stats = brokers.memory.stats().await.unwrap();
    assert_eq!(stats.accepted, stats.live + stats.terminal + stats.cleaned);
    fixture.fetch("i").send().await.is(200);
    let polled = fixture.poll("i").send().await.is(200);
    assert_eq!(polled.json["state"], "succeeded");
}

/// A 410 would mean that the resource existed and is deleted.
#[tokio::test(start_paused = true)]
async fn a_refused_create_is_never_reported_as_deleted() {
    let brokers = RestartableBroker::new();
    let cleanup = CleanupSettings {
        age: HOUR,
        all: every(HOURLY),
        ..CleanupSettings::default()
    };
    let fixture = brokers.open_with(PlainService, cleaning(cleanup)).await;
    let request = fixture.provision("i").parameters(json!({ "refuse": true }));
    let operation = request.accepts_incomplete().send().await.operation();
    let poll = || fixture.poll("i").operation(&operation);
    let reply = fixture.poll_until_done(poll()).await;
    assert_eq!(reply.json["state"], "failed");
    brokers.pass(3 * HOUR).await;
    brokers.pass(3 * HOUR).await;
    assert!(kept(&brokers).await.is_empty());
    poll().send().await.is(404);
    fixture.poll("i").send().await.is(404);
}

/// The settings of the Spring framework's documentation, unchanged, and a catalog.
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
async fn the_keys_of_the_spring_framework_configure_cleanup() {
    let brokers = RestartableBroker::new();
    let file = CatalogFile::parse(APPLICATION_YAML, None).unwrap();
    let (store, ring) = (brokers.memory.clone(), brokers.ring.clone());
    let broker = Broker::new(file)
        .service("db", PlainService)
        .shared_store(store, sutler_journal::KeyRing::parse(&ring).unwrap())
        .settings(|settings| settings.tombstones = 60 * DAY)
        .basic_auth("user", "s3cret");
    let fixture = crate::fixture::Fixture::around(broker.start().await.unwrap());
    fixture.provision("i").plan(SMALL).send().await.is(201);
    fixture.deprovision("i").plan(SMALL).send().await.is(200);
    for _ in 0..9 {
        brokers.pass(DAY).await;
    }
    assert_eq!(kept(&brokers).await.len(), 2, "nothing is ten days old");
    for _ in 0..22 {
        brokers.pass(DAY).await;
    }
    assert!(kept(&brokers).await.is_empty());
    fixture.poll("i").send().await.is(410);
}
