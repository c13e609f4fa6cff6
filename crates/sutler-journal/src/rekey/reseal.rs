//! Seals one record again: a document, an operation, or a chunk of a log.
//!
//! Each record is a commit of its own, or a conditional write of a chunk. A concurrent writer wins; the
//! record is then read again. Lifecycle, terms, claims and fences stay as they are, so running operations
//! are not disturbed.

use super::RekeyFailure;
use crate::commit::{Commit, CommitError, Write};
use crate::commit_retry::commit_until_known;
use crate::document::IndexedDocument;
use crate::inspect::record_name;
use crate::operation::{Operation, OperationId};
use crate::query::LogChunk;
use crate::seal::{KeyId, KeyRing, SealContext, SealError};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Attempts to seal a record that others keep changing.
const TRIES: u32 = 4;

/// Seals records with the current key, or only reads their keys.
pub(super) struct Resealer {
    pub(super) store: Arc<dyn Store>,
    /// `None`: nothing is changed.
    pub(super) keys: Option<Arc<KeyRing>>,
}

/// State of a record afterwards.
#[derive(Debug, Default)]
pub(super) struct RecordResult {
    pub(super) keys: BTreeSet<KeyId>,
    pub(super) resealed: bool,
    /// It was changed by others in every attempt.
    pub(super) contended: bool,
}

/// A record that cannot be sealed again.
#[derive(Debug)]
pub(super) struct ResealError {
    pub(super) failure: RekeyFailure,
    /// The keys that its parts name.
    pub(super) keys: BTreeSet<KeyId>,
    /// A part of it names no key.
    pub(super) damaged: bool,
}

/// Result for a record that exists.
type RecordOutcome = Result<RecordResult, ResealError>;

/// Outcome of one attempt.
enum Attempt {
    Done(RecordOutcome),
    /// Others were first.
    Stale(BTreeSet<KeyId>),
}

impl Resealer {
    /// Seals a document; `None` if it was removed, or if it is empty.
    pub(super) async fn document(
        &self,
        mut indexed: IndexedDocument,
    ) -> Result<Option<RecordOutcome>, StoreError> {
        for tries_left in (0..TRIES).rev() {
            if indexed.document.body.is_empty() {
                return Ok(None);
            }
            match self.try_document(&indexed).await? {
                Attempt::Done(handled) => return Ok(Some(handled)),
                Attempt::Stale(keys) if tries_left == 0 => return Ok(Some(contended(keys))),
                Attempt::Stale(_) => {}
            }
            let key = indexed.document.key;
            let found = self.store.scan_documents(key.as_bytes(), 1).await?;
            match found.into_iter().find(|it| it.document.key == key) {
                Some(found) => indexed = found,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    async fn try_document(&self, indexed: &IndexedDocument) -> Result<Attempt, StoreError> {
        let document = &indexed.document;
        let place = SealContext::Document(&document.key);
        let name = || record_name(&document.key);
        let (keys, body) = match self.reseal([(place, &document.body)], name) {
            Ok((keys, [body])) => (keys, body),
            Err(error) => return Ok(Attempt::Done(Err(error))),
        };
        let Some(body) = body else {
            return Ok(unchanged(keys));
        };
        let (key, read) = (document.key.clone(), document.version);
        let commit = Commit::new().replace(key, read, indexed.terms.clone(), body);
        self.commit(commit, keys, name).await
    }

    /// Seals all parts of an operation; `None` if it was swept.
    pub(super) async fn operation(
        &self,
        id: OperationId,
    ) -> Result<Option<RecordOutcome>, StoreError> {
        for tries_left in (0..TRIES).rev() {
            let Some(operation) = self.store.operation(id).await? else {
                return Ok(None);
            };
            match self.try_operation(operation).await? {
                Attempt::Done(handled) => return Ok(Some(handled)),
                Attempt::Stale(keys) if tries_left == 0 => return Ok(Some(contended(keys))),
                Attempt::Stale(_) => {}
            }
        }
        Ok(None)
    }

    async fn try_operation(&self, operation: Operation) -> Result<Attempt, StoreError> {
        let id = operation.row.id;
        let name = || format!("operation {id}");
        let (old_detail, old_progress) = (operation.row.detail, operation.progress);
        let parts = [
            (SealContext::Detail(id), &old_detail),
            (SealContext::Request(id), &operation.request),
            (SealContext::Progress(id), &old_progress),
        ];
        let (keys, parts) = match self.reseal(parts, name) {
            Ok(resealed) => resealed,
            Err(error) => return Ok(Attempt::Done(Err(error))),
        };
        if parts.iter().all(Option::is_none) {
            return Ok(unchanged(keys));
        }
        let [detail, request, progress] = parts;
        let reseal = Write::Reseal {
            operation: id,
            detail: detail.unwrap_or_else(|| old_detail.clone()),
            request: request.unwrap_or(operation.request),
            progress: progress.unwrap_or_else(|| old_progress.clone()),
            read: (old_detail, old_progress),
        };
        self.commit(Commit::new().write(reseal), keys, name).await
    }

    /// Seals a chunk of a log; `None` if it is empty.
    pub(super) async fn log_chunk(
        &self,
        id: OperationId,
        chunk: LogChunk,
    ) -> Result<Option<RecordOutcome>, StoreError> {
        if chunk.text.is_empty() {
            return Ok(None);
        }
        let name = || format!("chunk {} of the log of operation {id}", chunk.number);
        let (keys, text) = match self.reseal([(SealContext::Log(id), &chunk.text)], name) {
            Ok((keys, [text])) => (keys, text),
            Err(error) => return Ok(Some(Err(error))),
        };
        let Some(text) = text else {
            return Ok(Some(kept(keys)));
        };
        match self.store.reseal_log(id, &chunk, text).await? {
            true => Ok(Some(self.done())),
            false => Ok(Some(contended(keys))),
        }
    }

    /// The keys that texts name, and the texts under the current key; `None` for those that have it.
    fn reseal<const N: usize>(
        &self,
        texts: [(SealContext<'_>, &Bytes); N],
        name: impl Fn() -> String,
    ) -> Result<(BTreeSet<KeyId>, [Option<Bytes>; N]), ResealError> {
        let failed = |error: SealError, keys: &BTreeSet<KeyId>| ResealError {
            damaged: error == SealError::Layout,
            keys: keys.clone(),
            failure: RekeyFailure {
                record: name(),
                reason: error.to_string(),
            },
        };
        let mut keys = BTreeSet::new();
        let mut resealed = [const { None }; N];
        let mut damage = None;
        for (_, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            match KeyId::of_sealed(text) {
                Ok(key) => {
                    keys.insert(key);
                }
                // The other parts have keys, which are counted.
                Err(error) => damage = Some(error),
            }
        }
        if let Some(error) = damage {
            return Err(failed(error, &keys));
        }
        let Some(ring) = &self.keys else {
            return Ok((keys, resealed));
        };
        for (slot, (place, text)) in resealed.iter_mut().zip(texts) {
            *slot = ring
                .reseal(place, text)
                .map_err(|error| failed(error, &keys))?;
        }
        Ok((keys, resealed))
    }

    async fn commit(
        &self,
        commit: Commit,
        keys: BTreeSet<KeyId>,
        name: impl Fn() -> String,
    ) -> Result<Attempt, StoreError> {
        if let Err(size) = commit.check() {
            let failure = RekeyFailure {
                record: name(),
                reason: size.to_string(),
            };
            return Ok(Attempt::Done(Err(ResealError {
                failure,
                keys,
                damaged: false,
            })));
        }
        match commit_until_known(&*self.store, &commit).await {
            Ok(()) => Ok(Attempt::Done(self.done())),
            Err(CommitError::Stale(_)) => Ok(Attempt::Stale(keys)),
            Err(CommitError::NotWritten(cause) | CommitError::Unknown(cause)) => Err(cause),
        }
    }

    /// A record that was sealed with the current key.
    fn done(&self) -> RecordOutcome {
        Ok(RecordResult {
            keys: self.keys.iter().map(|ring| ring.current()).collect(),
            resealed: true,
            contended: false,
        })
    }
}

fn kept(keys: BTreeSet<KeyId>) -> RecordOutcome {
    Ok(RecordResult {
        keys,
        ..RecordResult::default()
    })
}

fn unchanged(keys: BTreeSet<KeyId>) -> Attempt {
    Attempt::Done(kept(keys))
}

fn contended(keys: BTreeSet<KeyId>) -> RecordOutcome {
    Ok(RecordResult {
        keys,
        resealed: false,
        contended: true,
    })
}
