//! Benchmark of the MongoDB store, with bare commands to the same server as a baseline.
//!
//! `cargo run --profile bench -p sutler-store-mongodb --example mongodb_store_bench [ROUNDS [SECONDS [CALLERS]]]`
//! starts a replica set of one member with its journal on, measures store and baselines in turns, and prints calls a
//! second and ratios of medians. The baselines are one `bulkWrite` in a transaction that inserts as many bytes into two
//! collections and checks nothing, and a document by its id.

use bytes::Bytes;
use mongodb::bson::{Binary, Document as Bsons, doc, spec::BinarySubtype};
use mongodb::options::{ReadConcern, WriteConcern};
use mongodb::{Client, Collection};
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use sutler_servers::{Demands, mongodb as server};
use sutler_store_mongodb::MongoStore;
use tokio::task::JoinSet;
use uuid::Uuid;

const BODY: usize = 400;
/// Bytes of an operation beyond those of a document.
const ROW: usize = 200;
type BenchError = Box<dyn Error + Send + Sync>;

/// A measured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    /// A commit of a new document and its operation.
    Accept,
    /// Accept, and the commit of its result.
    AcceptAndEnd,
    /// A poll of one operation.
    Poll,
    /// Baseline of commits.
    BareInsert,
    /// Baseline of polls.
    BareFind,
}

const ALL: [Measured; 5] = [
    Measured::BareInsert,
    Measured::Accept,
    Measured::AcceptAndEnd,
    Measured::BareFind,
    Measured::Poll,
];

/// Data shared by all callers.
struct BenchContext {
    store: MongoStore,
    worker: WorkerId,
    /// For the baselines.
    client: Client,
    documents: Collection<Bsons>,
    operations: Collection<Bsons>,
    /// The polled operation and its lane.
    polled: (Key, OperationId),
}

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, usual: u64| arguments.get(n).map_or(Ok(usual), |it| it.parse());
    let (rounds, seconds, callers) = (number(0, 5)?, number(1, 5)?, number(2, 15)?);
    let started = tokio::task::spawn_blocking(|| server::own(on_disk())).await?;
    let server = started.ok_or("put mongod on the PATH")?;
    let url = server.admin_url().at("bench").url();
    let context = Arc::new(BenchContext::at(&url).await?);
    let mut rates = vec![Vec::new(); ALL.len()];
    for _ in 0..rounds {
        for (measured, rates) in ALL.into_iter().zip(&mut rates) {
            rates.push(rate(&context, measured, callers, seconds).await?);
        }
    }
    let median = |measured: Measured| {
        let at = ALL.iter().position(|it| *it == measured);
        let mut rates = at.map_or_else(Vec::new, |at| rates[at].clone());
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    };
    let lines = [
        (
            "accept / bare insert",
            Measured::Accept,
            Measured::BareInsert,
        ),
        (
            "accept and result / the same",
            Measured::AcceptAndEnd,
            Measured::BareInsert,
        ),
        ("poll / bare find", Measured::Poll, Measured::BareFind),
    ];
    for (name, store, bare) in lines {
        let (store, bare) = (median(store), median(bare));
        #[expect(clippy::cast_precision_loss, reason = "rates are small")]
        let ratio = store as f64 / bare as f64;
        writeln!(
            std::io::stdout(),
            "{name:<30} {store:>8} / {bare:>8} = {ratio:.2}"
        )?;
    }
    Ok(())
}

fn on_disk() -> Demands {
    Demands {
        on_disk: true,
        ..Demands::default()
    }
}

/// Calls a second.
async fn rate(
    context: &Arc<BenchContext>,
    measured: Measured,
    callers: u64,
    seconds: u64,
) -> Result<u64, BenchError> {
    let calls = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (context, calls) = (Arc::clone(context), Arc::clone(&calls));
        tasks.spawn(async move {
            while Instant::now() < end {
                context.call(measured).await?;
                calls.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), BenchError>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(calls.load(Ordering::Relaxed) / seconds)
}

impl BenchContext {
    async fn at(url: &str) -> Result<Self, BenchError> {
        let store = MongoStore::open(&url.to_owned().into()).await?;
        let worker = WorkerId::fresh();
        store.renew(worker, Duration::from_secs(3600)).await?;
        let (key, id, _) = accept(&store, worker).await?;
        let client = Client::with_uri_str(url).await?;
        let database = client.database("bare");
        database.create_collection("documents").await?;
        database.create_collection("operations").await?;
        let documents = database.collection("documents");
        documents.insert_one(bare("polled", BODY)).await?;
        Ok(Self {
            store,
            worker,
            operations: database.collection("operations"),
            documents,
            client,
            polled: (key, id),
        })
    }

    async fn call(&self, measured: Measured) -> Result<(), BenchError> {
        match measured {
            Measured::Accept => drop(accept(&self.store, self.worker).await?),
            Measured::AcceptAndEnd => end(&self.store, self.worker).await?,
            Measured::Poll => {
                let found = self.store.poll(&self.polled.0, self.polled.1).await?;
                found.ok_or("it is gone")?;
            }
            Measured::BareInsert => self.bare_insert().await?,
            Measured::BareFind => {
                let found = self.documents.find_one(doc! { "_id": "polled" }).await?;
                found.ok_or("it is gone")?;
            }
        }
        Ok(())
    }

    async fn bare_insert(&self) -> Result<(), BenchError> {
        let id = Uuid::new_v4().to_string();
        let mut session = self.client.start_session().await?;
        session
            .start_transaction()
            .read_concern(ReadConcern::snapshot())
            .write_concern(WriteConcern::majority())
            .await?;
        let inserts = [
            self.documents.insert_one_model(bare(&id, BODY))?,
            self.operations.insert_one_model(bare(&id, BODY + ROW))?,
        ];
        self.client
            .bulk_write(inserts)
            .session(&mut session)
            .await?;
        Ok(session.commit_transaction().await?)
    }
}

fn bare(id: &str, bytes: usize) -> Bsons {
    let subtype = BinarySubtype::Generic;
    let bytes = vec![7; bytes];
    doc! { "_id": id, "body": Binary { subtype, bytes } }
}

fn terms(id: OperationId) -> Vec<Term> {
    vec![
        Term::new("service", "service-1"),
        Term::new("plan", "plan-1"),
        Term::new("created", id.0.as_bytes().to_vec()),
    ]
}

async fn accept(
    store: &MongoStore,
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

async fn end(store: &MongoStore, worker: WorkerId) -> Result<(), BenchError> {
    let (key, id, version) = accept(store, worker).await?;
    let detail = Some(Bytes::from_static(&[8; 100]));
    let result = Commit::new()
        .replace(key, version, terms(id), Bytes::from_static(&[8; BODY]))
        .advance(id, Next::Done(Outcome::Succeeded), detail, None)
        .fenced(id, Fence(1));
    Ok(store.commit(&result).await?)
}
