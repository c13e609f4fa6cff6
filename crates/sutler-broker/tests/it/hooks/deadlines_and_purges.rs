//! Deadlines, interrupted purges and requesters that go away, each by itself.
//! Their combinations are simulated by `tools/simulate`.

use super::{HookFixture, RestartableBroker};
use crate::fixture::request::{Reply, RequestBuilder};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_broker::prelude::JsonSchema;
use sutler_broker::{Admin, Bound, Cx, DocumentOpener, Policy, Provisioned, Result, Service};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::inspect::{RealmReaders, check};
use sutler_journal::{Commit, Key, KeyRing, Kind, Next, Realm, Store, Write};
use sutler_osb::{OperationKind, PinnedPlan};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Longer than the time between two runs of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(660);

/// Deadline of every hook.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(serde::Deserialize, JsonSchema)]
struct NoParams {}

/// A service whose verbs take some time.
#[derive(Clone, Default)]
struct SlowService {
    provision: Duration,
    deprovision: Duration,
    bind: Duration,
    unbind: Duration,
    /// Reports progress before it waits.
    reports: bool,
    provisions: Arc<AtomicUsize>,
    deprovisions: Arc<AtomicUsize>,
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
        self.deprovisions.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.deprovision).await;
        Ok(())
    }

    async fn bind(&self, _: &Cx, (): &()) -> Result<Bound> {
        tokio::time::sleep(self.bind).await;
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
    let ending = finish_slowly(&fixture, provision);
    let ended = timeout(10 * DEADLINE, ending).await.expect("it ends");
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

/// A broker with operators.
async fn with_admin(brokers: &RestartableBroker, service: SlowService) -> HookFixture {
    let admin = Admin::at("/admin").basic_auth("user", "s3cret");
    brokers.open_with(service, |it| it.admin(admin)).await
}

/// An instance with three bindings.
async fn with_bindings(brokers: &RestartableBroker) -> HookFixture {
    let fixture = with_admin(brokers, SlowService::default()).await;
    fixture.has_instance("i").await;
    for binding in ["a", "b", "c"] {
        fixture.has_binding("i", binding).await;
    }
    fixture
}

/// Purges the instance; the purge ends for ever after this number of commits.
async fn interrupt_purge(brokers: &RestartableBroker, fixture: &HookFixture, after: usize) {
    let mut commits = 0;
    brokers.inject(move |call| match call {
        Call::Commit(_) => {
            commits += 1;
            match commits <= after {
                true => Intercept::Pass,
                false => Intercept::CrashBefore,
            }
        }
        _ => Intercept::Pass,
    });
    let purging = purge(fixture).start();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    purging.abort();
    brokers.stop_faults();
    assert_eq!(lifecycle(fixture).await, "purging");
}

/// An instance with three bindings, whose purge ended after it had purged one of them.
async fn with_interrupted_purge(brokers: &RestartableBroker) -> HookFixture {
    let fixture = with_bindings(brokers).await;
    interrupt_purge(brokers, &fixture, 2).await;
    fixture
}

/// State of the instance, as operators see it.
async fn lifecycle(fixture: &HookFixture) -> String {
    let request = fixture.request("GET", "/admin/v1/instances/i");
    let shown = request.send().await.is(200);
    shown.json["lifecycle"]
        .as_str()
        .expect("a state")
        .to_owned()
}

/// Waits until the purge is finished.
async fn until_purged(fixture: &HookFixture) {
    let began = Instant::now();
    while lifecycle(fixture).await != "gone" {
        assert!(began.elapsed() < Duration::from_secs(2), "it is not purged");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let left = fixture.request("GET", "/admin/v1/bindings").send().await;
    assert_eq!(left.is(200).json["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_purge_goes_on_without_its_client() {
    let brokers = RestartableBroker::new();
    let fixture = with_bindings(&brokers).await;
    for commits_before in 0..3 {
        if commits_before > 0 {
            fixture.has_instance("i").await;
            fixture.has_binding("i", "a").await;
            fixture.has_binding("i", "b").await;
        }
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = commits.clone();
        brokers.inject(move |call| match call {
            Call::Commit(_) => {
                counted.fetch_add(1, Ordering::Relaxed);
                Intercept::PassSlowly
            }
            _ => Intercept::Pass,
        });
        let request = purge(&fixture).start();
        while commits.load(Ordering::Relaxed) <= commits_before {
            tokio::task::yield_now().await;
        }
        request.abort();
        until_purged(&fixture).await;
        brokers.stop_faults();
    }
}

#[tokio::test(start_paused = true)]
async fn a_purge_of_a_killed_process_is_finished_by_housekeeping() {
    let brokers = RestartableBroker::new();
    with_interrupted_purge(&brokers).await.crash();
    let fixture = with_admin(&brokers, SlowService::default()).await;
    let list = fixture.request("GET", "/admin/v1/instances");
    let all = list.clone().send().await.is(200);
    assert_eq!(all.json["items"][0]["lifecycle"], "purging");
    let purging = list.query("lifecycle", "purging").send().await.is(200);
    assert_eq!(purging.json["items"][0]["id"], "i");
    brokers.pass(HOUSEKEEPING).await;
    until_purged(&fixture).await;
}

/// The bind ends with its instance, and the unbind that waits for it succeeds.
#[tokio::test(start_paused = true)]
async fn a_binding_that_an_interrupted_purge_left_in_creation_can_be_unbound() {
    let brokers = RestartableBroker::new();
    let service = SlowService {
        bind: DEADLINE / 2,
        ..SlowService::default()
    };
    let fixture = with_admin(&brokers, service).await;
    fixture.has_instance("i").await;
    let bind = fixture.bind("i", "b").accepts_incomplete();
    bind.send().await.is(202);
    interrupt_purge(&brokers, &fixture, 1).await;
    let unbind = fixture.unbind("i", "b").accepts_incomplete();
    let accepted = unbind.send().await.is(202);
    let poll = fixture.poll_binding("i", "b");
    let poll = poll.operation(&accepted.operation());
    let ended = fixture.poll_until_done(poll).await;
    assert_eq!(ended.json["state"], "succeeded", "{}", ended.text);
    fixture.unbind("i", "b").send().await.is(410);
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

#[tokio::test(start_paused = true)]
async fn a_hook_does_not_begin_after_a_slow_read_if_another_replica_purged_its_instance() {
    for is_purged in [true, false] {
        let brokers = RestartableBroker::new();
        let service = SlowService::default();
        let fixture = brokers.open(service.clone()).await;
        fixture.has_instance("i").await;
        // The deprovision lists the bindings before it calls its hook.
        let (held, may_go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (was_held, go_on) = (held.clone(), may_go_on.clone());
        let mut lists = 0;
        brokers.inject(move |call| {
            lists += usize::from(matches!(call, Call::Read("list")));
            match call {
                Call::Read("list") if lists == 1 => {
                    held.notify_one();
                    Intercept::Hold(may_go_on.clone())
                }
                _ => Intercept::Pass,
            }
        });
        let delete = fixture.deprovision("i").accepts_incomplete();
        delete.send().await.is(202);
        was_held.notified().await;
        if is_purged {
            let replica = with_admin(&brokers, service.clone()).await;
            purge(&replica).send().await.is(200);
        }
        // Less than the time to the next renewal, which would end the run.
        tokio::time::sleep(Duration::from_secs(2)).await;
        go_on.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let calls = service.deprovisions.load(Ordering::Relaxed);
        assert_eq!(calls, usize::from(!is_purged));
    }
}

/// Earlier versions wrote no term; the next purge or provision of the id finishes such a purge.
#[tokio::test(start_paused = true)]
async fn an_interrupted_purge_is_not_a_fault_of_its_store() {
    let brokers = RestartableBroker::new();
    with_interrupted_purge(&brokers).await.crash();
    let store: Arc<dyn Store> = brokers.memory.clone();
    let opener = DocumentOpener::new(KeyRing::parse(&brokers.ring).expect("a ring"));
    let readers = RealmReaders::of_others(opener);
    let findings = async || {
        let report = check(&store, Some(&readers), &|_, _| {}).await;
        report.expect("the store answers").findings
    };
    assert_eq!(findings().await, []);
    let realm = Realm::new("broker").expect("a realm");
    let key = Key::new(&realm, Kind::new("instance"), &["i"]).expect("a key");
    let tombstone = store.get(&key).await.expect("it answers");
    let tombstone = tombstone.expect("it is there");
    let without_term = Commit::new().replace(key, tombstone.version, Vec::new(), tombstone.body);
    store.commit(&without_term).await.expect("it is written");
    assert_eq!(findings().await, []);
    let fixture = with_admin(&brokers, SlowService::default()).await;
    purge(&fixture).send().await.is(200);
    until_purged(&fixture).await;
}
