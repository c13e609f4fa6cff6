//! Claims that a commit makes for its own process: they run once, under the lease they were made for.

use super::{
    EngineFixture, LEASE, ScriptedExecutor, WORK, expect_claim, expect_claim_with, finish,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Commit, Outcome, State, Write};
use tokio::time::Instant;

/// Longest wait for a renewal and the run after it.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_lost_lease_does_not_run() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(LEASE).await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    let worker = engine.worker();
    let (claim, new) = expect_claim(&engine, "a", WORK);
    let id = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    // The answer to the commit is late: the lease runs out, and the operation is claimed again.
    fixture.hook(move |call| match call {
        Call::Renew(who) if *who == worker => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    while executor.observed().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_ne!(engine.worker(), worker);
    assert!(claim.run().is_none(), "its lease is lost");
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, executor.observed().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_commit_is_not_answered_waits_for_the_answer() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(LEASE).await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    let (claim, new) = expect_claim(&engine, "a", WORK);
    let id = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    // Several renewals list the operation while its commit is not answered.
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(executor.observed(), []);
    claim.run().expect("the lease is held").wait().await;
    let row = fixture.done(id).await;
    assert_eq!((row.fence.0, executor.observed().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_requester_went_away_runs_at_once() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor.clone()).await;
    let (claim, new) = expect_claim(&engine, "a", WORK);
    let id = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    let began = Instant::now();
    drop(claim);
    let row = fixture.done(id).await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(row.state, State::Done(Outcome::Succeeded));
    assert_eq!((row.fence.0, row.takeovers), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_requester_went_away_keeps_its_slot_until_it_ends() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(SOON).await;
        finish(&run).await
    });
    let engine = fixture.engine_of(executor, &[(WORK, 1)]).await;
    let permit = engine.permit(&WORK);
    let (claim, new) = expect_claim_with(&engine, "a", WORK, permit);
    let id = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    drop(claim);
    assert!(engine.permit(&WORK).is_none(), "it waits for a renewal");
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(engine.permit(&WORK).is_none(), "it runs");
    fixture.done(id).await;
    while engine.operations_running() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(engine.permit(&WORK).is_some(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_was_cancelled_before_a_renewal_starts_it_is_cancelled() {
    let fixture = EngineFixture::new();
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let seen = is_cancelled.clone();
    let executor = ScriptedExecutor::new(move |run, _| {
        seen.store(run.cancelled().is_cancelled(), Ordering::SeqCst);
        async move { finish(&run).await }
    });
    let engine = fixture.engine(executor).await;
    let (claim, new) = expect_claim(&engine, "a", WORK);
    let id = new.id;
    let start = Commit::new().start(new);
    fixture.store.commit(&start).await.unwrap();
    let cancel = Commit::new().write(Write::Cancel(id));
    fixture.store.commit(&cancel).await.unwrap();
    drop(claim);
    fixture.done(id).await;
    assert!(is_cancelled.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_written_after_it_was_given_up_runs() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor.clone()).await;
    let (claim, new) = expect_claim(&engine, "a", WORK);
    let id = new.id;
    drop(claim);
    tokio::time::sleep(LEASE).await;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    let began = Instant::now();
    fixture.done(id).await;
    assert!(began.elapsed() <= LEASE, "{:?}", began.elapsed());
    assert_eq!(executor.observed().len(), 1);
}

/// Neither the answer to its commit nor what the run does before its hook takes a second, but both together do.
#[tokio::test(start_paused = true)]
async fn the_age_of_a_claim_counts_from_before_its_commit() {
    let fixture = EngineFixture::new();
    let half = Duration::from_millis(600);
    let executor = ScriptedExecutor::new(move |run, _| async move {
        tokio::time::sleep(half).await;
        run.confirm_claim().await?;
        finish(&run).await
    });
    let engine = fixture.engine(executor).await;
    let is_read = Arc::new(AtomicBool::new(false));
    let seen = is_read.clone();
    fixture.hook(move |call| {
        seen.fetch_or(matches!(call, Call::Read("operation")), Ordering::SeqCst);
        Intercept::Pass
    });
    let (claim, new) = expect_claim(&engine, "a", WORK);
    fixture
        .store
        .commit(&Commit::new().start(new))
        .await
        .unwrap();
    tokio::time::sleep(half).await;
    claim.run().expect("the lease is held").wait().await;
    assert!(is_read.load(Ordering::SeqCst));
}
