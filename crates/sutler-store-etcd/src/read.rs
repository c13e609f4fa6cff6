//! Reads: single records directly from etcd, lists through the view's indexes.
//!
//! A document, an operation and a poll are one key, read in its current state. A list first waits until
//! the view is current, then reads the listed rows at the view's own revision, so a page never mixes
//! the states before and after a commit.

use crate::client::EtcdError;
use crate::rows::{
    OperationValue, OperationValues, StoredOperation, read_document, read_operation, read_record,
};
use crate::store::EtcdStore;
use crate::view::View;
use crate::wire::{KeyValue, Range};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use sutler_journal::{
    Change, Changes, CommitId, Cursor, Document, Key, List, Operation, OperationId, OperationList,
    OperationRow, Page, PolledOperation, Position, Stats, StoreError,
};

/// Attempts to read a row that is deleted concurrently.
pub(crate) const READS_MAX: usize = 5;
/// Maximum commits per read of the feed.
const COMMITS_MAX: usize = 500;

/// The contents of an operation.
pub(crate) struct OperationContents {
    pub(crate) detail: Bytes,
    pub(crate) request: Bytes,
    pub(crate) progress: Bytes,
}

impl EtcdStore {
    pub(crate) async fn read_one(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        let range = Range::one(self.keys.document(key));
        let answer = self.client.range(&range).await?;
        let found = answer.kvs.first();
        found.map(|kv| document_of(key.clone(), kv)).transpose()
    }

    async fn job(&self, id: OperationId) -> Result<Option<(StoredOperation, i64)>, StoreError> {
        let range = Range::one(self.keys.operation(id));
        let answer = self.client.range(&range).await?;
        let Some(kv) = answer.kvs.first() else {
            return Ok(None);
        };
        let job = read_operation(id, &kv.value.0)?;
        Ok(Some((job, answer.header.revision.0)))
    }

    pub(crate) async fn whole(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        for _ in 0..READS_MAX {
            let Some((job, revision)) = self.job(id).await? else {
                return Ok(None);
            };
            let parts = [job.parts.clone()];
            let contents = self.contents(&parts, Some(revision)).await?.pop();
            if let Some(contents) = contents.flatten() {
                return Ok(Some(operation_of(job, contents)));
            }
        }
        Err(restless())
    }

    pub(crate) async fn polled(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        for _ in 0..READS_MAX {
            let Some((job, revision)) = self.job(id).await? else {
                return Ok(None);
            };
            if job.row.lane != *lane {
                return Ok(None);
            }
            let nothing = OperationValue::Inline(Bytes::new());
            let parts = OperationValues {
                detail: job.parts.detail,
                request: nothing.clone(),
                progress: nothing,
            };
            let contents = self.contents(&[parts], Some(revision)).await?.pop();
            if let Some(contents) = contents.flatten() {
                return Ok(Some(PolledOperation {
                    state: job.row.state,
                    verb: job.row.verb,
                    detail: contents.detail,
                }));
            }
        }
        Err(restless())
    }

    /// Contents of operations, in order; `None` if an overflow value is gone. No round trip if
    /// nothing is in an overflow value.
    pub(crate) async fn contents(
        &self,
        parts: &[OperationValues],
        revision: Option<i64>,
    ) -> Result<Vec<Option<OperationContents>>, StoreError> {
        let mut overflows: BTreeMap<CommitId, Option<Bytes>> = BTreeMap::new();
        let used = parts.iter().flat_map(OperationValues::overflows);
        overflows.extend(used.map(|overflow| (overflow, None)));
        if !overflows.is_empty() {
            let keys: Vec<Vec<u8>> = overflows.keys().map(|it| self.keys.overflow(*it)).collect();
            let found = match self.client.get_all(&keys, revision).await {
                // A read of the current state shows whether it has changed.
                Err(EtcdError::Compacted) => self.client.get_all(&keys, None).await?,
                other => other?,
            };
            for (overflow, kv) in overflows.values_mut().zip(found) {
                *overflow = kv.map(|kv| kv.value.0);
            }
        }
        let read = |part: &OperationValue| match part {
            OperationValue::Inline(bytes) => Some(bytes.clone()),
            OperationValue::Overflow {
                overflow,
                at,
                length,
            } => {
                let overflow = overflows.get(overflow)?.as_ref()?;
                let fits = at.checked_add(*length)? <= overflow.len();
                fits.then(|| overflow.slice(*at..at + length))
            }
        };
        let contents = parts.iter().map(|parts| {
            Some(OperationContents {
                detail: read(&parts.detail)?,
                request: read(&parts.request)?,
                progress: read(&parts.progress)?,
            })
        });
        Ok(contents.collect())
    }

    pub(crate) async fn page(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        if limit == 0 {
            return Ok(Page {
                documents: Vec::new(),
                next: None,
            });
        }
        for _ in 0..READS_MAX {
            let find = |view: &View| {
                let places = view.list(list, after, limit).into_iter();
                let places = places.map(|(value, key)| Ok((value.to_vec(), key_of(&key)?)));
                places.collect::<Result<Vec<(Vec<u8>, Key)>, StoreError>>()
            };
            let (places, revision) = self.follower.current(find).await?;
            let listed = places.get(..limit.min(places.len())).unwrap_or_default();
            let keys: Vec<Vec<u8>> = listed.iter().map(|it| self.keys.document(&it.1)).collect();
            let found = match self.client.get_all(&keys, Some(revision)).await {
                Ok(found) => found,
                Err(EtcdError::Compacted) => continue,
                Err(other) => return Err(other.into()),
            };
            let mut documents = Vec::with_capacity(listed.len());
            for ((_, key), kv) in listed.iter().zip(&found) {
                if let Some(kv) = kv {
                    documents.push(document_of(key.clone(), kv)?);
                }
            }
            let more = places.len() > limit;
            let last = listed.last().filter(|_| more).cloned();
            let next = last.map(|(value, key)| Position { value, key });
            return Ok(Page { documents, next });
        }
        Err(restless())
    }

    pub(crate) async fn rows(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        for _ in 0..READS_MAX {
            let find = |view: &View| Ok(view.operations.list(list));
            let (ids, revision) = self.follower.current(find).await?;
            let keys: Vec<Vec<u8>> = ids.iter().map(|id| self.keys.operation(*id)).collect();
            let found = match self.client.get_all(&keys, Some(revision)).await {
                Ok(found) => found,
                Err(EtcdError::Compacted) => continue,
                Err(other) => return Err(other.into()),
            };
            let mut jobs = Vec::with_capacity(ids.len());
            for (id, kv) in ids.iter().zip(found) {
                if let Some(kv) = kv {
                    jobs.push(read_operation(*id, &kv.value.0)?);
                }
            }
            let nothing = || OperationValue::Inline(Bytes::new());
            let parts = jobs.iter().map(|job| OperationValues {
                detail: job.parts.detail.clone(),
                request: nothing(),
                progress: nothing(),
            });
            let parts: Vec<OperationValues> = parts.collect();
            let contents = self.contents(&parts, Some(revision)).await?;
            let rows = jobs
                .into_iter()
                .zip(contents)
                .filter_map(|(job, contents)| {
                    let detail = contents?.detail;
                    Some(OperationRow { detail, ..job.row })
                });
            return Ok(rows.collect());
        }
        Err(restless())
    }

    pub(crate) async fn feed(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let requested = revision_of(after)?;
        let mut reached = requested;
        let mut changes: Vec<Change> = Vec::new();
        let mut tries = 0;
        loop {
            let find = |view: &View| {
                let trimmed = view.trimmed.value;
                let after = Bound::Excluded(reached.max(trimmed));
                let newer = view.feed.range((after, Bound::Unbounded));
                let newer = newer.take(limit.clamp(1, COMMITS_MAX));
                let commits: Vec<(i64, CommitId)> = newer.map(|(at, it)| (*at, it.0)).collect();
                Ok((commits, trimmed))
            };
            let ((commits, trimmed), revision) = self.follower.current(find).await?;
            reached = reached.max(trimmed);
            let keys: Vec<Vec<u8>> = commits.iter().map(|it| self.keys.commit(it.1)).collect();
            let found = match self.client.get_all(&keys, Some(revision)).await {
                Err(EtcdError::Compacted) if tries < READS_MAX => {
                    tries += 1;
                    continue;
                }
                found => found?,
            };
            let some = !commits.is_empty();
            for ((at, commit), kv) in commits.into_iter().zip(found) {
                let Some(kv) = kv else { break };
                let subjects = read_record(&kv.value.0)?.subjects;
                let full = changes.len() + subjects.len() > limit;
                if full && !changes.is_empty() {
                    break;
                }
                let view = self.follower.view()?;
                let lane_of = |id| Some(view.operations.get(id)?.row.lane.clone());
                changes.extend(subjects.into_iter().map(|subject| Change {
                    commit,
                    lane: subject.operation().and_then(lane_of),
                    subject,
                }));
                reached = at;
            }
            // Commits without changes are skipped: an empty response would look like the end.
            if changes.is_empty() && some {
                continue;
            }
            return Ok(Changes {
                changes,
                next: Cursor::of_number(reached.unsigned_abs()),
                gap: requested < trimmed,
            });
        }
    }

    pub(crate) async fn counts(&self) -> Result<Stats, StoreError> {
        let count = |view: &View| {
            let (live, terminal) = view.operations.counts();
            let cleaned = u64::try_from(view.cleaned.value).unwrap_or_default();
            Ok(Stats {
                accepted: live + terminal + cleaned,
                live,
                terminal,
                cleaned,
                queues: view.operations.queues(),
            })
        };
        Ok(self.follower.current(count).await?.0)
    }
}

pub(crate) fn operation_of(job: StoredOperation, contents: OperationContents) -> Operation {
    Operation {
        row: OperationRow {
            detail: contents.detail,
            ..job.row
        },
        request: contents.request,
        progress: contents.progress,
    }
}

fn document_of(key: Key, kv: &KeyValue) -> Result<Document, StoreError> {
    let stored = read_document(&kv.value.0)?;
    Ok(Document {
        key,
        version: stored.version,
        body: stored.body,
    })
}

pub(crate) fn key_of(bytes: &[u8]) -> Result<Key, StoreError> {
    Key::from_bytes(bytes).map_err(|cause| StoreError::caused("a key cannot be read back", cause))
}

pub(crate) fn restless() -> StoreError {
    StoreError::new("what was read kept changing under way; ask again")
}

fn revision_of(cursor: &Cursor) -> Result<i64, StoreError> {
    let foreign = "the cursor is none of this store's: begin anew with an empty one";
    let number = cursor
        .number()
        .and_then(|number| i64::try_from(number).ok());
    number.ok_or_else(|| StoreError::new(foreign))
}
