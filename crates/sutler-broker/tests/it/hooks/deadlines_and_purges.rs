//! Deadlines, interrupted purges and requesters that go away, each by itself.
//! Their combinations are simulated by `tools/simulate`.

use super::{HookFixture, RestartableBroker};
use crate::fixture::request::{Reply, RequestBuilder};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_broker::prelude::JsonSchema;
use sutler_broker::{Admin, Bound, Cx, Policy, Provisioned, Result, Service};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Next, Write};
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::time::Instant;

/// Deadline of every hook.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(serde::Deserialize, JsonSchema)]
struct NoParams {}

/// A service whose verbs take some time.
#[derive(Clone, Default)]
struct SlowService {
    provision: Duration,
    deprovision: Duration,
    unbind: Duration,
    /// Reports progress before it waits.
    reports: bool,
    provisions: Arc<AtomicUsize>,
}

impl Service for SlowService {
    type Params = NoParams;
    type State = ();

    async fn provision(&self, cx: &Cx, _: NoParams) -> Result<Provisioned<()>> {
        self.provisions.fetch_add(1, Ordering::Relaxed);
        if self.reports {
            tokio::time::sleep(Duration::from_millis(1)).await;
            cx.progress("begun").await?;
            cx.progress("later").await?;
        }
        tokio::time::sleep(self.provision).await;
        Ok(Provisioned::new(()))
    }

    async fn deprovision(&self, _: &Cx, _: Option<()>) -> Result<()> {
        tokio::time::sleep(self.deprovision).await;
        Ok(())
    }

    async fn bind(&self, _: &Cx, (): &()) -> Result<Bound> {
        Ok(Bound::credentials(json!({ "user": "u" })))
    }

    async fn unbind(&self, _: &Cx, (): &()) -> Result<()> {
        tokio::time::sleep(self.unbind).await;
        Ok(())
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy::default().within(DEADLINE)
    }
}

/// Sends a request, and polls its operation to the end at the pace of a platform.
async fn finish_slowly(fixture: &HookFixture, request: RequestBuilder) -> Reply {
    let accepted = request.send().await;
    let poll = fixture.poll("i").operation(&accepted.operation());
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let reply = poll.clone().send().await;
        if reply.json["state"] != "in progress" {
            return reply;
        }
    }
}

/// Whether a call is a commit that only writes progress.
fn writes_progress(call: &Call<'_>) -> bool {
    let is_progress = |write: &Write| {
        matches!(
            write,
            Write::Advance {
                next: Next::Same,
                ..
            }
        )
    };
    matches!(call, Call::Commit(commit) if commit.writes().iter().all(is_progress))
}

#[tokio::test(start_paused = true)]
async fn a_deadline_holds_while_progress_cannot_be_written() {
    let brokers = RestartableBroker::new();
    let fixture = brokers
        .open(SlowService {
            provision: 100 * DEADLINE,
            reports: true,
            ..SlowService::default()
        })
        .await;
    let mut written = 0;
    brokers.inject(move |call| {
        if !writes_progress(call) {
            return Intercept::Pass;
        }
        // The first write of progress passes; later ones hang.
        written += 1;
        match written {
            1 => Intercept::Pass,
            _ => Intercept::Hold(Arc::default()),
        }
    });
    let began = Instant::now();
    let provision = fixture.provision("i").accepts_incomplete();
    let ended = finish_slowly(&fixture, provision).await;
    assert_eq!(ended.json["state"], "failed");
    let took = began.elapsed();
    assert!(took < DEADLINE + Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_a_delete_waits_for_unbinds_is_not_its_hooks() {
    let brokers = RestartableBroker::new();
    let (deprovision, unbind) = (DEADLINE / 2, DEADLINE * 9 / 10);
    let fixture = brokers
        .open(SlowService {
            deprovision,
            unbind,
            ..SlowService::default()
        })
        .await;
    fixture.has_instance("i").await;
    fixture.has_binding("i", "b").await;
    let delete = fixture.deprovision("i").accepts_incomplete();
    let ended = finish_slowly(&fixture, delete).await;
    assert_eq!(ended.json["state"], "succeeded", "{}", ended.text);
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_client_went_away_before_the_answer_runs_at_once() {
    let brokers = RestartableBroker::new();
    let service = SlowService::default();
    let fixture = brokers.open(service.clone()).await;
    brokers.inject(|call| match call {
        Call::Commit(_) => Intercept::PassSlowly,
        _ => Intercept::Pass,
    });
    let request = fixture.provision("i").accepts_incomplete().start();
    // The commit is written, and its answer is on the way.
    while brokers.operations().await.is_empty() {
        tokio::task::yield_now().await;
    }
    request.abort();
    brokers.stop_faults();
    let began = Instant::now();
    while service.provisions.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(began.elapsed() < Duration::from_secs(2), "it idles");
    }
}

fn purge(fixture: &HookFixture) -> RequestBuilder {
    fixture
        .request("POST", "/admin/v1/instances/i/purge")
        .header("Content-Type", "application/json")
        .fields(json!({ "reason": "a test" }))
}

/// An instance with three bindings, whose purge ended after it had purged one of them.
async fn with_interrupted_purge(brokers: &RestartableBroker) -> HookFixture {
    let with_admin = |broker: sutler_broker::Broker| {
        broker.admin(Admin::at("/admin").basic_auth("user", "s3cret"))
    };
    let fixture = brokers.open_with(SlowService::default(), with_admin).await;
    fixture.has_instance("i").await;
    for binding in ["a", "b", "c"] {
        fixture.has_binding("i", binding).await;
    }
    let mut commits = 0;
    brokers.inject(move |call| match call {
        Call::Commit(_) => {
            commits += 1;
            match commits {
                1 | 2 => Intercept::Pass,
                _ => Intercept::CrashBefore,
            }
        }
        _ => Intercept::Pass,
    });
    let purging = purge(&fixture).start();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    purging.abort();
    brokers.stop_faults();
    fixture
}

#[tokio::test(start_paused = true)]
async fn bindings_that_an_interrupted_purge_left_can_be_unbound() {
    let brokers = RestartableBroker::new();
    let fixture = with_interrupted_purge(&brokers).await;
    for binding in ["a", "b", "c"] {
        let unbind = fixture.unbind("i", binding).accepts_incomplete();
        let reply = unbind.send().await;
        if reply.status == 202 {
            let poll = fixture.poll_binding("i", binding);
            let poll = poll.operation(&reply.operation());
            let ended = fixture.poll_until_done(poll).await;
            assert_eq!(ended.json["state"], "succeeded", "{}", ended.text);
        } else {
            reply.is(410);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_purge_is_finished_before_the_id_is_used_again() {
    let brokers = RestartableBroker::new();
    let fixture = with_interrupted_purge(&brokers).await;
    fixture.has_instance("i").await;
    for binding in ["a", "b", "c"] {
        // None of the old bindings answers for a new one.
        fixture.bind("i", binding).send().await.is(201);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_purge_is_finished_by_the_next_purge() {
    let brokers = RestartableBroker::new();
    let fixture = with_interrupted_purge(&brokers).await;
    purge(&fixture).send().await.is(200);
    let left = fixture.request("GET", "/admin/v1/bindings").send().await;
    assert_eq!(left.is(200).json["items"], json!([]));
}
