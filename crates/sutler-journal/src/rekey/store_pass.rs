//! One pass over everything that is sealed in a store: pages of documents, then of operations with their logs.
//!
//! Records are handled several at a time, each by `reseal.rs`. Without keys they are only counted.

use super::reseal::{RecordResult, ResealError, Resealer};
use super::{KeyUsage, RecordCounts, RekeyFailure, RekeyProgress};
use crate::document::IndexedDocument;
use crate::inspect::{next_documents, some_operations};
use crate::operation::OperationId;
use crate::seal::KeyRing;
use crate::store::{Store, StoreError};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Records handled concurrently: few, because brokers use the store meanwhile.
const AT_ONCE: usize = 8;
/// Chunks of a log per read.
const CHUNKS: usize = 16;
/// Maximum failures that are listed.
const FAILURES_MAX: usize = 20;

/// Result of a pass.
#[derive(Debug, Default)]
pub(super) struct PassResult {
    /// The keys of all records afterwards.
    pub(super) usage: KeyUsage,
    pub(super) resealed: RecordCounts,
    /// Records that others changed again and again.
    pub(super) contended: u64,
    pub(super) failures: Vec<RekeyFailure>,
    pub(super) failed: u64,
}

/// Kind of a record.
#[derive(Clone, Copy)]
enum RecordKind {
    Document,
    Operation,
    LogChunk,
}

impl RecordKind {
    fn one(self) -> RecordCounts {
        let mut one = RecordCounts::default();
        match self {
            Self::Document => one.documents = 1,
            Self::Operation => one.operations = 1,
            Self::LogChunk => one.log_chunks = 1,
        }
        one
    }
}

/// The records that one task handled.
type TaskRecords = Vec<(RecordKind, Result<RecordResult, ResealError>)>;

/// A pass that runs.
pub(super) struct Pass<'p> {
    resealer: Arc<Resealer>,
    progress: &'p watch::Sender<RekeyProgress>,
    result: PassResult,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        keys: Option<&Arc<KeyRing>>,
        progress: &'p watch::Sender<RekeyProgress>,
    ) -> Self {
        let resealer = Resealer {
            store: Arc::clone(store),
            keys: keys.map(Arc::clone),
        };
        Self {
            resealer: Arc::new(resealer),
            progress,
            result: PassResult::default(),
        }
    }

    pub(super) async fn run(mut self) -> Result<PassResult, StoreError> {
        let store = Arc::clone(&self.resealer.store);
        let mut from = Some(Vec::new());
        while let Some(start) = from {
            let (page, next) = next_documents(&*store, &start).await?;
            self.all(page.into_iter().map(Item::Document)).await?;
            from = next;
        }
        let mut before = None;
        loop {
            let rows = some_operations(&*store, before).await?;
            let Some(last) = rows.last() else {
                return Ok(self.result);
            };
            before = Some(last.id);
            let ids: Vec<OperationId> = rows.iter().map(|row| row.id).collect();
            self.all(ids.into_iter().map(Item::Operation)).await?;
        }
    }

    async fn all(&mut self, items: impl Iterator<Item = Item>) -> Result<(), StoreError> {
        let mut tasks = JoinSet::new();
        for item in items {
            if tasks.len() == AT_ONCE {
                self.take_next(&mut tasks).await?;
            }
            tasks.spawn(handle(Arc::clone(&self.resealer), item));
        }
        while !tasks.is_empty() {
            self.take_next(&mut tasks).await?;
        }
        Ok(())
    }

    async fn take_next(
        &mut self,
        tasks: &mut JoinSet<Result<TaskRecords, StoreError>>,
    ) -> Result<(), StoreError> {
        let Some(ended) = tasks.join_next().await else {
            return Ok(());
        };
        let broken = |cause| StoreError::caused("a record was broken off", cause);
        for (kind, result) in ended.map_err(broken)?? {
            self.count(kind, result);
        }
        Ok(())
    }

    fn count(&mut self, kind: RecordKind, result: Result<RecordResult, ResealError>) {
        let one = kind.one();
        self.result.usage.seen.add(one);
        let mut resealed = RecordCounts::default();
        match result {
            Ok(done) => {
                for key in done.keys {
                    self.result.usage.by_key.entry(key).or_default().add(one);
                }
                if done.resealed {
                    resealed = one;
                }
                self.result.contended += u64::from(done.contended);
            }
            Err(error) => {
                for key in error.keys {
                    self.result.usage.by_key.entry(key).or_default().add(one);
                }
                self.result.usage.damaged += u64::from(error.damaged);
                self.result.failed += 1;
                if self.result.failures.len() < FAILURES_MAX {
                    self.result.failures.push(error.failure);
                }
            }
        }
        self.result.resealed.add(resealed);
        self.progress.send_modify(|progress| {
            progress.seen.add(one);
            progress.resealed.add(resealed);
        });
    }
}

/// A record to handle; an operation includes its log.
enum Item {
    Document(IndexedDocument),
    Operation(OperationId),
}

async fn handle(resealer: Arc<Resealer>, item: Item) -> Result<TaskRecords, StoreError> {
    let mut handled = Vec::new();
    match item {
        Item::Document(indexed) => {
            let done = resealer.document(indexed).await?;
            handled.extend(done.map(|it| (RecordKind::Document, it)));
        }
        Item::Operation(id) => {
            let done = resealer.operation(id).await?;
            let exists = done.is_some();
            handled.extend(done.map(|it| (RecordKind::Operation, it)));
            let mut from = Some(0);
            while let Some(start) = from.filter(|_| exists) {
                let chunks = resealer.store.read_log(id, start, CHUNKS).await?;
                from = chunks.last().and_then(|it| it.number.checked_add(1));
                for chunk in chunks {
                    let done = resealer.log_chunk(id, chunk).await?;
                    handled.extend(done.map(|it| (RecordKind::LogChunk, it)));
                }
            }
        }
    }
    Ok(handled)
}
