//! Claims: fences, attempts, and the limit of takeovers.

use super::{EngineFixture, LEASE, ObservedRun, ScriptedExecutor, WORK, end, finish};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{
    Commit, Engine, EngineSettings, Executor, Lost, Next, Outcome, Run, RunResult, State, WorkerId,
};
use tokio::sync::Notify;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_takeover_raises_the_fence_and_keeps_the_attempt() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    fixture.claim_and_die().await;
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    fixture.engine(executor.clone()).await;
    assert_eq!(
        fixture.done(id).await.state,
        State::Done(Outcome::Succeeded)
    );
    let taken_over = ObservedRun {
        id,
        fence: 2,
        attempt: 1,
        takeovers: 1,
    };
    assert_eq!(executor.observed(), [taken_over]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_raises_fence_and_attempt_and_runs_when_due() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let began = Instant::now();
    let executor = ScriptedExecutor::new(|run, before| async move {
        match before {
            0 => Ok(RunResult::Retry(Duration::from_secs(10), None)),
            _ => finish(&run).await,
        }
    });
    fixture.engine(executor.clone()).await;
    fixture.done(id).await;
    let numbers: Vec<_> = executor
        .observed()
        .iter()
        .map(|s| (s.fence, s.attempt))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 2)]);
    let waited = began.elapsed();
    assert!((10..=11).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_yielded_operation_is_claimed_again_in_the_same_attempt() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        match before {
            0..3 => Ok(RunResult::Yield(Duration::from_secs(60))),
            _ => finish(&run).await,
        }
    });
    let engine = fixture.engine(executor.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.row(id).await.state, State::Ready);
    assert_eq!(engine.operations_running(), 0, "polling holds no worker");
    fixture.done(id).await;
    let numbers: Vec<_> = executor
        .observed()
        .iter()
        .map(|s| (s.fence, s.attempt))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 1), (4, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_taken_over_too_often_fails() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    for _ in 0..6 {
        fixture.claim_and_die().await;
    }
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    fixture.engine(executor.clone()).await;
    assert_eq!(fixture.done(id).await.state, State::Done(Outcome::Failed));
    assert_eq!(executor.observed(), [], "it is not run a sixth time");
    let given_up = ObservedRun {
        id,
        fence: 7,
        attempt: 1,
        takeovers: 6,
    };
    assert_eq!(executor.given_up(), [given_up]);
}

#[tokio::test(start_paused = true)]
async fn five_takeovers_are_not_too_many() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    for _ in 0..5 {
        fixture.claim_and_die().await;
    }
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    fixture.engine(executor.clone()).await;
    assert_eq!(
        fixture.done(id).await.state,
        State::Done(Outcome::Succeeded)
    );
}

#[tokio::test(start_paused = true)]
async fn progress_resets_the_count_of_takeovers() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    for _ in 0..5 {
        fixture.claim_and_die().await;
    }
    let executor = ScriptedExecutor::new(|run, before| async move {
        run.save_progress(None, Some("a step".into())).await?;
        match before {
            0 => Ok(RunResult::Yield(Duration::ZERO)),
            _ => finish(&run).await,
        }
    });
    fixture.engine(executor.clone()).await;
    fixture.done(id).await;
    let takeovers: Vec<u32> = executor
        .observed()
        .iter()
        .map(|observed| observed.takeovers)
        .collect();
    assert_eq!(takeovers, [5, 0]);
}

/// The answer to the commit that gives a claim back is late: the operation is due and claimed again before.
#[tokio::test(start_paused = true)]
async fn a_claim_that_arrives_while_the_run_before_it_ends_runs_after_it() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        match before {
            0 => Ok(RunResult::Yield(Duration::from_millis(100))),
            _ => finish(&run).await,
        }
    });
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let mut commits = 0;
    fixture.hook(move |call| match call {
        Call::Commit(_) => {
            commits += 1;
            match commits {
                // Written, and its answer is lost; the repeat is held back.
                1 => Intercept::LoseReply,
                2 => Intercept::Hold(held.clone()),
                _ => Intercept::Pass,
            }
        }
        _ => Intercept::Pass,
    });
    fixture.engine(executor.clone()).await;
    while fixture.row(id).await.fence.0 < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    gate.notify_one();
    let began = Instant::now();
    fixture.done(id).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "it waits for renewals"
    );
}

#[tokio::test(start_paused = true)]
async fn a_text_of_progress_does_not_reset_the_count_of_takeovers() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    for _ in 0..5 {
        fixture.claim_and_die().await;
    }
    let executor = ScriptedExecutor::new(|run, _| async move {
        run.save_progress(Some("a text".into()), None).await?;
        finish(&run).await
    });
    fixture.engine(executor.clone()).await;
    assert_eq!(fixture.done(id).await.takeovers, 5);
}

#[tokio::test(start_paused = true)]
async fn operations_that_may_have_ended_their_process_do_not_run_together() {
    let fixture = EngineFixture::new();
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(fixture.accept(name).await);
    }
    for _ in 0..3 {
        let worker = WorkerId::fresh();
        let ttl = Duration::from_secs(1);
        fixture.store.renew(worker, ttl).await.unwrap();
        let claimed = fixture.store.claim(worker, &[(WORK, 8)]).await.unwrap();
        assert_eq!(claimed.len(), 3);
        tokio::time::sleep(ttl).await;
    }
    let running = Arc::new(AtomicUsize::new(0));
    let executor = ScriptedExecutor::new(move |run, _| {
        let running = running.clone();
        async move {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "it runs alone");
            tokio::time::sleep(Duration::from_secs(5)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            finish(&run).await
        }
    });
    fixture.engine(executor.clone()).await;
    for id in all {
        assert_eq!(fixture.done(id).await.takeovers, 3, "none is counted again");
    }
    assert_eq!(executor.observed().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_panics_ends_its_attempt_and_not_the_engine() {
    let fixture = EngineFixture::new();
    let (bad, good) = (fixture.accept("bad").await, fixture.accept("good").await);
    let executor = ScriptedExecutor::new(move |run, before| async move {
        assert!(run.id() != bad || before > 0, "a panic that a test wants");
        finish(&run).await
    });
    fixture.engine(executor.clone()).await;
    assert_eq!(fixture.done(good).await.attempt, 1);
    let row = fixture.done(bad).await;
    assert_eq!(
        (row.state, row.attempt),
        (State::Done(Outcome::Succeeded), 2)
    );
}

/// An executor whose first attempt to give an operation up panics.
struct GivesUpWithAPanic(AtomicUsize);

#[async_trait]
impl Executor for GivesUpWithAPanic {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        finish(&run).await
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        assert_ne!(before, 0, "a panic that a test wants");
        end(&run, Outcome::Failed).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_end_panics_is_given_up_again() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    for _ in 0..7 {
        fixture.claim_and_die().await;
    }
    let executor = Arc::new(GivesUpWithAPanic(AtomicUsize::new(0)));
    let settings = EngineSettings::for_queue(WORK, 8);
    let started = Engine::start(Arc::clone(&fixture.store), executor, settings).await;
    let engine = started.expect("a lease");
    assert_eq!(fixture.done(id).await.state, State::Done(Outcome::Failed));
    while engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Panics when it is dropped.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a panic that a test wants");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_run_panics_when_it_is_dropped_runs_again() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        if before == 0 {
            let _guard = PanicsWhenDropped;
            std::future::pending::<()>().await;
        }
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.hook(|call| match call {
        Call::Renew(_) => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    tokio::time::sleep(LEASE).await;
    fixture.hook(|_| Intercept::Pass);
    let row = fixture.done(id).await;
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
}

/// The operation is ended after the first read was answered, which took long.
#[tokio::test(start_paused = true)]
async fn a_confirmation_whose_answer_was_late_is_repeated() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let reads: Arc<[Notify; 2]> = Arc::default();
    let gates = [0, 1].map(|_| Arc::new(Notify::new()));
    let (asked, held, mut read) = (reads.clone(), gates.clone(), 0);
    fixture.hook(move |call| match call {
        Call::Read("operation") if read < 2 => {
            read += 1;
            asked[read - 1].notify_one();
            Intercept::Hold(held[read - 1].clone())
        }
        _ => Intercept::Pass,
    });
    let has_begun = Arc::new(AtomicUsize::new(0));
    let begins = has_begun.clone();
    let executor = ScriptedExecutor::new(move |run, _| {
        let begins = begins.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            run.confirm_claim().await?;
            begins.fetch_add(1, Ordering::SeqCst);
            finish(&run).await
        }
    });
    let engine = fixture.engine(executor).await;
    reads[0].notified().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    gates[0].notify_one();
    let second = tokio::time::timeout(LEASE, reads[1].notified()).await;
    assert!(second.is_ok(), "it is read again");
    let commit = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
    fixture.store.commit(&commit).await.unwrap();
    gates[1].notify_one();
    while engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(has_begun.load(Ordering::SeqCst), 0);
}

/// Otherwise nothing would ever begin on a slow store.
#[tokio::test(start_paused = true)]
async fn a_confirmation_is_repeated_once() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let gate = Arc::new(Notify::new());
    let (held, reads) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = reads.clone();
    fixture.hook(move |call| match call {
        Call::Read("operation") => {
            counted.fetch_add(1, Ordering::SeqCst);
            Intercept::Hold(held.clone())
        }
        _ => Intercept::Pass,
    });
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        run.confirm_claim().await?;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    while executor.observed().is_empty() || engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        gate.notify_one();
    }
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    fixture.hook(|_| Intercept::Pass);
    assert_eq!(fixture.row(id).await.state, State::Done(Outcome::Succeeded));
}
