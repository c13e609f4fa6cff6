//! Queues and permits: limits of concurrent runs, and engines that share work without overlap.

use super::{EngineFixture, ScriptedExecutor, WORK, finish};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Commit, OperationId, Queue, State};
use tokio::sync::Notify;

const HANGS: Queue = Queue::named("hangs");

/// An executor whose runs in the queue `hangs` wait for the gate.
fn held(gate: &Arc<Notify>) -> Arc<ScriptedExecutor> {
    let gate = gate.clone();
    ScriptedExecutor::new(move |run, _| {
        let gate = gate.clone();
        async move {
            if run.operation().row.queue == HANGS {
                gate.notified().await;
            }
            finish(&run).await
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_hanging_queue_does_not_stop_another_and_takes_no_more_than_its_limit() {
    let fixture = EngineFixture::new();
    let mut stuck = Vec::new();
    for name in ["a", "b", "c"] {
        stuck.push(fixture.accept_in(name, HANGS).await);
    }
    let gate = Arc::new(Notify::new());
    let executor = held(&gate);
    let engine = fixture
        .engine_of(executor.clone(), &[(HANGS, 2), (WORK, 1)])
        .await;
    for n in 0..20 {
        let id = fixture.accept(&format!("free {n}")).await;
        fixture.done(id).await;
    }
    assert_eq!(
        engine.operations_running(),
        2,
        "the third waits for a place"
    );
    assert_eq!(fixture.row(stuck[2]).await.state, State::Ready);
    gate.notify_one();
    while !executor
        .observed()
        .iter()
        .any(|observed| observed.id == stuck[2])
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..2 {
        gate.notify_one();
        tokio::task::yield_now().await;
    }
    for id in stuck {
        fixture.done(id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_a_slot_of_its_queue_and_is_returned() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let engine = fixture.engine_of(executor, &[(WORK, 1)]).await;
    let permit = engine.permit(&WORK);
    assert!(permit.is_some());
    assert!(engine.permit(&WORK).is_none(), "there is one place");
    assert!(
        engine.permit(&HANGS).is_none(),
        "it does not serve that queue"
    );
    drop(permit);
    assert!(engine.permit(&WORK).is_some());
    engine.shut_down(Duration::ZERO).await;
    assert!(engine.permit(&WORK).is_none(), "nothing starts any more");
}

#[tokio::test(start_paused = true)]
async fn an_awaited_operation_runs_at_once_though_its_queue_is_full() {
    let fixture = EngineFixture::new();
    let gate = Arc::new(Notify::new());
    let engine = fixture.engine_of(held(&gate), &[(HANGS, 1)]).await;
    let first = fixture.accept_in("first", HANGS).await;
    while engine.operations_running() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(engine.permit(&HANGS).is_none());
    let (claim, new) = super::expect_claim(&engine, "second", HANGS);
    let second = new.id;
    let commit = Commit::new().start(new);
    fixture.store.commit(&commit).await.unwrap();
    let finished = claim.run().expect("the lease is held");
    assert_eq!(engine.operations_running(), 2);
    gate.notify_waiters();
    tokio::task::yield_now().await;
    for _ in 0..2 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    finished.wait().await;
    assert_eq!(fixture.row(second).await.fence.0, 1);
    fixture.done(first).await;
}

#[tokio::test(start_paused = true)]
async fn two_engines_share_the_work_and_never_run_one_operation_twice_at_once() {
    let fixture = EngineFixture::new();
    let mut all: Vec<OperationId> = Vec::new();
    for n in 0..60 {
        all.push(fixture.accept(&format!("{n}")).await);
    }
    // The executor asserts that no operation is inside it twice.
    let play = |run: Arc<sutler_journal::Run>, before: usize| async move {
        let pause = u64::from(run.id().0.as_bytes()[15]) % 50;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        match before {
            0..2 => Ok(sutler_journal::RunResult::Yield(Duration::from_millis(
                pause,
            ))),
            _ => finish(&run).await,
        }
    };
    let both = ScriptedExecutor::new(play);
    let one = fixture.engine_of(both.clone(), &[(WORK, 3)]).await;
    let other = fixture.engine_of(both.clone(), &[(WORK, 3)]).await;
    let mut most = (0, 0);
    for id in &all {
        while !matches!(fixture.row(*id).await.state, State::Done(_)) {
            most = (
                most.0.max(one.operations_running()),
                most.1.max(other.operations_running()),
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(
        (2..=4).contains(&most.0) && (2..=4).contains(&most.1),
        "{most:?}"
    );
    assert_eq!(both.observed().len(), 3 * all.len(), "each claim ran once");
    for id in all {
        let fences: Vec<u64> = both
            .observed()
            .iter()
            .filter(|s| s.id == id)
            .map(|s| s.fence)
            .collect();
        assert_eq!(fences, [1, 2, 3]);
    }
}
