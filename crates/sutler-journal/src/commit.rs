//! The only way to change documents and operations: expectations and writes, all or nothing.
//!
//! A commit has an id chosen by its author. Repeating a commit that was applied is a no-op that
//! succeeds. This resolves a connection that broke during COMMIT without guessing.
//! Not here: the meaning of the writes for a lane (the crate above) and how they are stored (`Store`).

use crate::document::{TERMS_MAX, Term, Version};
use crate::key::Key;
use crate::nondeterminism::fresh_id;
use crate::operation::{Fence, Operation, OperationId, Outcome, Queue, WorkerId};
use crate::store::StoreError;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

/// Maximum writes in one commit; the smallest transaction limit of all stores.
pub const WRITES_MAX: usize = 100;
/// Maximum expectations in one commit.
pub const EXPECTS_MAX: usize = 100;
/// Maximum bytes in one commit; larger swaps write a generation in batches and flip one pointer.
pub const BYTES_MAX: usize = 1_000_000;

/// Permanent id of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(pub Uuid);

/// When an operation may be claimed, on the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At once.
    Now,
    /// After a while.
    In(Duration),
}

/// Initial state of a new operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It waits for another operation and is woken by a later commit.
    Waiting,
    /// Any worker may claim it when due.
    Ready(Due),
    /// The worker that accepted it runs it: the claim is part of this commit, with fence 1.
    /// If the worker holds no lease, the commit is stale at this write.
    Claimed(WorkerId),
}

/// A new operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// Id.
    pub id: OperationId,
    /// The resource it changes.
    pub lane: Key,
    /// Verb: `provision`, `unbind` …
    pub verb: &'static str,
    /// Queue in which it waits.
    pub queue: Queue,
    /// Initial state.
    pub start: Start,
    /// Sealed detail that a poll returns at first.
    pub detail: Bytes,
    /// Sealed request.
    pub request: Bytes,
}

/// Next state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The state stays; detail or progress changes. New progress resets takeovers to zero; a new detail alone is
    /// a text that a hook can write as often as it starts, and resets nothing.
    Same,
    /// The worker gives the operation back without having run it, and it may be claimed again when due. Takeovers stay
    /// as they are, also if the progress is replaced.
    PutBack(Due),
    /// The worker yields the operation, and it may be claimed again when due. Counts as progress.
    Ready(Due),
    /// This attempt is known to have ended; the next may be claimed when due. No progress:
    /// takeovers stay as they are.
    Retry(Due),
    /// It waits for another operation again, and a later commit wakes it. Its worker loses the claim, whether this
    /// commit is the worker's own or another's. Counts as progress.
    Waiting,
    /// It ended; no worker holds it.
    Done(Outcome),
}

/// A precondition of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such document.
    Absent(Key),
    /// The document that this commit writes or removes has the version that was read.
    Version(Key, Version),
    /// A document that is only read has the version that was read. Prevents write skew.
    Unchanged(Key, Version),
    /// The operation runs under this claim, and its worker's lease has not run out.
    Fence(OperationId, Fence),
}

/// One change. Writes are applied in their order; no two may contend for one document or operation (see
/// [`Commit::check`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces a document; its version becomes this commit's id.
    Put {
        /// Key.
        key: Key,
        /// Terms that replace the old ones.
        terms: Vec<Term>,
        /// Its sealed content.
        body: Bytes,
    },
    /// Removes a document; a no-op if there is none.
    Remove(Key),
    /// Adds an operation; it is pinned. Stale if the id is taken.
    Start(NewOperation),
    /// Advances an operation. Stale if there is none or it is done: an ended operation never changes.
    Advance {
        /// Operation to advance.
        operation: OperationId,
        /// Its next state.
        next: Next,
        /// Replaces the detail that a poll returns.
        detail: Option<Bytes>,
        /// Replaces the progress.
        progress: Option<Bytes>,
    },
    /// Requests cancellation of an operation. A no-op if it is done or does not exist.
    Cancel(OperationId),
    /// Makes a waiting or ready operation claimable now; one that is already due keeps its due time.
    /// A no-op if it runs, is done or does not exist.
    Wake(OperationId),
    /// Marks that no document points to the operation any more: a sweep may delete it once done.
    Unpin(OperationId),
    /// Replaces ciphertexts by the same plain texts under another key. Changes nothing else. Besides `Unpin` it is
    /// the only write allowed on an ended operation. Stale if there is none, or if its detail or
    /// progress is not as read, so a concurrent write of a worker is never overwritten.
    Reseal {
        /// Operation to reseal.
        operation: OperationId,
        /// The detail and the progress as they were read.
        read: (Bytes, Bytes),
        /// The detail, sealed with another key.
        detail: Bytes,
        /// The request, sealed with another key.
        request: Bytes,
        /// The progress, sealed with another key.
        progress: Bytes,
    },
    /// Adds an operation of another store; a running one is added as ready, due now.
    /// Stale if the id is taken.
    Import(Box<Operation>),
}

/// The part of a commit that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleItem {
    /// The n-th expectation.
    Expect(usize),
    /// The n-th write.
    Write(usize),
}

/// Why a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another commit came first; nothing was written. Read and decide again.
    #[error("a newer write came first ({0:?})")]
    Stale(StaleItem),
    /// Nothing was written, and nothing will be.
    #[error("the store did not take the write")]
    NotWritten(#[source] StoreError),
    /// It may or may not have been written. Repeat the same commit to find out.
    #[error("it is not known whether the store took the write")]
    Unknown(#[source] StoreError),
}

/// A commit that every store refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitSizeError {
    /// Too many writes.
    #[error("a commit has at most {WRITES_MAX} writes, not {0}")]
    Writes(usize),
    /// Too many expectations.
    #[error("a commit has at most {EXPECTS_MAX} expectations, not {0}")]
    Expects(usize),
    /// Too many bytes.
    #[error("a commit has at most {BYTES_MAX} bytes, not {0}")]
    Bytes(usize),
    /// Too many terms on one document, or too long a value.
    #[error("a document has at most {TERMS_MAX} terms of at most 512 bytes each")]
    Terms,
    /// Two writes contend for one document or one operation, so the result would be ambiguous.
    #[error("write {0} contends with an earlier write of the same commit")]
    Contending(usize),
}

/// Expectations and writes under one id.
#[derive(Clone, Debug)]
pub struct Commit {
    id: CommitId,
    expects: Vec<Expect>,
    writes: Vec<Write>,
}

impl Default for Commit {
    fn default() -> Self {
        Self::new()
    }
}

impl Commit {
    /// An empty commit with a fresh id.
    pub fn new() -> Self {
        Self {
            id: CommitId(fresh_id()),
            expects: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// The same expectations and writes under the caller's id; for tests and copies.
    #[must_use]
    pub fn with_id(mut self, id: CommitId) -> Self {
        self.id = id;
        self
    }

    /// Creates a document that must not exist yet.
    #[must_use]
    pub fn insert(mut self, key: Key, terms: Vec<Term>, body: Bytes) -> Self {
        self.expects.push(Expect::Absent(key.clone()));
        self.writes.push(Write::Put { key, terms, body });
        self
    }

    /// Replaces a document that must have the version that was read.
    #[must_use]
    pub fn replace(mut self, key: Key, read: Version, terms: Vec<Term>, body: Bytes) -> Self {
        self.expects.push(Expect::Version(key.clone(), read));
        self.writes.push(Write::Put { key, terms, body });
        self
    }

    /// Removes a document that must have the version that was read.
    #[must_use]
    pub fn remove(mut self, key: Key, read: Version) -> Self {
        self.expects.push(Expect::Version(key.clone(), read));
        self.writes.push(Write::Remove(key));
        self
    }

    /// Requires that a document that is only read has the version that was read.
    #[must_use]
    pub fn unchanged(mut self, key: Key, read: Version) -> Self {
        self.expects.push(Expect::Unchanged(key, read));
        self
    }

    /// Requires that a document is absent.
    #[must_use]
    pub fn absent(mut self, key: Key) -> Self {
        self.expects.push(Expect::Absent(key));
        self
    }

    /// Requires that the claim is still valid.
    #[must_use]
    pub fn fenced(mut self, operation: OperationId, fence: Fence) -> Self {
        self.expects.push(Expect::Fence(operation, fence));
        self
    }

    /// Adds an operation.
    #[must_use]
    pub fn start(mut self, operation: NewOperation) -> Self {
        self.writes.push(Write::Start(operation));
        self
    }

    /// Advances an operation.
    #[must_use]
    pub fn advance(
        mut self,
        operation: OperationId,
        next: Next,
        detail: Option<Bytes>,
        progress: Option<Bytes>,
    ) -> Self {
        self.writes.push(Write::Advance {
            operation,
            next,
            detail,
            progress,
        });
        self
    }

    /// Adds any other write. For documents use `insert`, `replace` and `remove`.
    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Id; also the version of every document it writes.
    pub fn id(&self) -> CommitId {
        self.id
    }

    /// Preconditions.
    pub fn expects(&self) -> &[Expect] {
        &self.expects
    }

    /// Writes.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Checks the limits; every store calls this first.
    ///
    /// A document is put or removed at most once, and an operation is started, imported, advanced
    /// or resealed at most once. `Cancel`, `Wake` and `Unpin` may be combined with any of these.
    pub fn check(&self) -> Result<(), CommitSizeError> {
        if self.writes.len() > WRITES_MAX {
            return Err(CommitSizeError::Writes(self.writes.len()));
        }
        if self.expects.len() > EXPECTS_MAX {
            return Err(CommitSizeError::Expects(self.expects.len()));
        }
        let mut bytes = 0;
        let mut documents = BTreeSet::new();
        let mut operations = BTreeSet::new();
        for (n, write) in self.writes.iter().enumerate() {
            let first = match write {
                Write::Put { key, .. } | Write::Remove(key) => documents.insert(key),
                Write::Start(new) => operations.insert(new.id),
                Write::Import(operation) => operations.insert(operation.row.id),
                Write::Advance { operation, .. } | Write::Reseal { operation, .. } => {
                    operations.insert(*operation)
                }
                Write::Cancel(_) | Write::Wake(_) | Write::Unpin(_) => true,
            };
            if !first {
                return Err(CommitSizeError::Contending(n));
            }
            bytes += bytes_of(write);
            if let Write::Put { terms, .. } = write
                && (terms.len() > TERMS_MAX || terms.iter().any(|term| term.value.len() > 512))
            {
                return Err(CommitSizeError::Terms);
            }
        }
        if bytes > BYTES_MAX {
            return Err(CommitSizeError::Bytes(bytes));
        }
        Ok(())
    }
}

pub(crate) fn bytes_of(write: &Write) -> usize {
    let len = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    match write {
        Write::Put { key, terms, body } => {
            key.as_bytes().len() + body.len() + terms.iter().map(|t| t.value.len()).sum::<usize>()
        }
        Write::Start(new) => new.lane.as_bytes().len() + new.detail.len() + new.request.len(),
        Write::Advance {
            detail, progress, ..
        } => len(detail) + len(progress),
        Write::Reseal {
            detail,
            request,
            progress,
            ..
        } => detail.len() + request.len() + progress.len(),
        Write::Import(operation) => {
            operation.row.detail.len() + operation.request.len() + operation.progress.len()
        }
        Write::Remove(_) | Write::Cancel(_) | Write::Wake(_) | Write::Unpin(_) => 0,
    }
}
