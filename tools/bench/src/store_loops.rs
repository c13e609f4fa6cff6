//! The store alone, compared with a bare group-commit loop on the same disk.
//!
//! The bare loop does the same as the fastest hand-written writer: one thread, one transaction for all
//! waiting callers, two rows for each. The store does the broker's two commits of a provision.

use crate::RunArgs;
use crate::baseline::two_commits;
use crate::http_pairs::fresh_dir;
use crate::report::{median, print_line, ratio};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{Key, Kind, Realm, Store, WorkerId};
use sutler_store_sqlite::SqliteStore;
use tokio::sync::{mpsc, oneshot};

use crate::load::BoxError;

/// Maximum callers in one group.
const GROUP_MAX: usize = 1024;

pub(crate) async fn measure(args: &RunArgs) -> Result<(), BoxError> {
    print_line("\n-- the store alone, 64 callers --");
    let dir = fresh_dir(&args.dir.join("store"))?;
    let (mut ratios, mut bare, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(dir.join("store.db")).await?);
    let looped = BareLoop::start(&dir.join("bare.db"))?;
    for _ in 0..args.pairs {
        let time = Duration::from_secs(args.seconds);
        let loop_rate = looped.rate(args.connections, time).await;
        let store_rate = store_rate(&store, args.connections, time).await?;
        ratios.push(store_rate / loop_rate);
        bare.push(loop_rate);
        ours.push(store_rate);
    }
    ratio("store commits / bare two-row commits", &ratios, 0.7);
    print_line(&format!(
        "    {:.0} against {:.0} commits a second",
        median(&ours),
        median(&bare)
    ));
    Ok(())
}

async fn store_rate(
    store: &Arc<dyn Store>,
    callers: usize,
    time: Duration,
) -> Result<f64, BoxError> {
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(3600)).await?;
    let done = Arc::new(AtomicU64::new(0));
    let (began, realm) = (Instant::now(), Realm::new("broker")?);
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let (store, done, realm) = (store.clone(), done.clone(), realm.clone());
        tasks.push(tokio::spawn(async move {
            while began.elapsed() < time {
                let id = uuid::Uuid::new_v4().to_string();
                let key = Key::new(&realm, Kind::new("instance"), &[&id]).expect("a valid id");
                two_commits(store.as_ref(), key, worker).await;
                done.fetch_add(2, Ordering::Relaxed);
            }
        }));
    }
    for task in tasks {
        task.await?;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

struct BareLoop(mpsc::Sender<(String, oneshot::Sender<()>)>);

impl BareLoop {
    fn start(path: &Path) -> Result<Self, BoxError> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.execute_batch(
            "CREATE TABLE thing (id TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID;
             CREATE TABLE event (no INTEGER PRIMARY KEY, body BLOB);",
        )?;
        let (sender, mut jobs) = mpsc::channel::<(String, oneshot::Sender<()>)>(GROUP_MAX);
        std::thread::spawn(move || {
            let mut group = Vec::with_capacity(GROUP_MAX);
            while jobs.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
                write_group(&db, &mut group).expect("the bare loop writes");
            }
        });
        Ok(Self(sender))
    }

    async fn rate(&self, callers: usize, time: Duration) -> f64 {
        let done = Arc::new(AtomicU64::new(0));
        let began = Instant::now();
        let mut tasks = Vec::new();
        for _ in 0..callers {
            let (jobs, done) = (self.0.clone(), done.clone());
            tasks.push(tokio::spawn(async move {
                while began.elapsed() < time {
                    let (answer, answered) = oneshot::channel();
                    let id = uuid::Uuid::new_v4().to_string();
                    if jobs.send((id, answer)).await.is_err() || answered.await.is_err() {
                        return;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for task in tasks {
            let _ = task.await;
        }
        done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
    }
}

fn write_group(
    db: &Connection,
    group: &mut Vec<(String, oneshot::Sender<()>)>,
) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    {
        let mut upsert = db.prepare_cached(
            "INSERT INTO thing (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        )?;
        let mut event = db.prepare_cached("INSERT INTO event (body) VALUES (?1)")?;
        for (id, _) in group.iter() {
            upsert.execute((id, [3u8; 400].as_slice()))?;
            event.execute([[5u8; 150].as_slice()])?;
        }
    }
    db.execute_batch("COMMIT")?;
    for (_, answer) in group.drain(..) {
        let _ = answer.send(());
    }
    Ok(())
}
