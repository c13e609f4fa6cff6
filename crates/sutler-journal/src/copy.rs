//! Copies one store into another of any kind, while the source is in use.
//!
//! Flow: documents and ended operations are copied in pages; then the source's feed is followed until
//! little is left; when the source is no longer in use, the copy is finished: the rest is copied, and both
//! stores are read and compared. The state of a copy is a document of the target that is written with the
//! data in every commit (`copy/copy_state.rs`), so a copy resumes after any interruption. Bodies stay
//! sealed: no key is needed. A finished copy marks its source (`copy/moved_mark.rs`). Design: `docs/adr/0008-…`.
//! Read `copy/bulk_copy.rs`, `copy/catch_up.rs`, `copy/finish.rs`, in this order. Not here: the consistency of the
//! contents (`inspect.rs`).

mod batch_writer;
mod bulk_copy;
mod catch_up;
mod compare;
mod copy_state;
mod finish;
mod moved_mark;
mod operation_with_log;
mod repair;

pub use moved_mark::{UnusableStoreError, check_usable, expect_not_moved, moved_to, reopen};

use crate::key::Key;
use crate::operation::OperationId;
use crate::printable::printable;
use crate::query::{Cursor, OperationFilter, OperationList};
use crate::store::{Store, StoreError};
use batch_writer::BatchWriter;
use catch_up::CatchUpResult;
use copy_state::{CopyPosition, CopyState};
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum changes per read of the feed.
const CHANGES_MAX: usize = 200;
/// Maximum changes skipped per read while searching for the end of the feed.
const SKIPPED_MAX: usize = 1000;
/// A read of the feed that returns at most this many changes counts as near its end.
const NEARLY: usize = 100;

/// One of the two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The store that is copied.
    Source,
    /// The store that is copied into.
    Target,
}

/// Why a copy stops.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store did not answer.
    #[error("the {} did not answer; when it does again, the same command goes on from here", match side {
        Side::Source => "source",
        Side::Target => "target",
    })]
    Store {
        /// Source or target.
        side: Side,
        /// Cause.
        #[source]
        cause: StoreError,
    },
    /// The target is not empty.
    #[error("the target is not empty, and no copy into it was begun: name an empty store")]
    NotEmpty,
    /// The target is a copy of another source.
    #[error(
        "the target holds an unfinished copy of {0}: go on with that one, or name an empty store"
    )]
    OtherSource(String),
    /// The source was moved to another target.
    #[error(
        "the source was moved to {0}: copy from that store, or run `sutler store reopen` on the source first"
    )]
    Moved(String),
    /// The target is a finished copy of a source that was reopened, or that was never marked.
    #[error(
        "the target holds a finished copy of this source, which was reopened since: name an empty store"
    )]
    Reopened,
    /// A later version of this program started the copy.
    #[error("this copy was begun by a newer program: go on with that, or name an empty store")]
    Newer,
    /// Another process writes to the same target.
    #[error(
        "another process copies into this target, too: stop one of them and repeat the command"
    )]
    TakenOver,
    /// Workers hold leases in the source.
    #[error(
        "workers still hold leases in the source ({0}): stop all brokers on it, wait for half a minute \
         if one was killed, and repeat the command with --finish"
    )]
    InUse(u64),
    /// The source changed while the copy was finished.
    #[error(
        "the source was changed while the copy was finished: stop all brokers on it and repeat the \
         command with --finish"
    )]
    Changed,
    /// It does not fit into one commit.
    #[error(
        "{0} is larger than a commit may be and cannot be copied: remove it, or let it be swept"
    )]
    TooLarge(String),
    /// The two stores still differ.
    #[error(
        "{documents} documents and {operations} operations still differ after all was copied again: \
         check whether another program writes to the target, and repeat the command with --finish"
    )]
    Different {
        /// Number of documents.
        documents: u64,
        /// Number of operations.
        operations: u64,
    },
}

impl CopyError {
    fn of(side: Side) -> impl Fn(StoreError) -> Self {
        move |cause| Self::Store { side, cause }
    }
}

/// Current step of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyStep {
    /// Searching for the end of the feed, before anything is copied.
    #[default]
    Beginning,
    /// Copying documents.
    Documents,
    /// Copying operations that ended.
    Operations,
    /// Following changes of the source.
    Following,
    /// Reading both stores and comparing them.
    Comparing,
}

/// Progress of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Current step.
    pub step: CopyStep,
    /// Documents copied so far, including earlier runs.
    pub documents: u64,
    /// Operations copied so far, including earlier runs.
    pub operations: u64,
    /// Changes followed in this run.
    pub changes: u64,
    /// Documents and operations compared in this pass.
    pub compared: u64,
}

/// A finished copy: both stores held the same contents at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Documents in each store.
    pub documents: u64,
    /// Operations in each store.
    pub operations: u64,
    /// SHA-256 over the contents of both, in hexadecimal digits.
    pub digest: String,
}

/// Names of both stores, without secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNames<'n> {
    /// The store that is copied.
    pub source: &'n str,
    /// The store that is copied into.
    pub target: &'n str,
}

/// A copy in progress.
pub struct StoreCopy {
    source: Arc<dyn Store>,
    target: Arc<dyn Store>,
    target_name: String,
    writer: BatchWriter,
    progress: watch::Sender<CopyProgress>,
    finished: Option<CopyReport>,
}

/// Whether a document belongs to copying, in a source or in a target, and is not one of the store's own.
pub fn is_copy_document(key: &Key) -> bool {
    copy_state::is_ours(key)
}

/// Whether a store is the target of an unfinished copy; then nothing else may use it.
///
/// # Errors
/// The store did not answer.
pub async fn is_unfinished(store: &dyn Store) -> Result<bool, StoreError> {
    let found = store.get(&copy_state::key()).await?;
    let state = found.map(|document| CopyState::read(&document.body));
    Ok(state.is_some_and(|state| !state.is_ok_and(|it| it.is_finished())))
}

impl StoreCopy {
    /// Starts or resumes a copy.
    ///
    /// # Errors
    /// The target must be empty, or an unfinished copy of the same source. The source must not be moved to
    /// another store.
    pub async fn begin(
        source: Arc<dyn Store>,
        target: Arc<dyn Store>,
        names: CopyNames<'_>,
    ) -> Result<Self, CopyError> {
        let is_moved = moved_mark::is_moved_to(&*source, names.target).await?;
        let at_target = CopyError::of(Side::Target);
        let progress = watch::Sender::default();
        let found = target.get(&copy_state::key()).await.map_err(&at_target)?;
        let (writer, finished) = match found {
            Some(document) => {
                let state = CopyState::read(&document.body)?;
                if state.source != names.source {
                    return Err(CopyError::OtherSource(printable(&state.source)));
                }
                let finished = state.finished();
                // The mark is written before the copy counts as finished.
                if finished.is_some() && !is_moved {
                    return Err(CopyError::Reopened);
                }
                (
                    BatchWriter::over(&target, document.version, state),
                    finished,
                )
            }
            None => {
                if !is_empty(&*target).await.map_err(&at_target)? {
                    return Err(CopyError::NotEmpty);
                }
                let feed = end_of_feed(&*source).await;
                let feed = feed.map_err(CopyError::of(Side::Source))?;
                let state = CopyState::new(names.source, feed.0);
                (BatchWriter::first(&target, state).await?, None)
            }
        };
        let copying = Self {
            source,
            target,
            target_name: names.target.to_owned(),
            writer,
            progress,
            finished,
        };
        copying.report_step(CopyStep::Beginning);
        Ok(copying)
    }

    /// Progress, updated while it runs.
    pub fn progress(&self) -> watch::Receiver<CopyProgress> {
        self.progress.subscribe()
    }

    /// The result, if this copy was finished before.
    pub fn finished(&self) -> Option<&CopyReport> {
        self.finished.as_ref()
    }

    /// Copies while the source is in use, until few changes are left.
    ///
    /// # Errors
    /// See [`CopyError`]. Copied data stays, and the next call resumes.
    pub async fn catch_up(&mut self) -> Result<(), CopyError> {
        loop {
            match self.writer.state.place.clone() {
                CopyPosition::Documents { from } => self.copy_documents(from.0).await?,
                CopyPosition::Operations { before } => self.copy_operations(before).await?,
                CopyPosition::Following => match self.follow(NEARLY).await? {
                    CatchUpResult::CaughtUp => return Ok(()),
                    // The feed was trimmed before it was read: everything is scanned again.
                    CatchUpResult::FeedGap => {}
                },
                CopyPosition::Finished { .. } => return Ok(()),
            }
        }
    }

    fn report_step(&self, step: CopyStep) {
        let state = &self.writer.state;
        self.progress.send_modify(|progress| {
            progress.step = step;
            progress.documents = state.documents;
            progress.operations = state.operations;
        });
    }
}

async fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    let documents = store.scan_documents(&[], 1).await?;
    let operations = store.operations(&every(None, 1)).await?;
    Ok(documents.is_empty() && operations.is_empty())
}

/// A cursor near the end of the feed. Changes after it are copied again, so a cursor that is too early
/// is harmless; the exact end may never be found while others commit.
async fn end_of_feed(store: &dyn Store) -> Result<Cursor, StoreError> {
    let mut cursor = Cursor::default();
    loop {
        let part = store.changes(&cursor, SKIPPED_MAX).await?;
        cursor = part.next;
        if part.changes.len() <= NEARLY {
            return Ok(cursor);
        }
    }
}

fn every(before: Option<OperationId>, limit: usize) -> OperationList {
    OperationList {
        filter: OperationFilter::All,
        before,
        limit,
    }
}

/// The first bytes sorted after a key.
fn bytes_after(key: &Key) -> Vec<u8> {
    [key.as_bytes(), &[0]].concat()
}
