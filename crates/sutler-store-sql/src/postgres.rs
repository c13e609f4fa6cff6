//! The journal in PostgreSQL, for any number of replicas.
//!
//! A commit is one call of a function that the migrations made (`layout_1/commit.sql`); every other
//! method is one statement, too. This file is the way in and the journal's `Store`; what stands behind
//! each method is in the files named below.

mod claims;
mod commit;
mod connect;
mod fast_commit;
mod ids;
mod info;
mod notify;
mod query;
mod read;
mod rows;
mod schema;
mod sql;

#[cfg(feature = "testing")]
pub mod faults;

use crate::commit_retry::{self, UnresolvedCommits};
use crate::pool::Pool;
use crate::settings::{SqlOpenError, SqlSettings};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use bytes::Bytes;
use connect::{Server, Session};
use notify::WakeupTasks;
use secrecy::SecretString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    Changes, Commit, CommitError, Cursor, Document, IndexedDocument, Key, Layout, LeaseError, List,
    LogChunk, Operation, OperationId, OperationList, OperationRow, Page, PolledOperation, Position,
    Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime, Sweep, WorkerId,
};
use tokio::sync::watch;

/// What the store and its tasks have in common.
struct SqlShared {
    pool: Pool<Server>,
    hints: Wakeups,
    settings: SqlSettings,
    unresolved: UnresolvedCommits<Session>,
}

/// The journal in a PostgreSQL database. Any number of processes may have one open.
pub struct PostgresStore {
    shared: Arc<SqlShared>,
    server: String,
    layout: Layout,
    _wakers: WakeupTasks,
}

impl PostgresStore {
    /// Opens a store by its URL (`postgres://user:password@host:port/database?sslmode=…`), and makes
    /// its tables or brings them up to date. Several may do so at once.
    ///
    /// # Errors
    /// See [`SqlOpenError`]; none of them says the password.
    pub async fn open(url: &SecretString) -> Result<Self, SqlOpenError> {
        Self::open_with(url, SqlSettings::default()).await
    }

    /// Opens a store with settings of one's own.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_with(
        url: &SecretString,
        settings: SqlSettings,
    ) -> Result<Self, SqlOpenError> {
        let server = Server::at(url, &settings)?;
        let layout = schema::migrate(&server, settings.connect_timeout).await?;
        let name = server.name();
        let listening = server.for_listening();
        let shared = Arc::new(SqlShared {
            pool: Pool::new(server, settings.clone()),
            hints: Wakeups::default(),
            settings,
            unresolved: UnresolvedCommits::default(),
        });
        Ok(Self {
            _wakers: notify::start(&shared, listening),
            shared,
            server: name,
            layout,
        })
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        commit_retry::commit(&*self.shared, commit).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.shared.get(key).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.shared.operation(id).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        self.shared.poll(lane, id).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.shared.list(list, after, limit).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        self.shared.scan_documents(from, limit).await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        self.shared.operations(list).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        self.shared.renew(worker, ttl).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.shared.claim(worker, queues).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.shared.release(worker).await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        self.shared.changes(after, limit).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.shared.hints.subscribe()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        self.shared.sweep(sweep).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.shared.stats().await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        self.shared.info(self.layout).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.shared.now().await
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        self.shared.append_log(operation, text).await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        self.shared.read_log(operation, from, limit).await
    }
}
