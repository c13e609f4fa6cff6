//! Leases: a worker that loses its lease, and how runs are stopped.

use super::{Bench, LEASE, Script, finish};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Commit, Lost, Next, Outcome, Run, State, Write};
use tokio::time::Instant;

/// Refuses all calls of one worker; other workers succeed.
fn refuse_renewals(bench: &Bench, worker: sutler_journal::WorkerId) {
    bench.tap(move |call| match call {
        Call::Renew(who) if *who == worker => Intercept::Refuse,
        _ => Intercept::Pass,
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lease_is_told_and_can_write_nothing() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let first: Arc<Mutex<Option<Arc<Run>>>> = Arc::default();
    let keep = first.clone();
    let script = Script::new(move |run, before| {
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
    let engine = bench.engine(script.clone()).await;
    let worker = engine.worker();
    refuse_renewals(&bench, worker);
    while script.seen().len() < 2 {
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
    let row = bench.done(id).await;
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
    assert_eq!((row.fence.0, row.attempt, row.takeovers), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_renew_stops_before_another_may_start() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    // The executor asserts that no operation is inside it twice.
    let script = Script::new(|run, before| async move {
        if before == 0 {
            std::future::pending::<()>().await;
        }
        finish(&run).await
    });
    let first = bench.engine(script.clone()).await;
    while script.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    refuse_renewals(&bench, first.worker());
    bench.engine(script.clone()).await;
    let began = Instant::now();
    bench.done(id).await;
    assert!(began.elapsed() <= LEASE + Duration::from_secs(2));
    assert_eq!(script.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_for_a_while_cost_nothing() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let script = Script::new(|run, _| async move {
        tokio::time::sleep(10 * LEASE).await;
        finish(&run).await
    });
    let engine = bench.engine(script.clone()).await;
    let worker = engine.worker();
    let mut renewals = 0;
    bench.tap(move |call| match call {
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
    let row = bench.done(id).await;
    assert_eq!((row.fence.0, row.takeovers), (1, 0));
    assert_eq!(engine.worker(), worker);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_arrives_with_the_next_renewal() {
    let bench = Bench::new();
    let (id, waited) = cancel_a_run(&bench, false).await;
    assert_eq!(bench.row(id).await.state, State::Done(Outcome::Succeeded));
    assert!(waited > Duration::ZERO && waited <= LEASE / 3, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hint_brings_the_cancellation_at_once() {
    let bench = Bench::new();
    let (_, waited) = cancel_a_run(&bench, true).await;
    assert!(waited < Duration::from_millis(50), "{waited:?}");
}

async fn cancel_a_run(bench: &Bench, hint: bool) -> (sutler_journal::OperationId, Duration) {
    let id = bench.accept("a").await;
    let script = Script::new(|run, _| async move {
        run.cancelled().cancelled().await;
        finish(&run).await
    });
    let engine = bench.engine(script.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = Instant::now();
    let cancel = Commit::new().write(Write::Cancel(id));
    bench.store.commit(&cancel).await.unwrap();
    if hint {
        engine.notify_cancelled(id);
    }
    bench.done(id).await;
    (id, asked.elapsed())
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_was_cancelled_before_its_claim_begins_so() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let cancel = Commit::new().write(Write::Cancel(id));
    bench.store.commit(&cancel).await.unwrap();
    let script = Script::new(|run, _| async move {
        assert!(run.cancelled().is_cancelled());
        finish(&run).await
    });
    bench.engine(script).await;
    assert_eq!(bench.done(id).await.attempt, 1);
}

/// A run that yielded its operation may still be finishing when the next run of it starts here:
/// it must not remove the next run from those that can be cancelled.
#[tokio::test(start_paused = true)]
async fn a_run_that_follows_at_once_on_a_yield_can_still_be_cancelled() {
    let bench = Bench::new();
    let id = bench.accept("a").await;
    let script = Script::new(|run, before| async move {
        if before == 0 {
            return Ok(sutler_journal::RunResult::Yield(Duration::ZERO));
        }
        run.cancelled().cancelled().await;
        finish(&run).await
    });
    bench.tap(|call| match call {
        Call::Commit(_) => Intercept::PassSlowly,
        _ => Intercept::Pass,
    });
    let engine = bench.engine(script.clone()).await;
    while script.seen().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(engine.operations_running(), 1);
    assert!(engine.finished(id).is_some());
    let cancel = Commit::new().write(Write::Cancel(id));
    bench.store.commit(&cancel).await.unwrap();
    bench.done(id).await;
}
