//! Benchmark of the stores in PostgreSQL, MySQL and MariaDB, for comparison on the same server.
//!
//! `sql_store_bench URL WHAT CALLERS SECONDS REPLICAS` prints calls a second. WHAT: `accept` (a commit of
//! a new document and its operation), `end` (accept, and the commit of its result), `poll`, or `bare`
//! (MySQL: the rows of an accept by a procedure that checks nothing). `prepare` creates the polled
//! operations. `sweep` is another measurement: see `sweep.rs`. See `bench/run` in this crate for its use;
//! not here: baselines and swept operations (`bench/*.sql`).

mod calls;
mod sweep;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::{ConnectOptions as _, Connection as _, MySqlConnection};
use std::error::Error;
use std::io::Write as _;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{Store, WorkerId};
use sutler_store_sql::{MySqlStore, PostgresStore, SqlSettings};
use tokio::task::JoinSet;

pub(crate) type BenchError = Box<dyn Error + Send + Sync>;
const USAGE: &str =
    "sql_store_bench URL accept|end|poll|bare|prepare|sweep CALLERS SECONDS REPLICAS";

#[tokio::main]
async fn main() -> Result<(), BenchError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, what, callers, seconds, replicas] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let url = SecretString::from(url.clone());
    let (callers, replicas): (usize, usize) = (callers.parse()?, replicas.parse()?);
    let time = Duration::from_secs(seconds.parse()?);
    match what.as_str() {
        "prepare" => calls::prepare(&*open(&url, 4).await?).await,
        // The sweep has its own connections, as in a broker under low load.
        "sweep" => sweep::measure(open(&url, callers + 2).await?, callers, time).await,
        "bare" => say(rate(time, bare(&url, callers, time).await?).await?),
        _ => {
            let tasks = stores(&url, what, callers, replicas, time).await?;
            say(rate(time, tasks).await?)
        }
    }
}

fn say(rate: f64) -> Result<(), BenchError> {
    writeln!(std::io::stdout(), "{rate:.0}")?;
    Ok(())
}

async fn open(url: &SecretString, connections: usize) -> Result<Arc<dyn Store>, BenchError> {
    let settings = SqlSettings {
        connections,
        hint_every: Duration::from_secs(3600),
        ..SqlSettings::default()
    };
    Ok(match url.expose_secret().starts_with("mysql:") {
        true => Arc::new(MySqlStore::open_with(url, settings).await?),
        false => Arc::new(PostgresStore::open_with(url, settings).await?),
    })
}

/// Callers that run for a fixed time, and their counts.
struct Calling {
    tasks: JoinSet<Result<(), BenchError>>,
    calls: Arc<AtomicU64>,
}

async fn rate(time: Duration, mut calling: Calling) -> Result<f64, BenchError> {
    while let Some(done) = calling.tasks.join_next().await {
        done??;
    }
    Ok(calling.calls.load(Ordering::Relaxed) as f64 / time.as_secs_f64())
}

async fn stores(
    url: &SecretString,
    what: &str,
    callers: usize,
    replicas: usize,
    time: Duration,
) -> Result<Calling, BenchError> {
    let mut opened = Vec::new();
    for _ in 0..replicas {
        let store = open(url, callers / replicas.max(1)).await?;
        let worker = WorkerId::fresh();
        store.renew(worker, Duration::from_secs(3600)).await?;
        opened.push((store, worker));
    }
    let calls = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    let end = Instant::now() + time;
    for (store, worker) in opened {
        for caller in 0..callers / replicas {
            let (store, what) = (Arc::clone(&store), what.to_owned());
            let calls = Arc::clone(&calls);
            tasks.spawn(async move {
                let mut n = caller as u64;
                while Instant::now() < end {
                    n = (n * 7919 + 13) % calls::POLLED;
                    match what.as_str() {
                        "accept" => drop(calls::accept(&*store, worker).await?),
                        "end" => {
                            let accepted = calls::accept(&*store, worker).await?;
                            calls::end(&*store, accepted).await?;
                        }
                        "poll" => calls::poll(&*store, n).await?,
                        _ => return Err(USAGE.into()),
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
    }
    Ok(Calling { tasks, calls })
}

/// Baseline of MySQL; `bench/accept_mysql.sql` creates the procedure.
async fn bare(url: &SecretString, callers: usize, time: Duration) -> Result<Calling, BenchError> {
    let options = sqlx::mysql::MySqlConnectOptions::from_str(url.expose_secret())?;
    let mut lines: Vec<MySqlConnection> = Vec::new();
    for _ in 0..callers {
        lines.push(
            options
                .clone()
                .disable_statement_logging()
                .connect()
                .await?,
        );
    }
    let calls = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    let end = Instant::now() + time;
    for mut line in lines {
        let calls = Arc::clone(&calls);
        tasks.spawn(async move {
            while Instant::now() < end {
                let call = sqlx::query("CALL bare_accept(?)")
                    .bind(uuid::Uuid::new_v4().as_bytes().to_vec());
                call.execute(&mut line).await?;
                calls.fetch_add(1, Ordering::Relaxed);
            }
            line.close().await?;
            Ok(())
        });
    }
    Ok(Calling { tasks, calls })
}
