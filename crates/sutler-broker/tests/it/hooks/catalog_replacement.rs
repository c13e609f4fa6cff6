//! Replaces the whole catalog under load: existing instances are not affected.

use super::{RestartableBroker, catalog};
use crate::fixture::test_catalog::{LARGE, SMALL};
use serde_json::{Value, json};
use std::time::Duration;
use sutler_broker::{Bound, Cx, Provisioned, Result, Service};
use sutler_journal::conformance::Intercept;

struct PlainService;

impl Service for PlainService {
    type Params = serde_json::Map<String, Value>;
    type State = String;

    async fn provision(&self, cx: &Cx, _: Self::Params) -> Result<Provisioned<String>> {
        tokio::time::sleep(Duration::from_millis(3)).await;
        Ok(Provisioned::new(cx.plan().plan_id.as_str().to_owned()))
    }

    async fn deprovision(&self, _: &Cx, _: Option<String>) -> Result<()> {
        Ok(())
    }

    async fn bind(&self, cx: &Cx, state: &String) -> Result<Bound> {
        assert_eq!(
            state,
            cx.plan().plan_id.as_str(),
            "the copy it was made with"
        );
        Ok(Bound::credentials(json!({ "plan": state })))
    }
}

fn without_large(n: usize) -> Value {
    let mut catalog = catalog();
    let plans = catalog["services"][0]["plans"].as_array_mut().unwrap();
    plans.retain(|plan| plan["id"] != LARGE);
    plans[0]["description"] = json!(format!("Edition {n}."));
    catalog
}

fn read(json: Value) -> sutler_osb::Catalog {
    serde_json::from_value(json).expect("it keeps the rules")
}

/// Creates and deletes an instance. Returns whether its plan was offered at the request.
async fn run_lifecycle(fixture: &super::HookFixture, id: &str, plan: &str) -> bool {
    let reply = fixture.provision(id).plan(plan).send().await;
    if plan == LARGE && reply.status == 400 {
        assert!(reply.description().contains("catalog"), "{}", reply.text);
        return false;
    }
    reply.is(201);
    let bound = fixture.bind(id, "b").plan(plan).send().await.is(201);
    assert_eq!(bound.json["credentials"]["plan"], plan);
    let shown = fixture.fetch(id).send().await.is(200);
    assert_eq!(shown.json["plan_id"], plan);
    fixture.unbind(id, "b").plan(plan).send().await.is(200);
    fixture.deprovision(id).plan(plan).send().await.is(200);
    true
}

#[tokio::test(start_paused = true)]
async fn replacing_the_catalog_under_load_affects_no_request() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(PlainService).await;
    // Every call of the store yields, so that all requests interleave.
    brokers.inject(|_| Intercept::PassSlowly);
    let lives = async {
        let mut offered = 0;
        for round in 0..25 {
            let ids: Vec<String> = (0..8).map(|n| format!("{round}-{n}")).collect();
            let plans = [SMALL, LARGE].into_iter().cycle();
            let all = ids
                .iter()
                .zip(plans)
                .map(|(id, plan)| run_lifecycle(&fixture, id, plan));
            offered += join_all(all).await.into_iter().filter(|it| *it).count();
        }
        offered
    };
    let replacing = async {
        for n in 0.. {
            let next = if n % 2 == 0 {
                without_large(n)
            } else {
                catalog()
            };
            fixture.running.replace_catalog(read(next)).await.unwrap();
            let catalog_reply = fixture.catalog().send().await.is(200);
            let plans = catalog_reply.json["services"][0]["plans"]
                .as_array()
                .unwrap()
                .len();
            assert_eq!(plans, 1 + n % 2, "the new one is shown at once");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        offered = lives => {
            assert!(offered > 100 && offered < 200, "{offered} of 200 were offered");
        }
        () = replacing => {}
    }
}

/// Polls all of them in turn.
async fn join_all<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(move |cx| {
        for (run_lifecycle, result) in &mut all {
            if result.is_none()
                && let std::task::Poll::Ready(value) = run_lifecycle.as_mut().poll(cx)
            {
                *result = Some(value);
            }
        }
        if all.iter().any(|(_, result)| result.is_none()) {
            return std::task::Poll::Pending;
        }
        let results = all.iter_mut().filter_map(|(_, result)| result.take());
        std::task::Poll::Ready(results.collect())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_cannot_be_served_is_refused_and_the_old_one_stays() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(PlainService).await;
    let mut strange = catalog();
    strange["services"][0]["name"] = json!("strange");
    strange["services"][0]["id"] = json!("strange-id");
    let refused = fixture.running.replace_catalog(read(strange)).await;
    let sentence = refused.expect_err("nobody serves it").to_string();
    assert!(sentence.contains("\"strange\""), "{sentence}");
    assert!(run_lifecycle(&fixture, "i", LARGE).await);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_plan_serves_its_instances_over_a_restart() {
    let brokers = RestartableBroker::new();
    let fixture = brokers.open(PlainService).await;
    fixture.provision("i").plan(LARGE).send().await.is(201);
    fixture
        .running
        .replace_catalog(read(without_large(0)))
        .await
        .unwrap();
    fixture.running.shut_down().await;
    // The catalog of the new process never had the plan: only the stored copy exists.
    let fixture = brokers.open(PlainService).await;
    fixture
        .running
        .replace_catalog(read(without_large(1)))
        .await
        .unwrap();
    fixture.provision("j").plan(LARGE).send().await.is(400);
    fixture.bind("i", "b").plan(LARGE).send().await.is(201);
    fixture.unbind("i", "b").plan(LARGE).send().await.is(200);
    fixture.deprovision("i").plan(LARGE).send().await.is(200);
}
