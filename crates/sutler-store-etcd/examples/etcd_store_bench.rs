//! Benchmark of the etcd store, with bare requests to the same gateway as a baseline.
//!
//! `etcd_store_bench HOST:PORT WHAT CALLERS SECONDS` prints calls a second. WHAT: `accept` (a commit of a
//! new document and its operation), `end` (accept, and the commit of its result), `poll`; and the
//! baselines `put` (one transaction that puts as many bytes under two keys, and checks nothing) and `range`
//! (one key). See `bench/run` in this crate for its use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use sutler_store_etcd::EtcdStore;
use tokio::task::JoinSet;
use uuid::Uuid;

const BODY: usize = 400;
type BenchError = Box<dyn Error + Send + Sync>;

/// Data shared by all callers.
struct BenchContext {
    store: EtcdStore,
    worker: WorkerId,
    /// For the baselines.
    gateway: String,
    client: reqwest::Client,
    /// The polled operation and its lane.
    polled: (Key, OperationId),
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, what, callers, seconds] = arguments.as_slice() else {
        return Err("etcd_store_bench HOST:PORT accept|end|poll|put|range CALLERS SECONDS".into());
    };
    let context = Arc::new(BenchContext::at(server).await?);
    let (callers, seconds): (usize, u64) = (callers.parse()?, seconds.parse()?);
    let calls = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (context, calls, what) = (Arc::clone(&context), Arc::clone(&calls), what.clone());
        tasks.spawn(async move {
            while Instant::now() < end {
                context.call(&what).await?;
                calls.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), BenchError>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let rate = calls.load(Ordering::Relaxed) / seconds;
    writeln!(std::io::stdout(), "{rate}")?;
    Ok(())
}

impl BenchContext {
    async fn at(server: &str) -> Result<Self, BenchError> {
        let store = EtcdStore::open(&format!("etcd://{server}/bench").into()).await?;
        let worker = WorkerId::fresh();
        store.renew(worker, Duration::from_secs(600)).await?;
        let (key, id, _) = accept(&store, worker).await?;
        let context = Self {
            store,
            worker,
            gateway: format!("http://{server}/v3/kv"),
            client: reqwest::Client::builder().build()?,
            polled: (key, id),
        };
        let put = json!({ "key": STANDARD.encode("bare"), "value": STANDARD.encode([7; BODY]) });
        context.ask("put", &put).await?;
        Ok(context)
    }

    async fn call(&self, what: &str) -> Result<(), BenchError> {
        match what {
            "accept" => drop(accept(&self.store, self.worker).await?),
            "end" => end(&self.store, self.worker).await?,
            "poll" => {
                let found = self.store.poll(&self.polled.0, self.polled.1).await?;
                found.ok_or("it is gone")?;
            }
            "put" => {
                let id = Uuid::new_v4();
                let put = |sort: &str, bytes: usize| {
                    let key = STANDARD.encode(format!("bare/{sort}/{id}"));
                    json!({ "requestPut": { "key": key, "value": STANDARD.encode(vec![7; bytes]) } })
                };
                let puts = [put("document", BODY), put("operation", BODY + 200)];
                self.ask("txn", &json!({ "success": puts })).await?;
            }
            "range" => {
                let range = json!({ "key": STANDARD.encode("bare") });
                self.ask("range", &range).await?;
            }
            other => return Err(format!("{other} is none of what is measured").into()),
        }
        Ok(())
    }

    async fn ask(&self, what: &str, body: &Value) -> Result<(), BenchError> {
        let request = self.client.post(format!("{}/{what}", self.gateway));
        let answer = request.body(body.to_string()).send().await?;
        answer.error_for_status()?.bytes().await?;
        Ok(())
    }
}

fn terms(id: OperationId) -> Vec<Term> {
    vec![
        Term::new("service", "service-1"),
        Term::new("plan", "plan-1"),
        Term::new("created", id.0.as_bytes().to_vec()),
    ]
}

async fn accept(
    store: &EtcdStore,
    worker: WorkerId,
) -> Result<(Key, OperationId, Version), BenchError> {
    let id = OperationId::fresh();
    let name = Uuid::new_v4().to_string();
    let key = Key::new(&Realm::new("broker")?, Kind::new("instance"), &[&name])?;
    let commit = Commit::new()
        .insert(key.clone(), terms(id), Bytes::from_static(&[7; BODY]))
        .start(NewOperation {
            id,
            lane: key.clone(),
            verb: "provision",
            queue: Queue::named("broker"),
            start: Start::Claimed(worker),
            detail: Bytes::from_static(&[7; 100]),
            request: Bytes::from_static(&[7; BODY]),
        });
    store.commit(&commit).await?;
    Ok((key, id, Version(commit.id())))
}

async fn end(store: &EtcdStore, worker: WorkerId) -> Result<(), BenchError> {
    let (key, id, version) = accept(store, worker).await?;
    let detail = Some(Bytes::from_static(&[8; 100]));
    let result = Commit::new()
        .replace(key, version, terms(id), Bytes::from_static(&[8; BODY]))
        .advance(id, Next::Done(Outcome::Succeeded), detail, None)
        .fenced(id, Fence(1));
    Ok(store.commit(&result).await?)
}
