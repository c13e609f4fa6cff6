//! More queues than one claim asks: each is looked at when it should be, and none is starved.

use super::{EngineFixture, ScriptedExecutor, finish, operation};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::{
    Commit, Due, EngineSettings, Lost, Queue, QueueSettings, Run, RunResult, Start, State,
};
use tokio::time::Instant;

/// Queues that one claim asks.
const PER_CLAIM: usize = 64;
/// Nothing is found because it is time for it.
const NEVER: Duration = Duration::from_secs(3600);

fn queue(n: usize) -> Queue {
    Queue::of(format!("queue {n}"))
}

fn settings(queues: usize, look_every: Duration) -> EngineSettings {
    let limit = 2;
    EngineSettings {
        queues: (0..queues)
            .map(|n| QueueSettings {
                queue: queue(n),
                limit,
            })
            .collect(),
        look_every,
        ..EngineSettings::default()
    }
}

fn finishing() -> Arc<ScriptedExecutor> {
    ScriptedExecutor::new(|run, _| async move { finish(&run).await })
}

fn taken(claims: &AtomicUsize) -> usize {
    claims.swap(0, Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_look_at_all_queues_takes_one_claim_for_each_64() {
    for (queues, expected) in [(1, 1), (PER_CLAIM, 1), (PER_CLAIM + 1, 2), (1000, 16)] {
        let fixture = EngineFixture::new();
        let claims = fixture.count_claims();
        let look_every = Duration::from_secs(1);
        let _engine = fixture
            .engine_with(finishing(), settings(queues, look_every))
            .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(taken(&claims), expected, "at the start");
        tokio::time::sleep(look_every).await;
        assert_eq!(taken(&claims), expected, "after the interval");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_finds_the_operation_in_any_of_many_queues_at_once() {
    let fixture = EngineFixture::new();
    let _engine = fixture
        .engine_with(finishing(), settings(1000, NEVER))
        .await;
    for n in [0, 63, 64, 500, 999] {
        let began = Instant::now();
        let id = fixture.accept_in(&format!("{n}"), queue(n)).await;
        fixture.done(id).await;
        let took = began.elapsed();
        assert!(took < Duration::from_millis(250), "{n}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hints_all_the_time_cost_a_bounded_number_of_claims() {
    let fixture = EngineFixture::new();
    let _engine = fixture.engine_with(finishing(), settings(640, NEVER)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let claims = fixture.count_claims();
    for n in 0..1000 {
        fixture.accept_in(&format!("{n}"), queue(n % 640)).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claims = taken(&claims);
    assert!((90..=120).contains(&claims), "{claims} in a second");
}

/// A yield, and a commit that starts another operation later, say which queue to look at and when.
#[tokio::test(start_paused = true)]
async fn what_becomes_claimable_later_is_found_in_time_by_one_claim() {
    let fixture = EngineFixture::new();
    let wait = Duration::from_secs(20);
    let started: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&started);
    let executor = ScriptedExecutor::new(move |run: Arc<Run>, before| {
        let count = Arc::clone(&count);
        async move {
            if run.operation().row.queue == queue(7) && before == 0 {
                let start = Start::Ready(Due::In(wait));
                let other = operation("other", queue(900), start);
                let commit = Commit::new().start(other);
                run.commit(commit).await?.map_err(|_| Lost)?;
                return Ok(RunResult::Yield(wait / 2));
            }
            count.fetch_add(1, Ordering::SeqCst);
            finish(&run).await
        }
    });
    let _engine = fixture.engine_with(executor, settings(1000, NEVER)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.accept_in("first", queue(7)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let claims = fixture.count_claims();
    let almost = Duration::from_millis(900);
    tokio::time::sleep(wait / 2 - almost * 2).await;
    assert_eq!((started.load(Ordering::SeqCst), taken(&claims)), (0, 0));
    tokio::time::sleep(almost).await;
    assert_eq!((started.load(Ordering::SeqCst), taken(&claims)), (1, 1));
    tokio::time::sleep(wait / 2).await;
    assert_eq!((started.load(Ordering::SeqCst), taken(&claims)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_commit_outside_of_a_run_can_name_its_queue() {
    let fixture = EngineFixture::new();
    let engine = fixture
        .engine_with(finishing(), settings(1000, NEVER))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let wait = Duration::from_secs(10);
    let new = operation("a", queue(300), Start::Ready(Due::In(wait)));
    let id = new.id;
    fixture
        .store
        .commit(&Commit::new().start(new))
        .await
        .unwrap();
    let claims = fixture.count_claims();
    engine.look_within(&queue(300), wait);
    tokio::time::sleep(wait + Duration::from_millis(5)).await;
    assert!(matches!(fixture.row(id).await.state, State::Done(_)));
    assert_eq!(taken(&claims), 1);
    engine.look_within(&queue(300), Duration::MAX);
    engine.look_within(&Queue::named("unknown"), Duration::ZERO);
}

/// A hundred queues always have work, more than one claim asks.
#[tokio::test(start_paused = true)]
async fn queues_that_always_have_work_starve_no_other() {
    let fixture = EngineFixture::new();
    let busy = 100;
    let executor = ScriptedExecutor::new(move |run, _| async move {
        let row = &run.operation().row;
        if (0..busy).any(|n| row.queue == queue(n)) {
            return Ok(RunResult::Yield(Duration::ZERO));
        }
        finish(&run).await
    });
    for n in 0..busy {
        fixture.accept_in(&format!("busy {n}"), queue(n)).await;
    }
    let look_every = Duration::from_secs(1);
    // Each answer takes a moment, because the clock stands still while anything can go on.
    fixture.hook(slow_claims());
    let engine = fixture
        .engine_with(executor, settings(200, look_every))
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    for n in [busy, busy + 50, 199] {
        let began = Instant::now();
        let id = fixture.accept_in(&format!("other {n}"), queue(n)).await;
        fixture.done(id).await;
        let took = began.elapsed();
        assert!(took < look_every + Duration::from_millis(100), "{took:?}");
    }
    engine.shut_down(Duration::ZERO).await;
}

/// Holds every claim for a while.
fn slow_claims()
-> impl FnMut(&sutler_journal::conformance::Call<'_>) -> sutler_journal::conformance::Intercept {
    use sutler_journal::conformance::{Call, Intercept};
    |call| match call {
        Call::Claim(_) => {
            let gate = Arc::new(tokio::sync::Notify::new());
            let opened = Arc::clone(&gate);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                opened.notify_one();
            });
            Intercept::Hold(gate)
        }
        _ => Intercept::Pass,
    }
}

#[tokio::test(start_paused = true)]
async fn claims_that_fail_are_not_repeated_for_every_queue() {
    let fixture = EngineFixture::new();
    let look_every = Duration::from_secs(1);
    let engine = fixture
        .engine_with(finishing(), settings(1000, look_every))
        .await;
    tokio::time::sleep(look_every / 2).await;
    let claims: Arc<AtomicUsize> = Arc::default();
    let counted = Arc::clone(&claims);
    fixture.hook(move |call| match call {
        sutler_journal::conformance::Call::Claim(_) => {
            counted.fetch_add(1, Ordering::SeqCst);
            sutler_journal::conformance::Intercept::Refuse
        }
        _ => sutler_journal::conformance::Intercept::Pass,
    });
    tokio::time::sleep(look_every * 10).await;
    let failed = taken(&claims);
    assert!((50..=110).contains(&failed), "{failed} in ten seconds");
    fixture.hook(|_| sutler_journal::conformance::Intercept::Pass);
    let id = fixture.accept_in("a", queue(999)).await;
    fixture.done(id).await;
    engine.shut_down(Duration::ZERO).await;
}
