//! The journal in MySQL or MariaDB, for any number of replicas.
//!
//! A commit is one call of a procedure that the migrations made (`layout_1/commit.sql`): nothing else in
//! these servers can look, decide and write in one round trip. Every other method is one statement, too.
//! Commits take their number in the feed one after the other, at their end; that is the price of an order
//! that can be read without knowing what is still open. This file is the way in and the journal's
//! `Store`.

mod claims;
mod commit;
mod connect;
mod info;
mod procedure_args;
mod query;
mod read;
mod rows;
mod schema;
mod sql;

use crate::commit_retry::{self, UnresolvedCommits};
use crate::pool::Pool;
use crate::settings::{SqlOpenError, SqlSettings};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use bytes::Bytes;
use connect::{Server, Session};
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
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// What the store and its tasks have in common.
struct SqlShared {
    pool: Pool<Server>,
    hints: Wakeups,
    settings: SqlSettings,
    unresolved: UnresolvedCommits<Session>,
}

/// The journal in a MySQL or MariaDB database. Any number of processes may have one open.
pub struct MySqlStore {
    shared: Arc<SqlShared>,
    server: String,
    layout: Layout,
    reminder: JoinHandle<()>,
}

impl MySqlStore {
    /// Opens a store by its URL (`mysql://user:password@host:port/database?ssl-mode=…`), and makes
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
    /// As [`MySqlStore::open`].
    pub async fn open_with(
        url: &SecretString,
        settings: SqlSettings,
    ) -> Result<Self, SqlOpenError> {
        let server = Server::at(url, &settings)?;
        let layout = schema::migrate(&server, settings.connect_timeout).await?;
        let name = server.name();
        let shared = Arc::new(SqlShared {
            pool: Pool::new(server, settings.clone()),
            hints: Wakeups::default(),
            settings,
            unresolved: UnresolvedCommits::default(),
        });
        Ok(Self {
            reminder: tokio::spawn(remind(Arc::clone(&shared))),
            shared,
            server: name,
            layout,
        })
    }
}

/// These servers send no notifications: a hint is given from time to time.
async fn remind(shared: Arc<SqlShared>) {
    let every = shared.settings.hint_every.max(Duration::from_millis(5));
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.hints.here();
    }
}

impl Drop for MySqlStore {
    fn drop(&mut self) {
        self.reminder.abort();
    }
}

impl fmt::Debug for MySqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStore")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MySqlStore {
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
