//! Benchmark: cost of a request among a million documents and among a thousand.
//!
//! `cargo run --profile bench --example store_growth -- [DIRECTORY] [DOCUMENTS…]`
//!
//! Each store is loaded with SQL, bypassing the store itself, with one unfinished operation for every ten
//! documents (at most 100,000); then it is opened, and single callers are timed. Read
//! `store_bench.rs` for throughput.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use bytes::Bytes;
use rusqlite::Connection;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Fence, Key, Kind, List, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start,
    Store, Term, Version, WorkerId,
};
use sutler_store_sqlite::SqliteStore;
use uuid::Uuid;

type BenchError = Box<dyn Error + Send + Sync>;

const INSTANCE: Kind = Kind::new("instance");
const ROUNDS: usize = 1500;

/// Numbers 1 to ?1, as documents of one plan, with keys as random as those of a platform.
const LOAD: &str = "
INSERT INTO word VALUES (1, CAST('sbroker' || x'00' || 'instance' || x'00' || 'plan' || x'00' AS BLOB)),
    (2, CAST('qbroker' AS BLOB)), (3, CAST('vprovision' AS BLOB));
CREATE TEMP TABLE many AS WITH RECURSIVE n(no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n LIMIT ?1)
    SELECT no, lower(hex(randomblob(16))) AS id FROM n;
INSERT INTO doc SELECT no, randomblob(16),
    CAST('broker' || x'00' || 'instance' || x'00' || id AS BLOB), CAST(x'0105' || 'small' AS BLOB),
    zeroblob(600) FROM many;
INSERT INTO doc_key SELECT key, no FROM doc ORDER BY key;
INSERT INTO term SELECT 1, CAST('small' AS BLOB), CAST(id AS BLOB), no FROM many ORDER BY id;
INSERT INTO op SELECT no, randomblob(16), no, 2, 1, 2, 3, 0, 1, 1, 0, 0, 1, 0, NULL, randomblob(16),
    doc.key, zeroblob(60), zeroblob(300), x'' FROM doc WHERE no % 10 = 0 AND no <= 1000000;
UPDATE tally SET filed = ?1, accepted = (SELECT count(*) FROM op);
";

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let mut sizes: Vec<u64> = arguments
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000, 1_000_000];
    }
    for documents in sizes {
        let place = tempfile::tempdir_in(&directory)?;
        let path = place.path().join("store.db");
        load(&path, documents).await?;
        let began = Instant::now();
        let store = SqliteStore::open(&path).await?;
        let opened = began.elapsed();
        let (commit, get, list) = time(&store).await?;
        println!(
            "{documents:>9} documents: open {:.1} ms | commit p50 {commit:.0} us | get p50 {get:.1} us \
             | page of 50 p50 {list:.0} us",
            opened.as_secs_f64() * 1e3
        );
    }
    Ok(())
}

async fn load(path: &Path, documents: u64) -> Result<(), BenchError> {
    SqliteStore::open(path).await?.close().await;
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN")?;
    for statement in LOAD.replace("?1", &documents.to_string()).split(";\n") {
        db.execute_batch(statement)?;
    }
    db.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// Medians of a commit, a read and a page, in microseconds.
async fn time(store: &SqliteStore) -> Result<(f64, f64, f64), BenchError> {
    let realm = Realm::new("broker")?;
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(3600)).await?;
    let (mut commits, mut reads, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    let list = List::term(&realm, INSTANCE, "plan", b"small");
    for round in 0..ROUNDS {
        let key = Key::new(&realm, INSTANCE, &[&Uuid::new_v4().to_string()])?;
        let (accept, result) = request(&key, worker);
        for commit in [accept, result] {
            let began = Instant::now();
            store.commit(&commit).await?;
            commits.push(began.elapsed());
        }
        let began = Instant::now();
        store.get(&key).await?.ok_or("it was just written")?;
        reads.push(began.elapsed());
        if round % 10 == 0 {
            let began = Instant::now();
            store.list(&list, None, 50).await?;
            pages.push(began.elapsed());
        }
    }
    Ok((median(commits), median(reads), median(pages)))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn request(key: &Key, worker: WorkerId) -> (Commit, Commit) {
    let terms = || vec![Term::new("plan", "small")];
    let id = OperationId::fresh();
    let accept = Commit::new()
        .insert(key.clone(), terms(), Bytes::from(vec![7; 600]))
        .start(NewOperation {
            id,
            lane: key.clone(),
            verb: "provision",
            queue: Queue::named("broker"),
            start: Start::Claimed(worker),
            detail: Bytes::from(vec![7; 60]),
            request: Bytes::from(vec![7; 300]),
        });
    let read = Version(accept.id());
    let result = Commit::new()
        .replace(key.clone(), read, terms(), Bytes::from(vec![8; 600]))
        .fenced(id, Fence(1))
        .advance(id, Next::Done(Outcome::Succeeded), None, None);
    (accept, result)
}
