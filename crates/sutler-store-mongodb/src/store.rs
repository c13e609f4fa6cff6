//! Entry point: opens a store, and implements the journal's `Store`.

use crate::claim::ClaimMemory;
use crate::commands::CommandClient;
use crate::commit::{ClaimCache, UnknownCommits};
use crate::layout;
use crate::locks::CommitLocks;
use crate::settings::{MongoOpenError, MongoSettings};
use crate::wakeups::{self, Wakeups};
use async_trait::async_trait;
use bytes::Bytes;
use mongodb::Client;
use mongodb::options::{
    Acknowledgment, ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use secrecy::{ExposeSecret as _, SecretString};
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
use tokio::task::AbortHandle;

/// Database of a URL that names none.
const DATABASE: &str = "sutler";

/// The journal in MongoDB. Any number of replicas share it. A clone is the same store; its background
/// tasks end with the last clone.
#[derive(Clone)]
pub struct MongoStore {
    pub(crate) commands: CommandClient,
    pub(crate) hints: Wakeups,
    pub(crate) locks: Arc<CommitLocks>,
    pub(crate) claims: Arc<ClaimCache>,
    pub(crate) unknown_commits: Arc<UnknownCommits>,
    pub(crate) claim_memory: Arc<tokio::sync::Mutex<ClaimMemory>>,
    /// Serializes the assignment of positions in the feed.
    pub(crate) numbering: Arc<tokio::sync::Mutex<()>>,
    pub(crate) layout: Layout,
    _background: Arc<BackgroundTasks>,
}

struct BackgroundTasks(Vec<AbortHandle>);

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl MongoStore {
    /// Opens the store at a URL, or creates it: `mongodb://user:password@host/database?…`, with
    /// the parameters of MongoDB's own connection strings.
    ///
    /// # Errors
    /// See [`MongoOpenError`].
    pub async fn open(url: &SecretString) -> Result<Self, MongoOpenError> {
        Self::open_with(url, MongoSettings::default()).await
    }

    /// Opens a store with custom settings.
    ///
    /// # Errors
    /// See [`MongoOpenError`].
    pub async fn open_with(
        url: &SecretString,
        settings: MongoSettings,
    ) -> Result<Self, MongoOpenError> {
        // The message of the driver may quote the URL.
        let parsed = ClientOptions::parse(url.expose_secret()).await;
        let mut options = parsed.map_err(|_| MongoOpenError::Url)?;
        set(&mut options, &settings);
        let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
        let database = options.default_database.clone();
        let database = database.unwrap_or_else(|| DATABASE.to_owned());
        let server = format!("{}/{database}", hosts.join(","));
        let client = Client::with_options(options).map_err(|_| MongoOpenError::Url)?;
        let commands = CommandClient {
            database: client.database(&database),
            client,
            settings,
        };
        layout::check_server(&commands, &server).await?;
        let layout = layout::prepare(&commands, &server).await?;
        let hints = Wakeups::default();
        let background = vec![
            tokio::spawn(wakeups::follow(commands.clone(), hints.clone())).abort_handle(),
            tokio::spawn(wakeups::tick(commands.settings.hint_every, hints.clone())).abort_handle(),
        ];
        Ok(Self {
            commands,
            hints,
            locks: Arc::default(),
            claims: Arc::default(),
            unknown_commits: Arc::default(),
            claim_memory: Arc::default(),
            numbering: Arc::default(),
            layout,
            _background: Arc::new(BackgroundTasks(background)),
        })
    }
}

/// Fixed options: reads from the primary, writes acknowledged by a majority.
fn set(options: &mut ClientOptions, settings: &MongoSettings) {
    options.app_name.get_or_insert_with(|| "sutler".to_owned());
    options.max_pool_size.get_or_insert(settings.connections);
    options.connect_timeout = Some(settings.connect_timeout);
    options.server_selection_timeout = Some(settings.select_timeout);
    options.read_concern = Some(ReadConcern::majority());
    options.selection_criteria = Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
    let concern = WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true);
    options.write_concern = Some(concern.build());
    options.retry_writes = Some(true);
}

impl fmt::Debug for MongoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MongoStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        self.apply(commit).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        Ok(self.read_one(key).await?)
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.whole(id).await?)
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        Ok(self.polled(lane, id).await?)
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        Ok(self.page(list, after, limit).await?)
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        Ok(self.with_terms(from, limit).await?)
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        Ok(self.rows(list).await?)
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        lease_call_within(ttl, self.prolong(worker, ttl)).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        lease_call_within(CLAIM_TIME_MAX, self.hand_out(worker, queues)).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        Ok(self.let_go(worker).await?)
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        self.feed(after, limit).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe_to_feed()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        Ok(self.throw_away(sweep).await?)
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        Ok(self.counts().await?)
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        Ok(self.read_info().await?)
    }

    async fn feed_length(&self) -> Result<u64, StoreError> {
        Ok(self.count_feed().await?)
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.time().await?)
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        Ok(self.add_to_log(operation, text).await?)
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        Ok(self.log(operation, from, limit).await?)
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        Ok(self.replace_piece(operation, read, text).await?)
    }
}
