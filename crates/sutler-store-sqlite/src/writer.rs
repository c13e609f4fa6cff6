//! The writer thread, and how its work is grouped.
//!
//! Callers put jobs into a bounded channel and wait. The thread takes all waiting jobs, runs them in one
//! transaction, and responds after COMMIT has returned: one `fdatasync` for all of them. If a sync
//! fails, the contents of the disk are unknown: every waiter of the group gets `Unknown`, every connection is
//! closed, and no job is accepted until the file was opened again and is valid (`reopen`).
//!
//! Read `writer/group.rs` next for one group, then `writer/apply.rs` for one commit.

mod apply;
mod claims;
mod group;
mod index_backfill;
mod job;
mod leases;
mod operations;
mod recent_commits;
mod statements;
mod sweeps;
mod write_session;

pub(crate) use job::{Job, JobError};
pub(crate) use leases::LeaseCounts;
pub(crate) use write_session::WriteSession;

use crate::checkpoint::{self, Checkpoints};
use crate::poll_cache::TouchedOperations;
use crate::readers::Phase;
use crate::schema;
use crate::settings::SqliteOpenError;
use crate::sql;
use crate::store::SqliteShared;
use group::Flow;
use rusqlite::Connection;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use sutler_journal::{Layout, StoreError};
use tokio::sync::mpsc;
use write_session::WriterState;

/// Maximum jobs in one transaction; bounds the responses that wait for one sync.
const GROUP_MAX: usize = 1024;
/// Maximum jobs that wait for the writer; further callers wait for a slot.
pub(crate) const WAITING_MAX: usize = 4096;

/// Opens the file and starts the thread; returns once it serves, or the error.
pub(crate) fn start(
    shared: Arc<SqliteShared>,
    jobs: mpsc::Receiver<Job>,
) -> Result<(JoinHandle<()>, Layout), SqliteOpenError> {
    let path = shared.path.clone();
    let (db, layout) = schema::open_writer(&path, shared.settings.writer_cache_kib)?;
    let failed = |cause| SqliteOpenError::failed(&path, "reading its counters", cause);
    #[cfg(any(test, feature = "testing"))]
    shared.settings.faults.set_up(&db).map_err(failed)?;
    let memory = WriterState::of_new_boot(&db).map_err(failed)?;
    read_unindexed(&shared, &db).map_err(failed)?;
    let checkpoints = checkpoint::start(Arc::clone(&shared))
        .map_err(|cause| SqliteOpenError::failed(&path, "starting its threads", cause))?;
    let mut thread = WriterThread {
        shared,
        jobs,
        memory,
        checkpoints,
    };
    thread::Builder::new()
        .name("sutler-sqlite-writer".to_owned())
        .spawn(move || thread.run(db))
        .map(|thread| (thread, layout))
        .map_err(|cause| SqliteOpenError::failed(&path, "starting its threads", cause))
}

/// Reads unindexed documents. That visits as many pages as the writer may cache, and needs none of them
/// twice; memory that a thread has allocated once is not returned.
fn read_unindexed(shared: &SqliteShared, db: &Connection) -> rusqlite::Result<()> {
    let settings = &shared.settings;
    schema::keep_pages(db, settings.reader_cache_kib)?;
    shared.unindexed.reload(db)?;
    schema::keep_pages(db, settings.writer_cache_kib)
}

struct WriterThread {
    shared: Arc<SqliteShared>,
    jobs: mpsc::Receiver<Job>,
    memory: WriterState,
    checkpoints: Checkpoints,
}

impl WriterThread {
    fn run(&mut self, first: Connection) {
        let mut open = Some(first);
        loop {
            if let Some(db) = open.take()
                && let WriterExit::Closed = self.serve(&db)
            {
                break;
            }
            tracing::error!(
                path = %self.shared.path.display(),
                "a write to the store's file failed; it is closed and opened again"
            );
            self.shared.readers.close(Phase::Reopening);
            match self.reopen() {
                Ok(db) => open = Some(db),
                Err(cause) => {
                    tracing::error!(
                        error = &cause as &dyn std::error::Error,
                        "the store's file cannot be opened again yet"
                    );
                    if let WriterExit::Closed = self.refuse_next() {
                        break;
                    }
                }
            }
        }
        self.checkpoints.stop();
        self.shared.readers.close(Phase::Closed);
    }

    /// Serves group after group until the store is closed or the file must be opened again.
    fn serve(&mut self, db: &Connection) -> WriterExit {
        self.checkpoints.watch_again();
        let mut session = match WriteSession::new(db, &self.shared, &mut self.memory) {
            Ok(session) => session,
            Err(_) => return WriterExit::MustReopen,
        };
        let mut group = Vec::with_capacity(GROUP_MAX);
        while self.jobs.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
            let flow = group::run(&mut session, &mut group);
            if let Flow::Reopen = flow {
                return WriterExit::MustReopen;
            }
            if self.checkpoints.after_group(db).is_err() {
                return WriterExit::MustReopen;
            }
        }
        WriterExit::Closed
    }

    /// Opens the file again, and checkpoints everything in its log with its own sync:
    /// only then is everything that can be read also on the disk.
    fn reopen(&mut self) -> Result<Connection, SqliteOpenError> {
        let path = &self.shared.path;
        let failed = |cause| SqliteOpenError::failed(path, "verifying it", cause);
        let (db, _) = schema::open_writer(path, self.shared.settings.writer_cache_kib)?;
        #[cfg(any(test, feature = "testing"))]
        self.shared.settings.faults.set_up(&db).map_err(failed)?;
        let busy: i64 = db
            .query_row(sql::CHECKPOINT_ALL, [], |row| row.get(0))
            .map_err(failed)?;
        if busy != 0 {
            return Err(SqliteOpenError::failed(
                path,
                "verifying it",
                "it is still in use",
            ));
        }
        self.memory.reload(&db).map_err(failed)?;
        self.memory.running.publish(&self.shared.leases);
        read_unindexed(&self.shared, &db).map_err(failed)?;
        let mut touched = TouchedOperations::default();
        touched.all();
        self.shared.polls.invalidate(&mut touched);
        self.shared.readers.open();
        tracing::info!(path = %path.display(), "the store's file is open again");
        Ok(db)
    }

    /// Refuses waiting jobs; then the file is tried again.
    fn refuse_next(&mut self) -> WriterExit {
        let mut group = Vec::new();
        if self.jobs.blocking_recv_many(&mut group, GROUP_MAX) == 0 {
            return WriterExit::Closed;
        }
        for job in group {
            job.refuse(StoreError::new(
                "the store's file could not be written and takes nothing until it can be opened \
                 again; see the disk's own errors",
            ));
        }
        WriterExit::MustReopen
    }
}

enum WriterExit {
    Closed,
    MustReopen,
}
