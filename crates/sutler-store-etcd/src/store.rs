//! Entry point: opens a store, and implements the journal's `Store`.

use crate::client::{Client, RequestEffect};
use crate::keys::Keys;
use crate::rows;
use crate::settings::{EtcdSettings, InvalidUrlError};
use crate::unknown_commits::UnknownCommits;
use crate::watch_view::WatchFollower;
use crate::wire::{Compare, Range, RequestOp, Txn};
use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
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

/// Layout version that this program writes; see `keys.rs`.
const FORMAT: u64 = 1;

/// Why a store was not opened. Contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum EtcdOpenError {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] InvalidUrlError),
    /// etcd does not respond, or refuses the login.
    #[error("the etcd store cannot be opened")]
    Unavailable(#[source] StoreError),
    /// A newer program wrote here.
    #[error(
        "what is in etcd was written in format {0}, and this program knows formats up to {FORMAT}: run a newer sutler"
    )]
    Newer(u64),
}

/// The journal in etcd. Any number of replicas share it; each follows the others through a watch,
/// which ends on drop.
pub struct EtcdStore {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
    pub(crate) follower: Arc<WatchFollower>,
    pub(crate) unknown_commits: UnknownCommits,
    pub(crate) layout: Layout,
    following: JoinHandle<()>,
}

impl EtcdStore {
    /// Opens the store at a URL, or creates it. Format of the URL: see [`EtcdSettings`].
    ///
    /// # Errors
    /// See [`EtcdOpenError`].
    pub async fn open(url: &SecretString) -> Result<Self, EtcdOpenError> {
        Self::open_with(&EtcdSettings::from_url(url.expose_secret())?).await
    }

    /// Opens a store with custom settings.
    ///
    /// # Errors
    /// See [`EtcdOpenError`].
    pub async fn open_with(settings: &EtcdSettings) -> Result<Self, EtcdOpenError> {
        let client = Arc::new(Client::new(settings).map_err(EtcdOpenError::Unavailable)?);
        let keys = Keys::below(&settings.prefix);
        let layout = agree_on_format(&client, &keys).await?;
        let follower =
            WatchFollower::load(Arc::clone(&client), keys.clone(), settings.request_timeout);
        let follower = Arc::new(follower.await.map_err(EtcdOpenError::Unavailable)?);
        let following = tokio::spawn(Arc::clone(&follower).run());
        Ok(Self {
            client,
            keys,
            follower,
            unknown_commits: UnknownCommits::default(),
            layout,
            following,
        })
    }
}

impl EtcdStore {
    /// The operation that every change includes. It gives all replicas a lower bound of the time.
    pub(crate) fn head(&self) -> RequestOp {
        RequestOp::put(self.keys.head(), rows::time(self.client.clock.now()))
    }
}

/// Writes the layout version if there is none, and refuses a newer one. However many replicas
/// start concurrently, one of them writes it. Returns the version found.
async fn agree_on_format(client: &Client, keys: &Keys) -> Result<Layout, EtcdOpenError> {
    let layout = |found| Layout { found, now: FORMAT };
    let place = keys.format();
    // The first response also has the time of etcd, before anything is written.
    let found = client.range(&Range::one(place.clone())).await;
    found.map_err(|it| EtcdOpenError::Unavailable(it.into()))?;
    let txn = Txn {
        compare: vec![Compare::absent(place.clone())],
        success: vec![
            RequestOp::put(place.clone(), FORMAT.to_string().into_bytes()),
            RequestOp::put(keys.head(), rows::time(client.clock.now())),
        ],
        failure: vec![RequestOp::Range(Range::one(place))],
    };
    // It can be repeated: an existing version is not written again.
    let answer = client.txn(&txn, RequestEffect::Reads).await;
    let answer = answer.map_err(|it| EtcdOpenError::Unavailable(it.into()))?;
    let mut found = answer.ranges().filter_map(|it| it.kvs.first());
    let Some(kv) = found.next() else {
        return Ok(layout(0));
    };
    let number = std::str::from_utf8(&kv.value.0).unwrap_or_default().parse();
    match number {
        Ok(number) if number <= FORMAT => Ok(layout(number)),
        Ok(number) => Err(EtcdOpenError::Newer(number)),
        Err(_) => Err(EtcdOpenError::Unavailable(crate::codec::damaged(
            "the format",
        ))),
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        self.apply(commit).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.read_one(key).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.whole(id).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        self.polled(lane, id).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.page(list, after, limit).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        self.documents_with_terms(from, limit).await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        self.rows(list).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        lease_call_within(ttl, self.prolong(worker, ttl)).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        lease_call_within(CLAIM_TIME_MAX, self.assign(worker, queues)).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.let_go(worker).await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        self.feed(after, limit).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.follower.hints()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.follower.feed_hints()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        self.throw_away(sweep).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.counts().await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        self.read_info().await
    }

    async fn feed_length(&self) -> Result<u64, StoreError> {
        self.follower.catch_up().await?;
        Ok(self.follower.view()?.feed.len() as u64)
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let head = Range::one(self.keys.head());
        self.client.range(&head).await?;
        Ok(self.client.clock.now())
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        self.add_to_log(operation, text).await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        self.log(operation, from, limit).await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        self.replace_chunk(operation, read, text).await
    }
}
