//! Leases: a worker that loses its lease, and how runs are stopped.

use super::{EngineFixture, LEASE, ScriptedExecutor, finish, hanging_once};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::copy::{CopyNames, StoreCopy, reopen};
use sutler_journal::{Commit, Lost, MemoryStore, Next, Outcome, Run, RunResult, State, Write};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Refuses all calls of one worker; other workers succeed.
fn refuse_renewals(fixture: &EngineFixture, worker: sutler_journal::WorkerId) {
    fixture.hook(move |call| match call {
        Call::Renew(who) if *who == worker => Intercept::Refuse,
        _ => Intercept::Pass,
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lease_is_cancelled_and_cannot_write() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let first: Arc<Mutex<Option<Arc<Run>>>> = Arc::default();
    let keep = first.clone();
    let executor = ScriptedExecutor::new(move |run, before| {
        if before == 0 {
            *keep.lock().unwrap() = Some(run.clone());
        }
        async move {
            if before == 0 {
                run.lost().cancelled().await;
                return Err(Lost);
            }
            // The second incarnation still runs when the first one tries to write.
            tokio::time::sleep(Duration::from_secs(5)).await;
            finish(&run).await
        }
    });
    let engine = fixture.engine(executor.clone()).await;
    let worker = engine.worker();
    refuse_renewals(&fixture, worker);
    while executor.observed().len() < 2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_ne!(engine.worker(), worker, "it came back under a new name");
    let stale = first.lock().unwrap().take().expect("it ran");
    assert!(stale.lost().is_cancelled());
    assert!(stale.checked_store().is_err());
    assert_eq!(
        stale.save_progress(Some("late".into()), None).await,
        Err(Lost)
    );
    let late = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
    assert_eq!(stale.commit(late).await, Err(Lost));
    let row = fixture.done(id).await;
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_renew_stops_before_a_takeover() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    // The executor asserts that no operation is inside it twice.
    let executor = hanging_once();
    let first = fixture.engine(executor.clone()).await;
    while executor.observed().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    refuse_renewals(&fixture, first.worker());
    fixture.engine(executor.clone()).await;
    let began = Instant::now();
    fixture.done(id).await;
    assert!(began.elapsed() <= LEASE + Duration::from_secs(2));
    assert_eq!(executor.observed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_renewal_hangs_stops_before_a_takeover() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    // The executor asserts that no operation is inside it twice.
    let executor = hanging_once();
    let first = fixture.engine(executor.clone()).await;
    while executor.observed().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let worker = first.worker();
    fixture.hook(move |call| match call {
        Call::Renew(who) if *who == worker => Intercept::Hold(Arc::default()),
        _ => Intercept::Pass,
    });
    let second = fixture.engine(executor.clone()).await;
    let began = Instant::now();
    while first.operations_running() + second.operations_running() > 0 {
        assert!(began.elapsed() < LEASE, "it runs until the lease is over");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.done(id).await;
    assert_eq!(executor.observed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_renewal_without_an_answer_does_not_cost_the_lease() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(3 * LEASE).await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    let mut lost = false;
    fixture.hook(move |call| match call {
        Call::Renew(_) if !lost => {
            lost = true;
            Intercept::Hold(Arc::default())
        }
        // Not in the first poll, as no server answers.
        Call::Renew(_) => Intercept::PassSlowly,
        _ => Intercept::Pass,
    });
    let worker = engine.worker();
    assert_eq!(fixture.done(id).await.fence.0, 1);
    assert_eq!(engine.worker(), worker);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_commit_ended_stops_at_the_next_renewal() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|_, _| std::future::pending());
    let engine = fixture.engine(executor.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let abandon = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
    fixture.store.commit(&abandon).await.unwrap();
    let began = Instant::now();
    while engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() <= LEASE / 3 + Duration::from_millis(20));
}

/// The answer to a commit decides about its run; one that was lost is waited for until the next renewal only.
#[tokio::test(start_paused = true)]
async fn a_run_with_an_unanswered_commit_stops_at_the_second_renewal_that_does_not_list_it() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        finish(&run).await?;
        unreachable!("the commit is not answered")
    });
    fixture.hook(|call| match call {
        Call::Commit(_) => Intercept::CrashAfter,
        _ => Intercept::Pass,
    });
    let engine = fixture.engine(executor.clone()).await;
    while !matches!(fixture.row(id).await.state, State::Done(_)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    while engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = began.elapsed();
    assert!(
        took > LEASE / 3 && took <= LEASE * 2 / 3 + Duration::from_millis(50),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_few_failed_renewals_have_no_effect() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(10 * LEASE).await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    let worker = engine.worker();
    let mut renewals = 0;
    fixture.hook(move |call| match call {
        Call::Renew(_) => {
            renewals += 1;
            // Every other renewal fails: the lease is three times as long as the interval between them.
            if renewals % 2 == 0 {
                Intercept::Pass
            } else {
                Intercept::Refuse
            }
        }
        _ => Intercept::Pass,
    });
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, row.takeovers), (1, 0));
    assert_eq!(engine.worker(), worker);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_arrives_with_the_next_renewal() {
    let fixture = EngineFixture::new();
    let (id, waited) = cancel_a_run(&fixture, false).await;
    assert_eq!(fixture.row(id).await.state, State::Done(Outcome::Succeeded));
    assert!(waited > Duration::ZERO && waited <= LEASE / 3, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hint_delivers_the_cancellation_at_once() {
    let fixture = EngineFixture::new();
    let (_, waited) = cancel_a_run(&fixture, true).await;
    assert!(waited < Duration::from_millis(50), "{waited:?}");
}

async fn cancel_a_run(
    fixture: &EngineFixture,
    hint: bool,
) -> (sutler_journal::OperationId, Duration) {
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        run.cancelled().cancelled().await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let started = Instant::now();
    let cancel = Commit::new().write(Write::Cancel(id));
    fixture.store.commit(&cancel).await.unwrap();
    if hint {
        engine.notify_cancelled(id);
    }
    fixture.done(id).await;
    (id, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_before_the_claim_is_visible_to_the_run() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let cancel = Commit::new().write(Write::Cancel(id));
    fixture.store.commit(&cancel).await.unwrap();
    let executor = ScriptedExecutor::new(|run, _| async move {
        assert!(run.cancelled().is_cancelled());
        finish(&run).await
    });
    fixture.engine(executor).await;
    assert_eq!(fixture.done(id).await.attempt, 1);
}

/// A run that yielded its operation may still be finishing when the next run of it starts here:
/// it must not remove the next run from those that can be cancelled.
#[tokio::test(start_paused = true)]
async fn a_run_that_follows_at_once_on_a_yield_can_still_be_cancelled() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, before| async move {
        if before == 0 {
            return Ok(sutler_journal::RunResult::Yield(Duration::ZERO));
        }
        run.cancelled().cancelled().await;
        finish(&run).await
    });
    fixture.hook(|call| match call {
        Call::Commit(_) => Intercept::PassSlowly,
        _ => Intercept::Pass,
    });
    let engine = fixture.engine(executor.clone()).await;
    while executor.observed().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(engine.operations_running(), 1);
    assert!(engine.finished(id).is_some());
    let cancel = Commit::new().write(Write::Cancel(id));
    fixture.store.commit(&cancel).await.unwrap();
    fixture.done(id).await;
}

/// A lease that is not used must not be left in the store: its next copy would be refused.
#[tokio::test(start_paused = true)]
async fn a_worker_without_a_lease_claims_nothing_from_a_store_that_was_moved() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor.clone()).await;
    fixture.hook(|call| match call {
        Call::Renew(_) => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    tokio::time::sleep(2 * LEASE).await;
    let id = fixture.accept("a").await;
    let names = CopyNames {
        source: "memory:one",
        target: "memory:two",
    };
    let target = Arc::new(MemoryStore::new());
    let copying = StoreCopy::begin(Arc::clone(&fixture.store), target, names).await;
    let finished = copying.expect("a copy").finish().await;
    finished.expect("no worker has a lease");
    fixture.hook(|_| Intercept::Pass);
    for _ in 0..100 {
        tokio::time::sleep(LEASE / 50).await;
        assert_eq!(fixture.store.info().await.unwrap().leases, 0);
    }
    assert_eq!(executor.observed().len(), 0);
    assert_eq!(fixture.row(id).await.state, State::Ready);
    assert!(!engine.holds_lease());
    reopen(&*fixture.store).await.expect("the mark is removed");
    fixture.done(id).await;
}

/// The store may hold the lease for longer than the worker counts on: what is claimed under it runs nowhere.
#[tokio::test(start_paused = true)]
async fn a_worker_that_gave_up_its_lease_claims_nothing_under_it() {
    let fixture = EngineFixture::new();
    let engine = fixture.engine(hanging_once()).await;
    let worker = engine.worker();
    let (late, claims): (Arc<Mutex<bool>>, Arc<Mutex<u32>>) = Default::default();
    let (is_late, counted) = (late.clone(), claims.clone());
    fixture.hook(move |call| match call {
        Call::Renew(_) => Intercept::Refuse,
        Call::Claim(who) if *who == worker && *is_late.lock().unwrap() => {
            *counted.lock().unwrap() += 1;
            Intercept::Pass
        }
        _ => Intercept::Pass,
    });
    while engine.holds_lease() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    *late.lock().unwrap() = true;
    tokio::time::sleep(LEASE).await;
    assert_eq!(*claims.lock().unwrap(), 0);
}

/// A cancel that is committed after the decision to wait finds the operation running and wakes nothing.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_cancelled_while_it_is_put_back_does_not_wait() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(move |run, before| async move {
        match before {
            0 => Ok(RunResult::Retry(Duration::from_secs(200), None)),
            _ => finish(&run).await,
        }
    });
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    fixture.hook(move |call| match call {
        Call::Commit(commit) if has_retry(commit) => Intercept::Hold(held.clone()),
        _ => Intercept::Pass,
    });
    fixture.engine(executor.clone()).await;
    while executor.observed().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cancel = Commit::new()
        .write(Write::Cancel(id))
        .write(Write::Wake(id));
    fixture.store.commit(&cancel).await.expect("a commit");
    gate.notify_one();
    let began = Instant::now();
    fixture.done(id).await;
    assert!(began.elapsed() < Duration::from_secs(10));
}

fn has_retry(commit: &Commit) -> bool {
    let is_retry = |write: &Write| {
        let next = match write {
            Write::Advance { next, .. } => next,
            _ => return false,
        };
        matches!(next, Next::Retry(_))
    };
    commit.writes().iter().any(is_retry)
}
