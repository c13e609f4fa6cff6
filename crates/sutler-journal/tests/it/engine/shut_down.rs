//! Shut-down: runs are finished or released, and it always completes.

use super::{EngineFixture, LEASE, ScriptedExecutor, WORK, finish, hanging_once};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Outcome, State, WorkerId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

const GRACE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn a_shut_down_waits_for_runs_and_starts_no_more() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = ScriptedExecutor::new(|run, _| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        finish(&run).await
    });
    let engine = fixture.engine(executor.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    let stop = engine.shut_down(GRACE);
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.accept("late").await
    };
    let ((), late) = tokio::join!(stop, late);
    assert!(began.elapsed() < Duration::from_secs(6));
    assert_eq!(fixture.row(id).await.state, State::Done(Outcome::Succeeded));
    assert_eq!(fixture.row(late).await.state, State::Ready);
    assert!(engine.is_stopping());
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_run_is_released_without_a_takeover() {
    let fixture = EngineFixture::new();
    let id = fixture.accept("a").await;
    let executor = hanging_once();
    let engine = fixture.engine(executor.clone()).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.shut_down(GRACE).await;
    let row = fixture.row(id).await;
    assert_eq!(
        (row.state, row.takeovers, row.attempt),
        (State::Ready, 0, 1)
    );
    fixture.engine(executor.clone()).await;
    let began = Instant::now();
    let row = fixture.done(id).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "no lease to wait for"
    );
    assert_eq!((row.fence.0, row.takeovers, row.attempt), (2, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failing_release_does_not_block_the_shut_down() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor).await;
    fixture.hook(|call| match call {
        Call::Release(_) => Intercept::Refuse,
        _ => Intercept::Pass,
    });
    timeout(LEASE, engine.shut_down(GRACE))
        .await
        .expect("it ends");
}

/// The engine shuts down while it waits for a new lease: the lease that it then gets must not keep
/// it alive, and must not be left behind.
#[tokio::test(start_paused = true)]
async fn a_shut_down_while_a_lease_is_acquired_completes() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor).await;
    let (worker, gate) = (engine.worker(), Arc::new(Notify::new()));
    let held = gate.clone();
    fixture.hook(move |call| match call {
        Call::Renew(who) if *who == worker => Intercept::Refuse,
        Call::Renew(_) => Intercept::Hold(held.clone()),
        _ => Intercept::Pass,
    });
    tokio::time::sleep(2 * LEASE).await;
    let stop = engine.shut_down(GRACE);
    let let_go = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.notify_one();
    };
    let both = async { tokio::join!(stop, let_go) };
    timeout(4 * LEASE, both).await.expect("it ends");
    // No lease is left: another worker can claim at once.
    let id = fixture.accept("a").await;
    fixture.hook(|_| Intercept::Pass);
    let next = WorkerId::fresh();
    fixture.store.renew(next, LEASE).await.unwrap();
    let claimed = fixture.store.claim(next, &[(WORK, 1)]).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].row.id, id);
}

/// A run that blocks its thread cannot be dropped before it returns; until then another worker must not claim it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shut_down_releases_its_lease_after_the_last_run_is_dropped() {
    let fixture = EngineFixture::new();
    fixture.accept("a").await;
    let (entered, mut is_inside) = tokio::sync::mpsc::unbounded_channel();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let executor = ScriptedExecutor::new(move |_, _| {
        let (entered, blocked) = (entered.clone(), Arc::clone(&blocked));
        async move {
            entered.send(()).expect("the test waits");
            let _ = blocked.lock().unwrap().recv();
            std::future::pending().await
        }
    });
    let (released, mut release) = tokio::sync::mpsc::unbounded_channel();
    fixture.hook(move |call| {
        if matches!(call, Call::Release(_)) {
            let _ = released.send(());
        }
        Intercept::Pass
    });
    let engine = fixture.engine(executor.clone()).await;
    is_inside.recv().await.expect("a run");
    let stopping = tokio::spawn(async move { engine.shut_down(Duration::ZERO).await });
    let early = timeout(Duration::from_millis(300), release.recv()).await;
    early.expect_err("the run is still inside");
    unblock.send(()).expect("the run waits");
    stopping.await.expect("no panic");
    release.recv().await.expect("the lease is released");
}

#[tokio::test(start_paused = true)]
async fn detached_work_goes_on_without_its_caller_and_a_shut_down_waits_for_it() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor).await;
    let done = Arc::new(Notify::new());
    let signal = done.clone();
    let work = engine.detached(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        signal.notify_one();
    });
    let caller = timeout(Duration::from_secs(1), work).await;
    assert!(caller.is_err(), "the caller goes away");
    let began = Instant::now();
    engine.shut_down(GRACE).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    timeout(Duration::ZERO, done.notified())
        .await
        .expect("the work was finished before the end of the shut-down");
}

#[tokio::test(start_paused = true)]
async fn detached_work_is_dropped_after_the_grace_of_a_shut_down() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine(executor).await;
    let began = Instant::now();
    let (lasting, ()) = tokio::join!(
        engine.detached(std::future::pending::<()>()),
        engine.shut_down(GRACE)
    );
    assert_eq!(lasting, None);
    assert!(began.elapsed() < GRACE + Duration::from_secs(1));
    let late = engine.detached(std::future::pending::<()>()).await;
    assert_eq!(late, None, "none begins after it");
}
