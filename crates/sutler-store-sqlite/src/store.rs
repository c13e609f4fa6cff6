//! Entry point: opens a file, and implements the journal's `Store`.
//!
//! Point reads run on the caller's own thread (a few microseconds, less than a hop to another);
//! lists run on a thread that may block; all writes are sent to the one writer. Renewals need no write.

use crate::documents::{self, View};
use crate::file_lock::FileLock;
use crate::file_mode;
use crate::interned_strings::Interner;
use crate::lease_table::LeaseTable;
use crate::lists;
use crate::poll_cache::PollCache;
use crate::readers::{ReaderError, Readers};
use crate::settings::{SqliteOpenError, SqliteSettings};
use crate::staged_commit::stage;
use crate::unindexed_documents::UnindexedDocuments;
use crate::writer::{self, Job, JobError, WriteSession};
use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::Connection;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use sutler_journal::{
    CLAIM_TIME_MAX, Changes, Clock, Commit, CommitError, Cursor, Document, IndexedDocument, Key,
    Layout, LeaseError, List, LogChunk, Operation, OperationId, OperationList, OperationRow, Page,
    PolledOperation, Position, Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime,
    Sweep, WorkerId, lease_call_within,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task;

/// State shared by the store, its writer and its readers.
pub(crate) struct SqliteShared {
    pub(crate) path: PathBuf,
    pub(crate) settings: SqliteSettings,
    pub(crate) readers: Readers,
    pub(crate) words: Interner,
    pub(crate) unindexed: UnindexedDocuments,
    pub(crate) polls: PollCache,
    pub(crate) leases: LeaseTable,
    pub(crate) hints: watch::Sender<u64>,
    pub(crate) feed_hints: watch::Sender<u64>,
    _owner: FileLock,
}

impl SqliteShared {
    fn view<'v>(&'v self, db: &'v Connection) -> View<'v> {
        View {
            db,
            words: &self.words,
            unindexed: &self.unindexed,
        }
    }
}

/// The journal in one SQLite file. One process owns the file; it is closed on drop.
pub struct SqliteStore {
    pub(crate) shared: Arc<SqliteShared>,
    layout: Layout,
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens a store's file, or creates it.
    ///
    /// # Errors
    /// See [`SqliteOpenError`]; a file that is refused was not changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, SqliteOpenError> {
        Self::open_with(path, SqliteSettings::default()).await
    }

    /// Opens a store with this clock.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with_clock(
        path: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SqliteOpenError> {
        let settings = SqliteSettings {
            clock,
            ..SqliteSettings::default()
        };
        Self::open_with(path, settings).await
    }

    /// Opens a store with custom settings.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with(
        path: impl AsRef<Path>,
        settings: SqliteSettings,
    ) -> Result<Self, SqliteOpenError> {
        let path = path.as_ref().to_owned();
        let tried = path.clone();
        match task::spawn_blocking(move || Self::open_blocking(path, settings)).await {
            Ok(opened) => opened,
            Err(cause) => Err(SqliteOpenError::failed(
                &tried,
                "the runtime is ending",
                cause,
            )),
        }
    }

    fn open_blocking(path: PathBuf, settings: SqliteSettings) -> Result<Self, SqliteOpenError> {
        let given = path;
        let owner = FileLock::of(&given)?;
        // All of SQLite's files are next to the file itself, wherever a link to it is.
        let path = owner.path().to_owned();
        file_mode::make_private(&path);
        let shared = Arc::new(SqliteShared {
            _owner: owner,
            readers: Readers::of(path.clone(), settings.reader_cache_kib),
            path,
            settings,
            words: Interner::default(),
            unindexed: UnindexedDocuments::default(),
            polls: PollCache::default(),
            leases: LeaseTable::default(),
            hints: watch::Sender::new(0),
            feed_hints: watch::Sender::new(0),
        });
        let (jobs, waiting) = mpsc::channel(writer::WAITING_MAX);
        let started = writer::start(Arc::clone(&shared), waiting);
        let (writer, layout) = started.map_err(|error| error.named(given))?;
        Ok(Self {
            shared,
            layout,
            jobs: Some(jobs),
            writer: Some(writer),
        })
    }

    /// Finishes pending work and closes the file. Dropping the store does the same, and blocks.
    pub async fn close(self) {
        // Dropped on a thread that may wait for the writer.
        let _ = task::spawn_blocking(move || drop(self)).await;
    }

    async fn send(&self, job: Job) -> Result<(), StoreError> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).await.map_err(|_| closed()),
            None => Err(closed()),
        }
    }

    /// Runs a job other than a commit on the writer.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut WriteSession<'_>, StoreTime) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = Job::task(work);
        self.send(job).await?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Reads on this thread.
    async fn read<T>(
        &self,
        read: impl FnOnce(&View<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        loop {
            match self.shared.readers.take() {
                Ok(reader) => return read(&self.shared.view(&reader)),
                Err(ReaderError::NotNow) => {}
                Err(ReaderError::Failed(cause)) => return Err(cause),
            }
            self.shared.readers.until_open().await?;
        }
    }

    /// Reads on a thread that may block.
    async fn read_many<T: Send + 'static>(
        &self,
        read: impl FnOnce(&View<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.on_thread(|shared| {
            let reader = shared.readers.take()?;
            read(&shared.view(&reader))
        })
        .await
    }

    /// Reads on a thread that may block; again while the result is `None`, because the file is ahead of the
    /// memory.
    async fn read_at_one_moment<T: Send + 'static>(
        &self,
        read: impl Fn(&View<'_>) -> Result<Option<T>, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.on_thread(move |shared| {
            loop {
                // Returned each time: the writer waits for all readers before it opens the file again.
                let reader = shared.readers.take()?;
                if let Some(found) = read(&shared.view(&reader))? {
                    return Ok(found);
                }
                drop(reader);
                std::thread::yield_now();
            }
        })
        .await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SqliteShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.readers.until_open().await?;
        let shared = Arc::clone(&self.shared);
        let reading = task::spawn_blocking(move || read(&shared));
        reading
            .await
            .unwrap_or_else(|cause| Err(StoreError::caused("a read was broken off", cause)))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer ends when all senders are dropped, after all jobs sent before.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

fn closed() -> StoreError {
    StoreError::new("the store is closed")
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        commit.check().map_err(|reason| {
            CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
        })?;
        let staged = loop {
            match stage(commit, &self.shared.words) {
                Ok(staged) => break staged,
                Err(words) => {
                    self.ask(move |session, _| {
                        for word in &words {
                            session.learn(word)?;
                        }
                        Ok(())
                    })
                    .await
                    .map_err(CommitError::NotWritten)?;
                }
            }
        };
        let (answer, answered) = oneshot::channel();
        let job = Job::commit(staged, answer);
        self.send(job).await.map_err(CommitError::NotWritten)?;
        match answered.await {
            Ok((_, result)) => result,
            Err(_) => Err(CommitError::Unknown(StoreError::new(
                "the store's writer ended while it had the commit",
            ))),
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.read(|view| documents::get(view, key)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(|view| lists::operation(view.db, view.words, id))
            .await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        let polls = &self.shared.polls;
        if let Some(known) = polls.find(lane, id) {
            return Ok(Some(known));
        }
        let generation = polls.generation();
        let read = self.read(|view| lists::poll(view.db, view.words, lane, id));
        let polled = read.await?;
        if let Some(polled) = &polled {
            polls.keep(lane, id, polled, generation);
        }
        Ok(polled)
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (list, after) = (list.clone(), after.cloned());
        self.read_at_one_moment(move |view| documents::list(view, &list, after.as_ref(), limit))
            .await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        let from = from.to_vec();
        self.read_at_one_moment(move |view| documents::indexed(view, &from, limit))
            .await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        let list = list.clone();
        self.read_many(move |view| lists::operations(view, &list))
            .await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        let clock = &*self.shared.settings.clock;
        let renewal = self.shared.leases.renew(worker, ttl, clock);
        renewal.ok_or(LeaseError::Lost)
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        let queues = queues.to_vec();
        // A claim whose caller gave up, because the disk stalls, takes nothing: the operations would be held by a worker
        // that does not know of them.
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let claimed = self.ask(move |session, now| match waiting.strong_count() {
            0 => Ok(Some(Vec::new())),
            _ => session.claim(worker, &queues, now),
        });
        lease_call_within(CLAIM_TIME_MAX, async move {
            let claimed = claimed.await;
            drop(caller);
            claimed?.ok_or(LeaseError::Lost)
        })
        .await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.ask(move |session, now| session.release(worker, now))
            .await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let after = after.clone();
        self.read_many(move |view| lists::changes(view.db, &after, limit))
            .await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.shared.hints.subscribe()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.shared.feed_hints.subscribe()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        let sweep = sweep.clone();
        self.ask(move |session, _| session.sweep(&sweep)).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.read_many(|view| lists::stats(view.db, view.words))
            .await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        let leases = self.ask(|session, now| Ok(session.leases(now))).await?;
        let read = self.read_many(move |view| lists::info(view.db, leases));
        let layout = self.layout;
        Ok(StoreInfo {
            layout,
            ..read.await?
        })
    }

    async fn feed_length(&self) -> Result<u64, StoreError> {
        self.read_many(|view| lists::feed_length(view.db)).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.shared.settings.clock.now())
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        self.ask(move |session, _| session.append_log(operation, &text))
            .await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        self.read_many(move |view| lists::read_log(view.db, operation, from, limit))
            .await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let read = read.clone();
        self.ask(move |session, _| session.reseal_log(operation, &read, &text))
            .await
    }
}
