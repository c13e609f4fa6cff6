//! The indexes of one replica: the store at one revision. No I/O.
//!
//! etcd can list neither by term nor by due time, and a commit that wrote index entries would touch
//! as many keys as there are terms. So indexes are not in etcd at all: each replica reads the rows
//! once, then follows the watch, and so has the same maps as every other replica at the same
//! revision. Bodies are not included; contents of operations are, while they may be written again.
//! Read `view/operations.rs` for those, `watch_view.rs` for the caller of [`View::apply`].

mod operations;

use crate::keys::{KeyTarget, Keys};
use crate::rows::{self, read_document, read_record, read_time};
use crate::wire::{Event, EventKind, KeyValue};
pub(crate) use operations::{Operations, ViewOperation};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use sutler_journal::{
    CommitId, Key, List, OperationId, Position, StoreError, StoreTime, Version, WorkerId,
};

/// Realm, kind and name of a term, with NUL bytes between.
type Scope = Arc<[u8]>;
/// A term's value, and the key of a document that has it. Both are stored once and shared.
type TermEntry = (Arc<[u8]>, Arc<[u8]>);

/// A document without its body.
pub(crate) struct DocumentSummary {
    pub(crate) revision: i64,
    pub(crate) version: Version,
    terms: Vec<(Scope, Arc<[u8]>)>,
}

/// A live lease of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EtcdLease {
    pub(crate) id: i64,
    pub(crate) seconds: i64,
}

/// A number that only sweeps write, and the revision at which it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) value: i64,
    pub(crate) revision: i64,
}

/// The store at one revision.
#[derive(Default)]
pub(crate) struct View {
    /// All changes up to this revision are included.
    pub(crate) revision: i64,
    /// Revision of the last change made by a replica, as opposed to the end of a lease.
    pub(crate) head: i64,
    documents: BTreeMap<Arc<[u8]>, DocumentSummary>,
    terms: BTreeMap<Scope, BTreeSet<TermEntry>>,
    pub(crate) operations: Operations,
    pub(crate) workers: BTreeMap<WorkerId, EtcdLease>,
    /// Ids of workers, and the time of their first use.
    pub(crate) names: BTreeMap<WorkerId, StoreTime>,
    commits: HashMap<CommitId, i64>,
    /// Commits by revision, and their times.
    pub(crate) feed: BTreeMap<i64, (CommitId, StoreTime)>,
    pub(crate) trimmed: Counter,
    pub(crate) cleaned: Counter,
}

/// Effect of a change on those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewChange {
    /// An operation may have become claimable.
    Claimable,
    /// The feed has grown.
    Commit,
    /// No effect.
    Other,
}

impl View {
    pub(crate) fn document(&self, key: &Key) -> Option<&DocumentSummary> {
        self.documents.get(key.as_bytes())
    }

    pub(crate) fn remembers(&self, commit: CommitId) -> bool {
        self.commits.contains_key(&commit)
    }

    /// Applies one change. Changes come in the order of their revisions.
    pub(crate) fn apply(
        &mut self,
        keys: &Keys,
        event: &Event,
        now: StoreTime,
    ) -> Result<ViewChange, StoreError> {
        let kv = &event.kv;
        self.revision = self.revision.max(kv.mod_revision.0);
        let Some(place) = keys.place(&kv.key.0) else {
            return Ok(ViewChange::Other);
        };
        match event.kind {
            EventKind::Put => self.put(place, kv, now),
            EventKind::Delete => Ok(self.remove(place)),
        }
    }

    fn put(
        &mut self,
        place: KeyTarget<'_>,
        kv: &KeyValue,
        now: StoreTime,
    ) -> Result<ViewChange, StoreError> {
        let (value, revision) = (&kv.value.0, kv.mod_revision.0);
        match place {
            KeyTarget::Commit(id) => {
                let at = read_record(value)?.at;
                self.commits.insert(id, revision);
                self.feed.insert(revision, (id, at));
                return Ok(ViewChange::Commit);
            }
            KeyTarget::Document(key) => self.file(key, read_document(value)?, revision),
            KeyTarget::Head => self.head = revision,
            KeyTarget::Cleaned => self.cleaned = counter(value, revision)?,
            KeyTarget::Trimmed => self.trimmed = counter(value, revision)?,
            KeyTarget::Name(worker) => {
                self.names.insert(worker, read_time(value)?);
            }
            KeyTarget::Worker(worker) => {
                let seconds = read_time(value)?.0;
                let id = kv.lease.0;
                self.workers.insert(worker, EtcdLease { id, seconds });
            }
            KeyTarget::Operation(id) => {
                let job = rows::read_operation(id, value)?;
                return Ok(self.operations.put(job, revision, now));
            }
            KeyTarget::Other => {}
        }
        Ok(ViewChange::Other)
    }

    fn remove(&mut self, place: KeyTarget<'_>) -> ViewChange {
        match place {
            KeyTarget::Commit(id) => {
                if let Some(revision) = self.commits.remove(&id) {
                    self.feed.remove(&revision);
                }
            }
            KeyTarget::Document(key) => self.discard(key),
            KeyTarget::Name(worker) => {
                self.names.remove(&worker);
            }
            KeyTarget::Worker(worker) => {
                self.workers.remove(&worker);
                if self.operations.held(worker).next().is_some() {
                    return ViewChange::Claimable;
                }
            }
            KeyTarget::Operation(id) => self.operations.remove(id),
            KeyTarget::Head | KeyTarget::Cleaned | KeyTarget::Trimmed | KeyTarget::Other => {}
        }
        ViewChange::Other
    }

    fn file(&mut self, key: &[u8], stored: rows::DocumentRow, revision: i64) {
        self.discard(key);
        let key: Arc<[u8]> = key.into();
        let mut terms = Vec::with_capacity(stored.terms.len());
        for (name, value) in stored.terms {
            let scope = self.scope(&scope_of(&key, name.as_bytes()));
            let value: Arc<[u8]> = value.into();
            let index = self.terms.entry(Arc::clone(&scope)).or_default();
            index.insert((Arc::clone(&value), Arc::clone(&key)));
            terms.push((scope, value));
        }
        let sketch = DocumentSummary {
            revision,
            version: stored.version,
            terms,
        };
        self.documents.insert(key, sketch);
    }

    fn discard(&mut self, key: &[u8]) {
        let Some((key, sketch)) = self.documents.remove_entry(key) else {
            return;
        };
        for (scope, value) in sketch.terms {
            if let Some(index) = self.terms.get_mut(&scope) {
                index.remove(&(value, Arc::clone(&key)));
            }
        }
    }

    /// The shared copy of a scope.
    fn scope(&self, scope: &[u8]) -> Scope {
        match self.terms.get_key_value(scope) {
            Some((known, _)) => Arc::clone(known),
            None => scope.into(),
        }
    }

    /// The first entries of a list after a position; at most `limit`, and one more if there is one.
    pub(crate) fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Vec<TermEntry> {
        let most = limit.saturating_add(1);
        match list {
            List::Prefix(prefix) => self.list_by_key(prefix, after, most),
            List::Term {
                realm,
                kind,
                name,
                from,
                to,
            } => {
                let scope = [realm.as_str(), kind.as_str(), name].join("\0");
                let index = self.terms.get(scope.as_bytes());
                let index = index.map(|index| list_by_term(index, (from, to), after, most));
                index.unwrap_or_default()
            }
        }
    }

    /// Number of documents.
    pub(crate) fn count(&self) -> usize {
        self.documents.len()
    }

    /// Keys of documents from these bytes on.
    pub(crate) fn keys_from(&self, from: &[u8], limit: usize) -> Vec<Arc<[u8]>> {
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let keys = self.documents.range::<[u8], _>(bounds).take(limit);
        keys.map(|(key, _)| Arc::clone(key)).collect()
    }

    fn list_by_key(&self, prefix: &[u8], after: Option<&Position>, most: usize) -> Vec<TermEntry> {
        let start = match after {
            Some(after) if after.key.as_bytes() >= prefix => Bound::Excluded(after.key.as_bytes()),
            Some(_) | None => Bound::Included(prefix),
        };
        let keys = self.documents.range::<[u8], _>((start, Bound::Unbounded));
        let keys = keys.map(|(key, _)| key);
        let keys = keys.take_while(|key| key.starts_with(prefix)).take(most);
        keys.map(|key| (Arc::from([]), Arc::clone(key))).collect()
    }

    /// Whether a worker holds a lease, according to this view.
    pub(crate) fn is_alive(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// Running operations whose workers hold no lease.
    pub(crate) fn orphans(&self) -> impl Iterator<Item = (OperationId, &ViewOperation)> {
        self.operations
            .holders()
            .filter(|worker| !self.is_alive(*worker))
            .flat_map(|worker| self.operations.held(worker))
            .filter_map(|id| Some((id, self.operations.get(id)?)))
    }
}

fn list_by_term(
    index: &BTreeSet<TermEntry>,
    (from, to): (&[u8], &[u8]),
    after: Option<&Position>,
    most: usize,
) -> Vec<TermEntry> {
    let start = match after {
        Some(after) if after.value.as_slice() >= from => {
            Bound::Excluded((after.value.as_slice().into(), after.key.as_bytes().into()))
        }
        Some(_) | None => Bound::Included((from.into(), Arc::from([]))),
    };
    let found = index.range::<TermEntry, _>((start, Bound::Unbounded));
    let found = found.take_while(|(value, _)| &value[..] <= to).take(most);
    found.cloned().collect()
}

/// Scope of a term of the document with this key.
fn scope_of(key: &[u8], name: &[u8]) -> Vec<u8> {
    let parts = key.split(|byte| *byte == 0).take(2);
    let mut scope: Vec<u8> = Vec::with_capacity(key.len());
    for part in parts {
        scope.extend_from_slice(part);
        scope.push(0);
    }
    scope.extend_from_slice(name);
    scope
}

fn counter(value: &[u8], revision: i64) -> Result<Counter, StoreError> {
    let value = read_time(value)?.0;
    Ok(Counter { value, revision })
}
