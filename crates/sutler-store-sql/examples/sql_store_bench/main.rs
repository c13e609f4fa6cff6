//! How fast the store in PostgreSQL is, for comparison with `pgbench` on the same server.
//!
//! `sql_store_bench URL WHAT CALLERS SECONDS REPLICAS` prints calls a second. WHAT: `accept` (a commit of
//! a new document and its operation), `end` (accept, and the commit of its result), `poll`, or `prepare`,
//! which makes what polls ask for. Read `bench/run` beside the sources for how it is used; not here: the
//! baseline (`bench/*.sql`).

use bytes::Bytes;
use secrecy::SecretString;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use sutler_store_sql::{PostgresStore, SqlSettings};
use tokio::task::JoinSet;
use uuid::Uuid;

const KIND: Kind = Kind::new("instance");
const BODY: usize = 400;
const POLLED: u64 = 10_000;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, what, callers, seconds, replicas] = arguments.as_slice() else {
        return Err("sql_store_bench URL accept|end|poll|prepare CALLERS SECONDS REPLICAS".into());
    };
    let (callers, replicas): (usize, usize) = (callers.parse()?, replicas.parse()?);
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let url = SecretString::from(url.clone());
    let settings = SqlSettings {
        connections: callers / replicas.max(1),
        hint_every: Duration::from_secs(3600),
        ..SqlSettings::default()
    };
    let calls = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..replicas {
        let store = Arc::new(PostgresStore::open_with(&url, settings.clone()).await?);
        if what == "prepare" {
            return prepare(&*store).await;
        }
        let worker = WorkerId::fresh();
        store.renew(worker, Duration::from_secs(3600)).await?;
        for caller in 0..callers / replicas {
            let task = Task {
                store: Arc::clone(&store),
                worker,
                calls: Arc::clone(&calls),
                end,
            };
            let what = what.clone();
            tasks.spawn(async move { task.run(&what, caller as u64).await });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let rate = calls.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    writeln!(std::io::stdout(), "{rate:.0}")?;
    Ok(())
}

struct Task {
    store: Arc<PostgresStore>,
    worker: WorkerId,
    calls: Arc<AtomicU64>,
    end: Instant,
}

impl Task {
    async fn run(self, what: &str, caller: u64) -> Result<(), Failed> {
        let mut n = caller;
        while Instant::now() < self.end {
            n = (n * 7919 + 13) % POLLED;
            match what {
                "accept" => drop(accept(&*self.store, self.worker).await?),
                "end" => end(&*self.store, self.worker).await?,
                _ => {
                    let (lane, id) = polled(n)?;
                    let found = self.store.poll(&lane, id).await?;
                    found.ok_or("nothing to poll: run `prepare` first")?;
                }
            }
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn key(id: &str) -> Result<Key, Failed> {
    Ok(Key::new(&Realm::new("broker")?, KIND, &[id])?)
}

fn operation(id: OperationId, lane: Key, start: Start) -> NewOperation {
    NewOperation {
        id,
        lane,
        verb: "provision",
        queue: Queue::named("broker"),
        start,
        detail: Bytes::from_static(&[7; 100]),
        request: Bytes::from_static(&[7; BODY]),
    }
}

async fn accept(store: &dyn Store, worker: WorkerId) -> Result<(Key, OperationId, Commit), Failed> {
    let id = OperationId::fresh();
    let key = key(&Uuid::new_v4().to_string())?;
    let terms = vec![
        Term::new("service", "service-1"),
        Term::new("plan", "plan-1"),
        Term::new("created", id.0.as_bytes().to_vec()),
    ];
    let commit = Commit::new()
        .insert(key.clone(), terms, Bytes::from_static(&[7; BODY]))
        .start(operation(id, key.clone(), Start::Claimed(worker)));
    store.commit(&commit).await?;
    Ok((key, id, commit))
}

async fn end(store: &dyn Store, worker: WorkerId) -> Result<(), Failed> {
    let (key, id, accepted) = accept(store, worker).await?;
    let terms = vec![
        Term::new("service", "service-1"),
        Term::new("plan", "plan-1"),
        Term::new("created", id.0.as_bytes().to_vec()),
    ];
    let body = Bytes::from_static(&[8; BODY]);
    let detail = Some(Bytes::from_static(&[8; 100]));
    let result = Commit::new()
        .replace(key, Version(accepted.id()), terms, body)
        .advance(id, Next::Done(Outcome::Succeeded), detail, None)
        .fenced(id, Fence(1));
    Ok(store.commit(&result).await?)
}

fn polled(n: u64) -> Result<(Key, OperationId), Failed> {
    let id = Uuid::from_u128(u128::from(n) + (1 << 100));
    Ok((key("polled")?, OperationId(id)))
}

async fn prepare(store: &dyn Store) -> Result<(), Failed> {
    for first in (0..POLLED).step_by(100) {
        let mut commit = Commit::new();
        for n in first..first + 100 {
            let (lane, id) = polled(n)?;
            commit = commit.start(operation(id, lane, Start::Waiting));
        }
        store.commit(&commit).await?;
    }
    Ok(())
}
