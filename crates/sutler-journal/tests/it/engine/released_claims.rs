//! Runs whose own commit gives the claim back: nothing else is written, and the next run starts after them.

use super::{EngineFixture, LEASE, ScriptedExecutor, WORK, finish, operation, until};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{
    Commit, Due, EngineSettings, Lost, Next, OperationId, Outcome, Run, RunResult, Start, State,
};
use tokio::sync::Notify;
use tokio::time::Instant;

const WAIT: Duration = Duration::from_secs(20);

/// Gives the claim back in a commit that also writes a detail.
async fn release(run: &Run, next: Next) -> Result<(), Lost> {
    let detail = Some(Bytes::from("a detail"));
    let commit = Commit::new().advance(run.id(), next, detail, None);
    run.commit(commit).await?.map_err(|_| Lost)
}

/// An executor that releases its first run and finishes the second.
fn releasing(next: Next, result: RunResult) -> Arc<ScriptedExecutor> {
    ScriptedExecutor::new(move |run, before| {
        let result = result.clone();
        async move {
            if before > 0 {
                return finish(&run).await;
            }
            release(&run, next).await?;
            Ok(result)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_released_operation_runs_again_after_its_time_and_nothing_more_is_written() {
    for (next, attempt) in [
        (Next::Ready(Due::In(WAIT)), 1),
        (Next::Retry(Due::In(WAIT)), 2),
        (Next::PutBack(Due::In(WAIT)), 1),
    ] {
        let fixture = EngineFixture::new();
        let id = fixture.accept("a").await;
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&commits);
        fixture.hook(move |call| {
            if matches!(call, Call::Commit(_)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            Intercept::Pass
        });
        let executor = releasing(next, RunResult::Released(Some(WAIT)));
        // No look is made because it is time for one.
        let settings = EngineSettings {
            look_every: 100 * WAIT,
            ..EngineSettings::for_queue(WORK, 1)
        };
        let engine = fixture.engine_with(Arc::clone(&executor), settings).await;
        tokio::time::sleep(WAIT / 2).await;
        let row = fixture.row(id).await;
        assert_eq!((row.state, row.detail), (State::Ready, "a detail".into()));
        assert_eq!(engine.operations_running(), 0);
        assert!(engine.permit(&WORK).is_some(), "its slot is free");
        let row = fixture.done(id).await;
        assert_eq!((row.fence.0, row.attempt), (2, attempt));
        assert_eq!(commits.load(Ordering::SeqCst), 2, "the release and the end");
        assert_eq!(executor.observed().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_released_operation_without_a_time_is_found_by_the_next_look() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let next = Next::Ready(Due::In(Duration::from_millis(10)));
    let executor = releasing(next, RunResult::Released(None));
    fixture.engine(executor).await;
    let began = Instant::now();
    fixture.done(id).await;
    let took = began.elapsed();
    assert!((900..=1100).contains(&took.as_millis()), "{took:?}");
}

/// Renewals do not list the operation any more, but its run has not ended.
#[tokio::test(start_paused = true)]
async fn a_run_goes_on_for_a_while_after_its_commit_gave_the_claim_back_or_ended_it() {
    for next in [
        Next::Ready(Due::In(10 * LEASE)),
        Next::Done(Outcome::Succeeded),
    ] {
        let fixture = EngineFixture::new();
        fixture.accept("a").await;
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = Arc::clone(&has_returned);
        let executor = ScriptedExecutor::new(move |run, _| {
            let returned = Arc::clone(&returned);
            async move {
                release(&run, next).await?;
                tokio::time::sleep(LEASE / 3 - Duration::from_secs(1)).await;
                assert!(!run.lost().is_cancelled() && !run.cancelled().is_cancelled());
                returned.store(true, Ordering::SeqCst);
                Ok(RunResult::Released(None))
            }
        });
        let engine = fixture.engine(executor).await;
        // The renewal comes in the middle of this time.
        until("it runs", || engine.operations_running() == 1).await;
        until("it ends", || engine.operations_running() == 0).await;
        assert!(has_returned.load(Ordering::SeqCst), "{next:?}");
    }
}

/// The engine must not hold a claim for ever that its executor cannot run.
#[tokio::test(start_paused = true)]
async fn a_run_that_never_returns_after_its_release_is_stopped_and_the_operation_runs_again() {
    for wait in [Duration::ZERO, Duration::from_secs(600)] {
        let fixture = EngineFixture::new();
        let id = fixture.accept("a").await;
        let executor = ScriptedExecutor::new(move |run, before| async move {
            if before > 0 {
                return finish(&run).await;
            }
            release(&run, Next::Ready(Due::In(wait))).await?;
            std::future::pending().await
        });
        let engine = fixture.engine(executor).await;
        until("it runs", || engine.operations_running() == 1).await;
        let began = Instant::now();
        until("it is stopped", || engine.operations_running() == 0).await;
        let took = began.elapsed();
        assert!(took > LEASE / 3 && took < LEASE, "{took:?}");
        let row = fixture.done(id).await;
        assert_eq!((row.fence.0, row.takeovers), (2, 0));
    }
}

/// The release is due at once, and a hint has it claimed before the run that made it ends.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_claimed_again_before_its_run_ends_runs_after_it() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    // The executor asserts that no operation is inside it twice.
    let executor = ScriptedExecutor::new(move |run, before| {
        let gate = Arc::clone(&held);
        async move {
            if before > 0 {
                return finish(&run).await;
            }
            release(&run, Next::Ready(Due::Now)).await?;
            gate.notified().await;
            Ok(RunResult::Released(Some(Duration::ZERO)))
        }
    });
    let engine = fixture.engine(Arc::clone(&executor)).await;
    while fixture.row(id).await.fence.0 < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The next renewal lists the operation, for the second claim.
    tokio::time::sleep(LEASE / 3 + Duration::from_secs(1)).await;
    assert_eq!(executor.observed().len(), 1);
    assert_eq!(engine.operations_running(), 1);
    gate.notify_one();
    let began = Instant::now();
    let row = fixture.done(id).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!((row.fence.0, row.takeovers), (2, 0));
    assert_eq!(executor.observed().len(), 2);
}

/// The claim after the release is not answered, and a renewal shows it while the first run still goes on.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_while_the_run_before_it_ends_runs_once() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(move |run, before| async move {
        if before > 0 {
            return finish(&run).await;
        }
        release(&run, Next::Ready(Due::Now)).await?;
        tokio::time::sleep(LEASE / 3 - Duration::from_secs(2)).await;
        Ok(RunResult::Released(Some(Duration::ZERO)))
    });
    let mut claims = 0;
    fixture.hook(move |call| match call {
        Call::Claim(_) => {
            claims += 1;
            match claims {
                2 => Intercept::CrashAfter,
                _ => Intercept::Pass,
            }
        }
        _ => Intercept::Pass,
    });
    fixture.engine(Arc::clone(&executor)).await;
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.takeovers), (2, 0));
    assert_eq!(executor.observed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_is_applied_once() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let mut commits = 0;
    fixture.hook(move |call| match call {
        Call::Commit(_) => {
            commits += 1;
            match commits {
                1 => Intercept::LoseReply,
                _ => Intercept::Pass,
            }
        }
        _ => Intercept::Pass,
    });
    let executor = releasing(Next::Retry(Due::In(WAIT)), RunResult::Released(Some(WAIT)));
    fixture.engine(executor).await;
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.attempt), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_gave_its_claim_back_can_write_nothing_more() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let refused = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&refused);
    let executor = ScriptedExecutor::new(move |run, before| {
        let seen = Arc::clone(&seen);
        async move {
            if before > 0 {
                return finish(&run).await;
            }
            release(&run, Next::Ready(Due::In(WAIT))).await?;
            let late = run.save_progress(Some("late".into()), None).await;
            seen.store(late == Err(Lost), Ordering::SeqCst);
            Ok(RunResult::Released(Some(WAIT)))
        }
    });
    fixture.engine(executor).await;
    fixture.done(id).await;
    assert!(refused.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_releases_without_a_commit_tries_again() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        match before {
            0 => Ok(RunResult::Released(None)),
            _ => finish(&run).await,
        }
    });
    fixture.engine(executor).await;
    let began = Instant::now();
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.attempt), (2, 2));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// An executor that releases `a` and starts or wakes the operation `b` in the same commit.
async fn releases_and(fixture: &EngineFixture, wakes: Option<OperationId>) -> Duration {
    let wait = Duration::from_secs(3);
    fixture.accept("a").await;
    let executor = ScriptedExecutor::new(move |run, _| async move {
        if run.operation().row.lane.id(0) != "a" {
            return finish(&run).await;
        }
        let release = Next::Ready(Due::In(100 * WAIT));
        let commit = Commit::new().advance(run.id(), release, None, None);
        let commit = match wakes {
            Some(id) => commit.advance(id, Next::Ready(Due::In(wait)), None, None),
            None => commit.start(operation("b", WORK, Start::Ready(Due::In(wait)))),
        };
        run.commit(commit).await?.map_err(|_| Lost)?;
        Ok(RunResult::Released(None))
    });
    let settings = EngineSettings {
        look_every: 100 * WAIT,
        ..EngineSettings::for_queue(WORK, 1)
    };
    let _engine = fixture.engine_with(Arc::clone(&executor), settings).await;
    let began = Instant::now();
    until("both ran", || executor.observed().len() == 2).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_a_run_that_makes_another_operation_claimable_is_looked_at_in_time() {
    let fixture = EngineFixture::new();
    let started = releases_and(&fixture, None).await;
    let fixture = EngineFixture::new();
    let new = operation("b", WORK, Start::Waiting);
    let waiting = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    let woken = releases_and(&fixture, Some(waiting)).await;
    for took in [started, woken] {
        assert!((3000..3100).contains(&took.as_millis()), "{took:?}");
    }
}
