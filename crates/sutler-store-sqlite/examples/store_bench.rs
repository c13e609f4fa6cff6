//! Benchmark of the store against a bare group-commit loop over the same database library.
//!
//! `cargo run --profile bench --example store_bench -- [DIRECTORY] [SECONDS] [PAIRS] [CALLERS]`
//!
//! The bare loop writes two rows per commit (a 400-byte upsert, a 150-byte insert) and nothing
//! else. The store gets the commits of a broker: an accepted request, then its result. Both run in turn,
//! so that other load affects both; the medians are compared. See `store_growth.rs` for the
//! cost among a million documents.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use bytes::Bytes;
use rusqlite::Connection;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use sutler_store_sqlite::SqliteStore;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

type BenchError = Box<dyn Error + Send + Sync>;

const INSTANCE: Kind = Kind::new("instance");

/// Commits per second, their latencies, and the CPU time of the writer's thread per commit: the last
/// is comparable on a machine with other load.
struct Measurement {
    rate: f64,
    count: usize,
    writer_us: f64,
    p50_us: f64,
    p99_us: f64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), BenchError> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let pairs: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let callers: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    refuse_memory(&directory)?;
    let mut ratios = Vec::new();
    for pair in 1..=pairs {
        let place = tempfile::tempdir_in(&directory)?;
        let bare = run_bare(place.path(), callers, seconds).await?;
        let store = run_store(place.path(), callers, seconds).await?;
        let ratio = store.rate / bare.rate;
        println!(
            "{pair}: bare {bare} | store {store} | ratio {ratio:.2}, of the writers' time {:.2}",
            bare.writer_us / store.writer_us
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("{callers} callers, median ratio {:.2}", ratios[pairs / 2]);
    Ok(())
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, p50, p99, cpu) = (self.rate, self.p50_us, self.p99_us, self.writer_us);
        write!(
            f,
            "{rate:>7.0}/s p50 {p50:>5.0} us p99 {p99:>6.0} us cpu {cpu:>4.1} us"
        )
    }
}

/// CPU time of threads of this name so far, in microseconds.
fn spent(name: &str) -> Result<f64, BenchError> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == name {
            let spent = std::fs::read_to_string(task.join("schedstat"))?;
            let first = spent.split(' ').next().unwrap_or("0");
            nanoseconds += first.parse::<f64>()?;
        }
    }
    Ok(nanoseconds / 1000.0)
}

/// Refuses a file system in memory, where a sync costs nothing.
fn refuse_memory(directory: &Path) -> Result<(), BenchError> {
    let real = directory.canonicalize()?;
    let mounts = std::fs::read_to_string("/proc/mounts")?;
    let on = mounts
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(' ').skip(1);
            Some((PathBuf::from(parts.next()?), parts.next()?))
        })
        .filter(|(mount, _)| real.starts_with(mount))
        .max_by_key(|(mount, _)| mount.as_os_str().len());
    match on {
        Some((_, kind @ ("tmpfs" | "ramfs"))) => Err(format!("{kind} is no disk").into()),
        _ => Ok(()),
    }
}

async fn measure<F>(callers: usize, seconds: f64, start: impl Fn(usize) -> F) -> Measurement
where
    F: Future<Output = Vec<u64>> + Send + 'static,
{
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers).map(|n| tokio::spawn(start(n))).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a caller"));
    }
    let took = began.elapsed().as_secs_f64().max(seconds);
    all.sort_unstable();
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize] as f64 / 1000.0;
    Measurement {
        rate: all.len() as f64 / took,
        count: all.len(),
        writer_us: 0.0,
        p50_us: at(0.5),
        p99_us: at(0.99),
    }
}

type BareJob = (i64, oneshot::Sender<()>);

async fn run_bare(place: &Path, callers: usize, seconds: f64) -> Result<Measurement, BenchError> {
    let db = Connection::open(place.join("bare.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE instance (id TEXT PRIMARY KEY, body BLOB NOT NULL);
         CREATE TABLE event (no INTEGER PRIMARY KEY, body BLOB NOT NULL);",
    )?;
    let (send, jobs) = mpsc::channel::<BareJob>(4096);
    let name = "bare-writer".to_owned();
    let writer = std::thread::Builder::new().name(name);
    let writer = writer.spawn(move || bare_writer(&db, jobs))?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut measured = measure(callers, seconds, |caller| {
        let send = send.clone();
        async move {
            let mut took = Vec::new();
            let mut number = caller as i64;
            while Instant::now() < until {
                let began = Instant::now();
                let (answer, answered) = oneshot::channel();
                number = (number * 48_271 + 11) % 10_007;
                send.send((number, answer)).await.expect("the bare writer");
                answered.await.expect("the bare writer");
                took.push(began.elapsed().as_nanos() as u64);
            }
            took
        }
    })
    .await;
    measured.writer_us = spent("bare-writer")? / measured.count as f64;
    drop(send);
    writer.join().expect("the bare writer")?;
    Ok(measured)
}

fn bare_writer(db: &Connection, mut jobs: mpsc::Receiver<BareJob>) -> rusqlite::Result<()> {
    let mut upsert = db.prepare(
        "INSERT INTO instance VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    )?;
    let mut insert = db.prepare("INSERT INTO event (body) VALUES (?1)")?;
    let mut begin = db.prepare("BEGIN IMMEDIATE")?;
    let mut commit = db.prepare("COMMIT")?;
    let mut group = Vec::new();
    let (body, event) = ([7u8; 400], [7u8; 150]);
    while jobs.blocking_recv_many(&mut group, 1024) > 0 {
        begin.execute([])?;
        for (number, _) in &group {
            let id = format!("3f0a5b1e-0000-4000-8000-{number:012}");
            upsert.execute((id, &body[..]))?;
            insert.execute([&event[..]])?;
        }
        commit.execute([])?;
        for (_, answer) in group.drain(..) {
            let _ = answer.send(());
        }
    }
    Ok(())
}

async fn run_store(place: &Path, callers: usize, seconds: f64) -> Result<Measurement, BenchError> {
    let store = Arc::new(SqliteStore::open(place.join("store.db")).await?);
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(3600)).await?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut measured = measure(callers, seconds, |_| {
        let store = Arc::clone(&store);
        async move {
            let mut took = Vec::new();
            while Instant::now() < until {
                let (accept, result) = request(worker);
                for commit in [accept, result] {
                    let began = Instant::now();
                    store.commit(&commit).await.expect("a commit");
                    took.push(began.elapsed().as_nanos() as u64);
                }
            }
            took
        }
    })
    .await;
    measured.writer_us = spent("sutler-sqlite-w")? / measured.count as f64;
    let stats = store.stats().await?;
    assert_eq!(
        stats.accepted, stats.terminal,
        "all that was accepted ended"
    );
    Ok(measured)
}

/// The commits of a provision: one when it is accepted, one when it has ended.
fn request(worker: WorkerId) -> (Commit, Commit) {
    let realm = Realm::new("broker").expect("a realm");
    let instance = Uuid::new_v4().to_string();
    let key = Key::new(&realm, INSTANCE, &[&instance]).expect("a key");
    let terms = |lifecycle: &str| {
        vec![
            Term::new("service", "0b8a1c9e-postgres"),
            Term::new("plan", "7c1d44aa-small"),
            Term::new("lifecycle", lifecycle),
        ]
    };
    let operation = OperationId::fresh();
    let accept = Commit::new()
        .insert(key.clone(), terms("creating"), Bytes::from(vec![7; 600]))
        .start(NewOperation {
            id: operation,
            lane: key.clone(),
            verb: "provision",
            queue: Queue::named("broker"),
            start: Start::Claimed(worker),
            detail: Bytes::from(vec![7; 60]),
            request: Bytes::from(vec![7; 300]),
        });
    let result = Commit::new()
        .replace(
            key,
            Version(accept.id()),
            terms("live"),
            Bytes::from(vec![8; 600]),
        )
        .fenced(operation, Fence(1))
        .advance(
            operation,
            Next::Done(Outcome::Succeeded),
            Some(Bytes::from(vec![8; 60])),
            None,
        );
    (accept, result)
}
