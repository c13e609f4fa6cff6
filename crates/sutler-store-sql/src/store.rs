//! The journal in a SQL database, for any number of replicas: opening it, and the journal's `Store`.
//!
//! Every method is one statement; a commit calls a function that the migrations created
//! (`postgres/layout_3/commit.sql`, `mysql/layout_3/commit.sql`). Read `dialect.rs` next.

use crate::commit_retry::{self, UnresolvedCommits};
use crate::dialect::Dialect;
use crate::feed::FeedPage;
use crate::pool::Pool;
use crate::settings::{SqlOpenError, SqlSettings};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use bytes::Bytes;
use secrecy::SecretString;
use sqlx::Connection as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    CLAIM_TIME_MAX, Changes, Commit, CommitError, Cursor, Document, IndexedDocument, Key, Layout,
    LeaseError, List, LogChunk, Operation, OperationId, OperationList, OperationRow, Page,
    PolledOperation, Position, Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime,
    Sweep, WorkerId, lease_call_within,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Shortest time between two wakeups by the timer.
const WAKEUP_MIN: Duration = Duration::from_millis(5);

/// State of a store and its tasks.
pub struct SqlShared<D: Dialect> {
    pub(crate) pool: Pool<D>,
    pub(crate) wakeups: Wakeups,
    pub(crate) settings: SqlSettings,
    pub(crate) unresolved: UnresolvedCommits<D::Session>,
}

/// The journal in a SQL database. Any number of processes may have it open.
pub struct SqlStore<D: Dialect> {
    shared: Arc<SqlShared<D>>,
    server: String,
    layout: Layout,
    tasks: Vec<JoinHandle<()>>,
}

impl<D: Dialect> SqlStore<D> {
    /// Opens a store by its URL (`postgres://user:password@host:port/database?sslmode=…`,
    /// `mysql://user:password@host:port/database?ssl-mode=…`), and creates or upgrades its tables.
    /// Several processes may do so at once.
    ///
    /// # Errors
    /// See [`SqlOpenError`]; none of them contains the password.
    pub async fn open(url: &SecretString) -> Result<Self, SqlOpenError> {
        Self::open_with(url, SqlSettings::default()).await
    }

    /// Opens a store with the given settings.
    ///
    /// # Errors
    /// As [`SqlStore::open`].
    pub async fn open_with(
        url: &SecretString,
        settings: SqlSettings,
    ) -> Result<Self, SqlOpenError> {
        let dialect = D::at(url, &settings)?;
        let layout = migrate(&dialect, settings.connect_timeout).await?;
        let server = dialect.name();
        let shared = Arc::new(SqlShared {
            pool: Pool::new(dialect, settings.clone()),
            wakeups: Wakeups::default(),
            settings,
            unresolved: UnresolvedCommits::default(),
        });
        let mut tasks = D::start_tasks(&shared);
        tasks.push(tokio::spawn(wake_regularly(Arc::clone(&shared))));
        Ok(Self {
            shared,
            server,
            layout,
            tasks,
        })
    }
}

/// Creates or upgrades the tables; writes nothing if they are up to date.
async fn migrate<D: Dialect>(dialect: &D, within: Duration) -> Result<Layout, SqlOpenError> {
    let unreachable = |said: String| SqlOpenError::Unreachable {
        server: dialect.name(),
        said,
    };
    let mut db = match timeout(within, dialect.connect_for_migration()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(cause)) => return Err(unreachable(D::driver_error(cause).said())),
        Err(_) => return Err(unreachable(format!("no answer within {within:?}"))),
    };
    let found = dialect.upgrade(&mut db).await?;
    let known = D::LAYOUTS as i64;
    if found > known {
        return Err(SqlOpenError::Newer {
            server: dialect.name(),
            found,
            known,
        });
    }
    drop(db.close().await);
    Ok(crate::codec::layout(found, known))
}

/// Compensates for lost wakeups, and for servers that send none.
async fn wake_regularly<D: Dialect>(shared: Arc<SqlShared<D>>) {
    let mut ticks = interval(shared.settings.hint_every.max(WAKEUP_MIN));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.wakeups.here();
    }
}

impl<D: Dialect> Drop for SqlStore<D> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(D::STORE_NAME)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl<D: Dialect> Store for SqlStore<D> {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        commit_retry::commit(&*self.shared, commit).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        Ok(self.shared.get(key).await?)
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.shared.operation(id).await?)
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        Ok(self.shared.poll(lane, id).await?)
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        Ok(self.shared.list(list, after, limit).await?)
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        Ok(self.shared.scan_documents(from, limit).await?)
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        Ok(self.shared.operations(list).await?)
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        lease_call_within(ttl, async {
            let renewal = self.shared.renew(worker, ttl).await;
            renewal.map_err(StoreError::from)?.ok_or(LeaseError::Lost)
        })
        .await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        lease_call_within(CLAIM_TIME_MAX, async {
            let claimed = self.shared.claim(worker, queues).await;
            claimed.map_err(StoreError::from)?.ok_or(LeaseError::Lost)
        })
        .await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        Ok(self.shared.release(worker).await?)
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let page = FeedPage::new(after, limit, D::DENSE_FEED)?;
        Ok(self.shared.changes(page).await?)
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.shared.wakeups.subscribe()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.shared.wakeups.subscribe_to_feed()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        Ok(self.shared.sweep(sweep).await?)
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        Ok(self.shared.stats().await?)
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        Ok(self.shared.info(self.layout).await?)
    }

    async fn feed_length(&self) -> Result<u64, StoreError> {
        Ok(self.shared.feed_length().await?)
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.shared.now().await?)
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        Ok(self.shared.append_log(operation, text).await?)
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        Ok(self.shared.read_log(operation, from, limit).await?)
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        Ok(self.shared.reseal_log(operation, read, &text).await?)
    }
}
