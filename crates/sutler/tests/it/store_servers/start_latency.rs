//! Start latency of an operation that any worker may claim: on the replica that accepted it, and on another
//! idle one.

use super::ServerKind;
use super::fixture::secret;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Due, Engine, EngineSettings, Executor, Key, Kind, Lost, NewOperation, Next,
    OperationId, Outcome, Queue, Realm, Run, RunResult, Start, Store,
};
use sutler_servers::print_line;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

const QUEUE: Queue = Queue::named("work");
const TIMES: usize = 20;
/// Time limit of one start before the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Limit for the replica that accepted it, with a margin for a busy machine.
const HERE: Duration = Duration::from_millis(5);
const ROOM: u32 = 5;

/// Sends the time of its call, and ends the operation.
struct NotifyOnExecute(UnboundedSender<Instant>);

#[async_trait]
impl Executor for NotifyOnExecute {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let _ = self.0.send(Instant::now());
        let done = Commit::new().advance(run.id(), Next::Done(Outcome::Succeeded), None, None);
        run.commit(done).await?.map_err(|_| Lost)?;
        Ok(RunResult::Finished)
    }

    async fn give_up(&self, _run: Arc<Run>) -> Result<RunResult, Lost> {
        Err(Lost)
    }
}

async fn engine(store: &Arc<dyn Store>) -> (Engine, UnboundedReceiver<Instant>) {
    let (sender, starts) = unbounded_channel();
    let settings = EngineSettings {
        // The timer must not start it.
        look_every: Duration::from_secs(600),
        ..EngineSettings::for_queue(QUEUE, 4)
    };
    let started = Engine::start(
        Arc::clone(store),
        Arc::new(NotifyOnExecute(sender)),
        settings,
    )
    .await;
    (started.expect("a lease"), starts)
}

fn ready(n: usize, lane: &str) -> Commit {
    let realm = Realm::new("test").expect("a realm");
    let id = format!("{lane}-{n}");
    Commit::new().start(NewOperation {
        id: OperationId::fresh(),
        lane: Key::new(&realm, Kind::new("thing"), &[&id]).expect("a key"),
        verb: "provision",
        queue: QUEUE,
        start: Start::Ready(Due::Now),
        detail: b"detail".as_slice().into(),
        request: b"request".as_slice().into(),
    })
}

/// Time from the response to the commit until the executor is called.
async fn latencies(
    store: &Arc<dyn Store>,
    starts: &mut UnboundedReceiver<Instant>,
    lane: &str,
) -> Vec<Duration> {
    let mut all = Vec::new();
    for n in 0..TIMES {
        store.commit(&ready(n, lane)).await.expect("a commit");
        let accepted = Instant::now();
        let started = timeout(TIMEOUT, starts.recv()).await.expect("it starts");
        let started = started.expect("the engine lives");
        all.push(started.saturating_duration_since(accepted));
    }
    all.sort();
    all
}

async fn measure(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let server_url = server.fresh_database();
    let accepting = (kind.open)(secret(&server_url)).await;
    let idle = (kind.open)(secret(&server_url)).await;
    let (engine_there, mut there) = engine(&idle).await;
    let elsewhere = latencies(&accepting, &mut there, "elsewhere").await;
    engine_there.shut_down(TIMEOUT).await;
    let (engine_here, mut here) = engine(&accepting).await;
    let here = latencies(&accepting, &mut here, "here").await;
    engine_here.shut_down(TIMEOUT).await;
    let bound = Duration::from_millis(kind.elsewhere_ms);
    for (what, all, most) in [("here", here, HERE * ROOM), ("elsewhere", elsewhere, bound)] {
        let (median, late) = (all[TIMES / 2], all[TIMES - 2]);
        print_line(&format!(
            "{}: starts {what}: median {median:?}, p95 {late:?}",
            server.name()
        ));
        assert!(median <= most, "{what}: {all:?}");
    }
}

pub(super) fn operations_start_soon_on_this_and_on_other_replicas(kind: &ServerKind) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(kind));
}
