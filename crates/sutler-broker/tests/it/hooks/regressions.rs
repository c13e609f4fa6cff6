//! Bugs of an earlier broker, each with its number in `docs/regressions.md`.
//!
//! R8 is in `store_fault_matrix.rs`, R40 in `secrets.rs`.

use super::{AFTER_THE_LEASE, RestartableBroker};
use crate::fixture::test_catalog::{ASYNC, DB, LARGE, SMALL, SYNC};
use crate::fixture::{Fixture, on_each_store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{Bound, Cx, Provisioned, Result, Service, Update, Updated};
use sutler_osb::OperationKind;

/// A second identical bind was answered 200 with the instance's own credentials while the first
/// still ran, because whether it ran was read from a field that one of the stores dropped.
#[tokio::test]
async fn r1_an_identical_bind_while_one_runs_gets_the_same_operation() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        let request = kit.bind("i", "b").accepts_incomplete();
        let first = request.clone().send().await.is(202);
        gate.reached().await;
        let second = request.send().await.is(202);
        assert_eq!(first.json, second.json);
        assert_eq!(second.json.get("credentials"), None);
        gate.open();
        let poll = kit.poll_binding("i", "b").operation(&first.operation());
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
        kit.script.only_call(OperationKind::Bind);
    })
    .await;
}

/// After a failed bind every further PUT was answered with the failed job for ever.
#[tokio::test]
async fn r2_a_bind_after_a_failed_one_is_a_new_attempt() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.script.fails(OperationKind::Bind, "No room.");
        let request = kit.bind("i", "b").accepts_incomplete();
        let failed = request.clone().send().await.operation();
        let poll = kit.poll_binding("i", "b").operation(&failed);
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "failed");
        kit.script.succeeds(OperationKind::Bind);
        let again = request.send().await.operation();
        assert_ne!(failed, again);
        let poll = kit.poll_binding("i", "b").operation(&again);
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
        kit.fetch_binding("i", "b").send().await.is(200);
    })
    .await;
}

/// A PUT over a failed provision was answered "already provisioned".
#[tokio::test]
async fn r3_a_provision_after_a_failed_one_is_not_already_done() {
    on_each_store(async |kit| {
        kit.script.fails(OperationKind::Provision, "No room.");
        kit.provision("i").send().await.is(500);
        kit.fetch("i").send().await.is(404);
        kit.provision("i").send().await.is(500);
        kit.script.succeeds(OperationKind::Provision);
        kit.provision("i").send().await.is(201);
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 3);
    })
    .await;
}

/// A job that had not started yet was shown as failed.
#[tokio::test]
async fn r4_a_poll_right_after_acceptance_is_never_failed() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        for n in 0..300 {
            // More operations than workers: the last ones are accepted and not started.
            let id = format!("i{n}");
            let request = kit.provision(&id).plan(ASYNC).accepts_incomplete();
            let operation = request.send().await.operation();
            let polled = kit.poll(&id).operation(&operation).send().await.is(200);
            assert_eq!(polled.json["state"], "in progress", "{n}");
        }
        gate.open();
        let poll = kit.poll("i299");
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
    })
    .await;
}

/// Synchronous jobs that failed were answered with success.
#[tokio::test]
async fn r5_a_synchronous_failure_is_never_a_success() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", SYNC).await;
        kit.bind("i", "b").plan(SYNC).send().await.is(201);
        for verb in [
            OperationKind::Provision,
            OperationKind::Update,
            OperationKind::Bind,
            OperationKind::Unbind,
            OperationKind::Deprovision,
        ] {
            kit.script.fails(verb, "No.");
        }
        let update = kit.update("i").parameters(json!({ "a": 1 }));
        let requests = [
            kit.provision("j").plan(SYNC),
            update,
            kit.bind("i", "c").plan(SYNC),
            kit.unbind("i", "b").plan(SYNC),
            kit.deprovision("i").plan(SYNC),
        ];
        for request in requests {
            for request in [request.clone(), request.accepts_incomplete()] {
                assert_eq!(request.send().await.is(500).json.get("operation"), None);
            }
        }
    })
    .await;
}

/// Gates of a long operation, opened by the test.
#[derive(Clone, Default)]
struct GatedService {
    /// Number of real runs of each step, by instance or binding.
    done: Arc<Mutex<BTreeMap<String, u32>>>,
    /// Operations of these never end.
    stuck: Arc<Mutex<Vec<&'static str>>>,
}

impl GatedService {
    async fn work(&self, cx: &Cx) -> Result<()> {
        let name = cx
            .binding_id()
            .map_or(cx.instance_id().as_str(), |id| id.as_str());
        let count = || async {
            *self
                .done
                .lock()
                .unwrap()
                .entry(name.to_owned())
                .or_default() += 1;
            Ok(())
        };
        cx.step("effect", count).await?;
        if self.stuck.lock().unwrap().contains(&name) {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn done(&self, name: &str) -> u32 {
        self.done.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

impl Service for GatedService {
    type Params = serde_json::Map<String, Value>;
    type State = ();
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, _: Self::Params) -> Result<Provisioned<()>> {
        self.work(cx).await?;
        Ok(Provisioned::new(()))
    }

    async fn update(&self, cx: &Cx, (): (), _: Update<Self::Params>) -> Result<Updated<()>> {
        self.work(cx).await?;
        Ok(Provisioned::new(()))
    }

    async fn deprovision(&self, _: &Cx, _: Option<()>) -> Result<()> {
        Ok(())
    }

    async fn bind(&self, cx: &Cx, (): &()) -> Result<Bound> {
        self.work(cx).await?;
        Ok(Bound::credentials(json!({})))
    }
}

/// A restart started a second run of a running job. Here a hook may run again from the start, but its
/// memoised steps are not repeated.
#[tokio::test(start_paused = true)]
async fn r6_a_restart_in_the_middle_of_a_provision_does_no_written_step_again() {
    let brokers = RestartableBroker::new();
    let works = GatedService::default();
    works.stuck.lock().unwrap().push("i");
    let fixture = brokers.open(works.clone()).await;
    let request = fixture.provision("i").accepts_incomplete();
    let operation = request.send().await.operation();
    for _ in 0..3 {
        let fixture = brokers.open(works.clone()).await;
        tokio::time::sleep(AFTER_THE_LEASE).await;
        fixture.crash();
    }
    fixture.crash();
    works.stuck.lock().unwrap().clear();
    let fixture = brokers.open(works.clone()).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    let polled = fixture.poll("i").operation(&operation).send().await.is(200);
    assert_eq!(polled.json["state"], "succeeded");
    assert_eq!(works.done("i"), 1);
    assert_eq!(brokers.operations().await.len(), 1);
}

/// Recovery processed the jobs one by one and stopped at the first bind.
#[tokio::test(start_paused = true)]
async fn r7_a_bind_in_progress_holds_up_no_other_recovery() {
    let brokers = RestartableBroker::new();
    let works = GatedService::default();
    let fixture = brokers.open(works.clone()).await;
    for id in ["i", "j"] {
        fixture.provision(id).send().await.is(201);
    }
    works.stuck.lock().unwrap().extend(["b", "j", "k"]);
    let bind = fixture.bind("i", "b").accepts_incomplete();
    bind.send().await.is(202);
    let update = fixture.update("j").parameters(json!({ "a": 1 }));
    update.accepts_incomplete().send().await.is(202);
    fixture
        .provision("k")
        .accepts_incomplete()
        .send()
        .await
        .is(202);
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.crash();
    works.stuck.lock().unwrap().retain(|name| *name == "b");
    let fixture = brokers.open(works.clone()).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    for id in ["j", "k"] {
        let polled = fixture.poll(id).send().await.is(200);
        assert_eq!(polled.json["state"], "succeeded", "{id}");
    }
    let polled = fixture.poll_binding("i", "b").send().await.is(200);
    assert_eq!(polled.json["state"], "in progress");
    for (name, times) in [("b", 1), ("j", 2), ("k", 1)] {
        assert_eq!(works.done(name), times, "{name}: once per operation");
    }
}

/// A job that was accepted and not started when the broker stopped was never started.
#[tokio::test(start_paused = true)]
async fn r10_an_accepted_operation_that_was_not_started_starts_after_a_restart() {
    let brokers = RestartableBroker::new();
    let works = GatedService::default();
    works.stuck.lock().unwrap().push("first");
    let fixture = brokers
        .open_with(works.clone(), |broker| {
            broker.settings(|settings| settings.workers = 1)
        })
        .await;
    for id in ["first", "second"] {
        fixture
            .provision(id)
            .accepts_incomplete()
            .send()
            .await
            .is(202);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((works.done("first"), works.done("second")), (1, 0));
    fixture.crash();
    works.stuck.lock().unwrap().clear();
    let fixture = brokers.open(works.clone()).await;
    tokio::time::sleep(AFTER_THE_LEASE).await;
    for id in ["first", "second"] {
        let polled = fixture.poll(id).send().await.is(200);
        assert_eq!(polled.json["state"], "succeeded", "{id}");
        assert_eq!(works.done(id), 1, "{id}");
    }
}

/// An asynchronous bind was not in the instance's list of bindings, so a delete ignored it.
#[tokio::test]
async fn r14_a_deprovision_takes_a_bind_in_progress_along() {
    on_each_store(async |kit: &Fixture| {
        kit.has_instance("i").await;
        kit.has_binding("i", "done").await;
        let gate = kit.script.hold(OperationKind::Bind);
        let bind = kit.bind("i", "running").accepts_incomplete();
        let bind = bind.send().await.operation();
        gate.reached().await;
        let delete = kit.deprovision("i").accepts_incomplete();
        assert_eq!(kit.finish("i", delete).await.json["state"], "succeeded");
        let unbound = kit.script.calls(OperationKind::Unbind);
        assert_eq!(unbound.len(), 2, "{unbound:?}");
        let polled = kit.poll_binding("i", "running").operation(&bind);
        assert_eq!(polled.send().await.json["state"], "failed");
        for binding in ["done", "running"] {
            kit.fetch_binding("i", binding).send().await.is(404);
        }
        kit.script.only_call(OperationKind::Deprovision);
    })
    .await;
}

/// Updates accepted text parameters only: a number, a flag or an object was a 400.
#[tokio::test]
async fn r34_an_update_takes_numbers_flags_and_objects() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let parameters = json!({
            "number": 7, "flag": true, "object": { "list": [1, null, 2.5] }, "text": "t",
        });
        let request = kit.update("i").parameters(parameters.clone());
        request.send().await.is(200);
        let call = kit.script.only_call(OperationKind::Update);
        assert_eq!(call.parameters, parameters);
        let shown = kit.fetch("i").send().await.is(200);
        assert_eq!(shown.json["parameters"], parameters);
    })
    .await;
}

/// Plan and parameters were stored before the run and not restored when it failed.
#[tokio::test]
async fn r35_a_failed_update_keeps_the_old_plan_and_parameters() {
    on_each_store(async |kit| {
        let request = kit.provision("i").parameters(json!({ "size": 1 }));
        request.send().await.is(201);
        kit.script.fails(OperationKind::Update, "No.");
        let request = || {
            let request = kit.update("i").only_plan(LARGE);
            request.parameters(json!({ "size": 2 }))
        };
        request().send().await.is(500);
        let failed = kit.finish("i", request().accepts_incomplete()).await;
        assert_eq!(failed.json["state"], "failed");
        let shown = kit.fetch("i").send().await.is(200);
        assert_eq!(shown.json["plan_id"], SMALL);
        assert_eq!(shown.json["parameters"], json!({ "size": 1 }));
        kit.has_binding("i", "b").await;
        let call = kit.script.only_call(OperationKind::Bind);
        assert_eq!(call.plan, SMALL);
    })
    .await;
}

/// The fetched instance had its own id as the service's, the plan's name as its id, no dashboard,
/// and parameters that the broker had added for itself.
#[tokio::test]
async fn r39_a_fetched_instance_has_its_real_ids_its_dashboard_and_only_the_users_parameters() {
    on_each_store(async |kit| {
        let identity = "cloudfoundry eyJ1c2VyX2lkIjoidSJ9";
        let request = kit.provision("i").parameters(json!({ "size": 1 }));
        let request = request.header("X-Broker-API-Originating-Identity", identity);
        request.send().await.is(201);
        let shown = kit.fetch("i").send().await.is(200).json;
        let expected = json!({
            "service_id": DB, "plan_id": SMALL,
            "dashboard_url": format!("https://dashboard/i/{SMALL}"),
            "parameters": { "size": 1 },
        });
        assert_eq!(shown, expected);
    })
    .await;
}
