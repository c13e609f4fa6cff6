//! Queues and limits that change while the engine runs, and the limit of all queues together.

use super::{EngineFixture, ScriptedExecutor, WORK, expect_claim, finish, until};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    Commit, Engine, EngineSettings, OperationId, Queue, QueueSettings, RunResult, State,
};
use tokio::sync::Semaphore;

const OTHER: Queue = Queue::named("other");
const THIRD: Queue = Queue::named("third");
/// Longer than two looks.
const WHILE: Duration = Duration::from_secs(5);

/// An executor whose runs each take one permit of the gate.
fn held(gate: &Arc<Semaphore>) -> Arc<ScriptedExecutor> {
    let gate = Arc::clone(gate);
    ScriptedExecutor::new(move |run, _| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.expect("it is open").forget();
            finish(&run).await
        }
    })
}

struct HeldEngine {
    fixture: EngineFixture,
    engine: Engine,
    gate: Arc<Semaphore>,
}

impl HeldEngine {
    async fn new(queues: &[(Queue, usize)], total_limit: usize) -> Self {
        Self::reserving(None, queues, total_limit).await
    }

    async fn reserving(
        reserved: Option<Queue>,
        queues: &[(Queue, usize)],
        total_limit: usize,
    ) -> Self {
        let fixture = EngineFixture::new();
        let gate = Arc::new(Semaphore::new(0));
        let queues = queues.iter().cloned();
        let queues = queues.map(|(queue, limit)| QueueSettings { queue, limit });
        let settings = EngineSettings {
            queues: queues.collect(),
            total_limit,
            reserved,
            ..EngineSettings::default()
        };
        let engine = fixture.engine_with(held(&gate), settings).await;
        Self {
            fixture,
            engine,
            gate,
        }
    }

    async fn accept(&self, queue: &Queue, number: usize) -> Vec<OperationId> {
        let mut ids = Vec::new();
        for n in 0..number {
            let name = format!("{} {n}", queue.as_str());
            ids.push(self.fixture.accept_in(&name, queue.clone()).await);
        }
        ids
    }

    /// Operations that run after several looks.
    async fn running(&self) -> usize {
        tokio::time::sleep(WHILE).await;
        self.engine.operations_running()
    }

    /// Lets runs end, and counts those that run then.
    async fn running_after_ends(&self, ends: usize) -> usize {
        self.gate.add_permits(ends);
        self.running().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_served_from_the_moment_it_is_set_until_it_is_forgotten() {
    let held = HeldEngine::new(&[(WORK, 8)], 512).await;
    let ids = held.accept(&OTHER, 1).await;
    assert_eq!(held.running().await, 0);
    assert!(held.engine.permit(&OTHER).is_none());
    held.engine.set_queue(&OTHER, 1);
    let soon = Duration::from_millis(5);
    tokio::time::sleep(soon).await;
    assert_eq!(held.engine.operations_running(), 1, "it is looked at now");
    held.engine.forget_queue(&OTHER);
    held.gate.add_permits(1);
    held.fixture.done(ids[0]).await;
    let late = held.accept(&OTHER, 1).await;
    assert_eq!(held.running().await, 0);
    assert!(held.engine.permit(&OTHER).is_none());
    assert_eq!(held.fixture.row(late[0]).await.state, State::Ready);
    let work = held.accept(&WORK, 1).await;
    held.gate.add_permits(1);
    held.fixture.done(work[0]).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_limit_of_zero_nothing_is_claimed_and_runs_go_on() {
    let held = HeldEngine::new(&[(WORK, 2)], 512).await;
    let ids = held.accept(&WORK, 4).await;
    assert_eq!(held.running().await, 2);
    held.engine.set_queue(&WORK, 0);
    assert_eq!(held.running().await, 2);
    assert_eq!(held.running_after_ends(2).await, 0);
    assert!(held.engine.permit(&WORK).is_none());
    held.engine.poll_now();
    assert_eq!(held.running().await, 0);
    held.engine.set_queue(&WORK, 1);
    assert_eq!(held.running().await, 1);
    held.gate.add_permits(2);
    for id in ids {
        assert_eq!(held.fixture.done(id).await.fence.0, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lowered_limit_takes_effect_as_runs_end_and_a_raised_one_at_once() {
    let held = HeldEngine::new(&[(WORK, 4)], 512).await;
    held.accept(&WORK, 20).await;
    assert_eq!(held.running().await, 4);
    held.engine.set_queue(&WORK, 2);
    assert_eq!(held.running().await, 4);
    assert_eq!(held.running_after_ends(1).await, 3);
    assert_eq!(held.running_after_ends(1).await, 2);
    assert_eq!(held.running_after_ends(1).await, 2, "another one starts");
    assert!(held.engine.permit(&WORK).is_none());
    held.engine.set_queue(&WORK, 5);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(held.engine.operations_running(), 5);
}

#[tokio::test(start_paused = true)]
async fn all_queues_together_run_no_more_than_the_total_limit() {
    let queues = [(WORK, 4), (OTHER, 4), (THIRD, 4)];
    let held = HeldEngine::new(&queues, 6).await;
    let mut ids = Vec::new();
    for (queue, _) in &queues {
        ids.extend(held.accept(queue, 10).await);
    }
    assert_eq!(held.running().await, 6);
    for (queue, _) in &queues {
        assert!(held.engine.permit(queue).is_none());
    }
    for _ in 0..5 {
        assert_eq!(held.running_after_ends(3).await, 6);
    }
    // Fifteen have ended, six run and nine wait.
    assert_eq!(held.running_after_ends(9).await, 6);
    assert_eq!(held.running_after_ends(1).await, 5);
    assert!(held.engine.permit(&WORK).is_some());
    held.gate.add_permits(5);
    for id in ids {
        assert_eq!(held.fixture.done(id).await.fence.0, 1, "each ran once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reserved_queue_starts_its_operations_while_others_fill_all_the_rest() {
    let queues = [(WORK, 100), (OTHER, 2)];
    let held = HeldEngine::reserving(Some(OTHER), &queues, 6).await;
    held.accept(&WORK, 50).await;
    assert_eq!(held.running().await, 4);
    let own = held.accept(&OTHER, 3).await;
    assert_eq!(held.running().await, 6);
    for id in &own[..2] {
        assert_eq!(held.fixture.row(*id).await.state, State::Running);
    }
    held.gate.add_permits(200);
    for id in own {
        assert_eq!(held.fixture.done(id).await.fence.0, 1, "it ran once");
    }
}

#[tokio::test(start_paused = true)]
async fn no_queue_takes_the_room_of_all_from_the_others() {
    let held = HeldEngine::new(&[(WORK, 100), (OTHER, 100)], 4).await;
    held.accept(&WORK, 100).await;
    assert_eq!(held.running().await, 4);
    let other = held.accept(&OTHER, 1).await;
    held.running_after_ends(1).await;
    held.running_after_ends(1).await;
    let state = held.fixture.row(other[0]).await.state;
    assert_eq!(state, State::Running, "it starts before 95 others");
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_a_full_queue_is_used_as_soon_as_it_is_free() {
    for total_limit in [512, 1] {
        let fixture = EngineFixture::new();
        let executor = ScriptedExecutor::new(|run, _| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            finish(&run).await
        });
        let settings = EngineSettings {
            total_limit,
            look_every: Duration::from_secs(3600),
            ..EngineSettings::for_queue(WORK, 1)
        };
        let mut ids = Vec::new();
        for n in 0..20 {
            ids.push(fixture.accept(&format!("{n}")).await);
        }
        let engine = fixture.engine_with(executor, settings).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(engine.operations_running(), 0, "all have ended");
        for id in ids {
            assert!(matches!(fixture.row(id).await.state, State::Done(_)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_is_not_used_lets_the_queue_be_looked_at() {
    let fixture = EngineFixture::new();
    let executor = ScriptedExecutor::new(|run, _| async move { finish(&run).await });
    let settings = EngineSettings {
        look_every: Duration::from_secs(3600),
        ..EngineSettings::for_queue(WORK, 1)
    };
    let engine = fixture.engine_with(executor, settings).await;
    let permit = engine.permit(&WORK).expect("a slot");
    let id = fixture.accept("a").await;
    tokio::time::sleep(WHILE).await;
    assert_eq!(fixture.row(id).await.state, State::Ready);
    drop(permit);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(matches!(fixture.row(id).await.state, State::Done(_)));
}

/// Callers that wait must not wait for others: their operations start over the limits, and leave them as they are.
#[tokio::test(start_paused = true)]
async fn an_operation_that_a_caller_waits_for_exceeds_the_total_limit() {
    let held = HeldEngine::new(&[(WORK, 8)], 1).await;
    held.accept(&WORK, 1).await;
    assert_eq!(held.running().await, 1);
    let (claim, new) = expect_claim(&held.engine, "waiting", WORK);
    let commit = Commit::new().start(new);
    held.fixture.store.commit(&commit).await.unwrap();
    claim.run().expect("the lease is held");
    assert_eq!(held.engine.operations_running(), 2);
    assert_eq!(held.running_after_ends(2).await, 0);
    assert!(held.engine.permit(&WORK).is_some());
}

/// The answer to a claim is late: its queue got other limits, and all its slots were taken meanwhile.
#[tokio::test(start_paused = true)]
async fn what_was_claimed_before_a_limit_was_lowered_runs_and_counts() {
    let fixture = EngineFixture::new();
    let gate = Arc::new(Semaphore::new(0));
    let (answer, asked) = (Arc::new(tokio::sync::Notify::new()), fixture.count_claims());
    let engine = fixture.engine_of(held(&gate), &[(WORK, 4)]).await;
    until("it looks", || {
        asked.load(std::sync::atomic::Ordering::SeqCst) > 0
    })
    .await;
    let held_back = Arc::clone(&answer);
    fixture.hook(move |call| match call {
        sutler_journal::conformance::Call::Claim(_) => {
            sutler_journal::conformance::Intercept::Hold(Arc::clone(&held_back))
        }
        _ => sutler_journal::conformance::Intercept::Pass,
    });
    for n in 0..6 {
        fixture.accept(&format!("{n}")).await;
    }
    tokio::time::sleep(WHILE).await;
    engine.set_queue(&WORK, 2);
    fixture.hook(|_| sutler_journal::conformance::Intercept::Pass);
    answer.notify_one();
    tokio::time::sleep(WHILE).await;
    assert_eq!(engine.operations_running(), 4);
    for running in [3, 2, 2, 2, 1, 0] {
        gate.add_permits(1);
        tokio::time::sleep(WHILE).await;
        assert_eq!(engine.operations_running(), running);
    }
}

#[tokio::test(start_paused = true)]
async fn queues_are_set_and_forgotten_all_the_time_and_nothing_is_lost_or_runs_twice() {
    let fixture = EngineFixture::new();
    // The executor asserts that no operation is inside it twice.
    let executor = ScriptedExecutor::new(|run, before| async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        match before {
            0 => Ok(RunResult::Yield(Duration::from_millis(20))),
            _ => finish(&run).await,
        }
    });
    let engine = fixture.engine_of(executor, &[]).await;
    let queues: Vec<Queue> = (0..100).map(|n| Queue::of(format!("{n}"))).collect();
    let mut ids = Vec::new();
    for (n, queue) in queues.iter().cycle().take(500).enumerate() {
        ids.push(fixture.accept_in(&format!("{n}"), queue.clone()).await);
    }
    for round in 0..60 {
        for (n, queue) in queues.iter().enumerate() {
            match (n * 7 + round) % 5 {
                0 => engine.forget_queue(queue),
                limit => engine.set_queue(queue, limit - 1),
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for queue in &queues {
        engine.set_queue(queue, 2);
    }
    for id in ids {
        assert_eq!(fixture.done(id).await.fence.0, 2);
    }
    for queue in &queues {
        let slots = [engine.permit(queue), engine.permit(queue)];
        assert!(
            slots.iter().all(Option::is_some),
            "every slot is free again"
        );
        assert!(engine.permit(queue).is_none());
    }
}
