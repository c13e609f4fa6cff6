//! The SQLite store passes the conformance suite of stores.
//!
//! A restart opens a copy of the files at that moment, including the log: the state after a crash, not
//! after closing. Faults are injected into the writer itself, around COMMIT.

use async_trait::async_trait;
use bytes::Bytes;
use std::collections::VecDeque;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit, samples};
use sutler_journal::{Commit, CommitError, ManualClock, Store};
use sutler_store_sqlite::faults::{Fault, FaultPoint, Faults};
use sutler_store_sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;
use tokio::sync::watch;

/// A store in its own directory, with a clock moved by hand.
pub(crate) struct Sqlite {
    clock: Arc<ManualClock>,
    writer_faults: Arc<WriterFaults>,
    directory: TempDir,
    open: Mutex<(usize, Arc<SqliteStore>)>,
}

/// Points at which the writer fails, in this order, and whether it stalls.
#[derive(Default)]
struct WriterFaults {
    armed: Mutex<(VecDeque<FaultPoint>, usize)>,
    stalled: Mutex<bool>,
    continues: Condvar,
    /// The writer has reached the stall.
    waits: watch::Sender<bool>,
}

impl WriterFaults {
    fn set_stalled(&self, stalled: bool) {
        *self.stalled.lock().unwrap_or_else(PoisonError::into_inner) = stalled;
        self.continues.notify_all();
    }

    /// Of those cut in the middle, every other one is written.
    fn arm(&self, cut: Cut) {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.1 += usize::from(cut == Cut::DuringCommit);
        let point = match cut {
            Cut::BeforeCommit => FaultPoint::BeforeCommit,
            Cut::DuringCommit if armed.1.is_multiple_of(2) => FaultPoint::AfterCommit,
            Cut::DuringCommit => FaultPoint::DuringCommit,
            Cut::AfterCommit => FaultPoint::AfterCommit,
        };
        armed.0.push_back(point);
    }

    fn at(&self, point: FaultPoint) -> Fault {
        let mut stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        while *stalled {
            self.waits.send_replace(true);
            let woken = self.continues.wait(stalled);
            stalled = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(stalled);
        self.waits.send_replace(false);
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.0.front() == Some(&point) {
            armed.0.pop_front();
            return Fault::Cut;
        }
        Fault::None
    }
}

impl Sqlite {
    pub(crate) async fn fresh() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let clock = Arc::new(ManualClock::default());
        let writer_faults = Arc::new(WriterFaults::default());
        let store = open(&file(&directory, 0), &clock, &writer_faults).await;
        Self {
            clock,
            writer_faults,
            directory,
            open: Mutex::new((0, store)),
        }
    }

    fn current(&self) -> (usize, Arc<SqliteStore>) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        (open.0, Arc::clone(&open.1))
    }
}

fn file(directory: &TempDir, number: usize) -> PathBuf {
    directory.path().join(format!("store-{number}.db"))
}

fn settings(clock: &Arc<ManualClock>, writer_faults: &Arc<WriterFaults>) -> SqliteSettings {
    let writer_faults = Arc::clone(writer_faults);
    SqliteSettings {
        clock: Arc::clone(clock) as _,
        faults: Faults::with(move |point| writer_faults.at(point)),
        ..SqliteSettings::default()
    }
}

async fn open(
    path: &Path,
    clock: &Arc<ManualClock>,
    writer_faults: &Arc<WriterFaults>,
) -> Arc<SqliteStore> {
    let opened = SqliteStore::open_with(path, settings(clock, writer_faults)).await;
    Arc::new(opened.expect("a store"))
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // Closing waits for the writer.
        self.writer_faults.set_stalled(false);
    }
}

#[async_trait]
impl Candidate for Sqlite {
    async fn store(&self) -> Arc<dyn Store> {
        self.current().1
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    async fn reopen(&self) -> Arc<dyn Store> {
        let (number, _) = self.current();
        let (from, to) = (
            file(&self.directory, number),
            file(&self.directory, number + 1),
        );
        for ending in ["", "-wal"] {
            let with = |path: &Path| PathBuf::from(format!("{}{ending}", path.display()));
            std::fs::copy(with(&from), with(&to)).expect("a copy");
        }
        let store = open(&to, &self.clock, &self.writer_faults).await;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) =
            (number + 1, Arc::clone(&store));
        store
    }

    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        let link = self.directory.path().join("link.db");
        symlink(file(&self.directory, self.current().0), &link).expect("a link");
        let opened =
            SqliteStore::open_with(&link, settings(&self.clock, &self.writer_faults)).await;
        let store = opened.map_err(|refusal| refusal.to_string())?;
        Ok(Arc::new(store))
    }

    async fn cut(&self, cut: Cut) {
        self.writer_faults.arm(cut);
    }

    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        Box::new(HeldBack {
            store: self.current().1,
            commit,
        })
    }

    async fn set_stalled(&self, stalled: bool) {
        self.writer_faults.set_stalled(stalled);
        if stalled {
            // The writer stops at the end of the next commit.
            let store = self.current().1;
            let commit = Commit::new().insert(samples::key("stalled"), Vec::new(), Bytes::new());
            tokio::spawn(async move { store.commit(&commit).await });
            let mut waits = self.writer_faults.waits.subscribe();
            drop(waits.wait_for(|waits| *waits).await.expect("a writer"));
        }
    }
}

/// There is one writer, so a commit is held back before it takes it.
struct HeldBack {
    store: Arc<SqliteStore>,
    commit: Commit,
}

#[async_trait]
impl StalledCommit for HeldBack {
    async fn finish(self: Box<Self>) -> Result<(), CommitError> {
        self.store.commit(&self.commit).await
    }
}

mod suite {
    use super::Sqlite;

    sutler_journal::store_conformance!(Sqlite::fresh().await);
}
