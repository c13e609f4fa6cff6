//! Tables of the memory store, and their indexes.
//!
//! Plain data under the store's lock. An operation is only changed through [`Tables::change`], which
//! removes it from every index and adds it again, so no index can be forgotten. Not here: applying a
//! commit (`apply.rs`), claims (`leases.rs`), lists (`lists.rs`).

use super::feed::Feed;
use super::leases::{HeldOperations, Lease};
use crate::clock::StoreTime;
use crate::document::{Document, IndexedDocument, Term};
use crate::key::Key;
use crate::operation::{Operation, OperationId, Outcome, Queue, State, WorkerId};
use crate::query::{LogChunk, Sweep};
use crate::store::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One entry of the index of terms; the field order is the order of the list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TermEntry {
    pub(super) realm: String,
    pub(super) kind: String,
    pub(super) name: Cow<'static, str>,
    pub(super) value: Vec<u8>,
    pub(super) key: Box<[u8]>,
}

/// An operation and its worker, which is set exactly while the state is `Running`.
pub(super) struct OperationEntry {
    pub(super) operation: Operation,
    pub(super) worker: Option<WorkerId>,
}

/// The log of one operation.
#[derive(Default)]
pub(super) struct Log {
    chunks: Vec<Bytes>,
    bytes: usize,
}

/// All data of the store.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) documents: BTreeMap<Box<[u8]>, IndexedDocument>,
    pub(super) terms: BTreeSet<TermEntry>,
    pub(super) operations: BTreeMap<OperationId, OperationEntry>,
    pub(super) lanes: BTreeSet<(Key, OperationId)>,
    pub(super) unfinished: BTreeSet<OperationId>,
    /// Ready operations, and running ones whose lease was found expired; oldest due time first.
    pub(super) claimable: BTreeSet<(Queue, StoreTime, OperationId)>,
    pub(super) held: BTreeMap<WorkerId, HeldOperations>,
    pub(super) leases: BTreeMap<WorkerId, Lease>,
    /// Done and unpinned, by the time of their end.
    pub(super) sweepable: BTreeSet<(StoreTime, OperationId)>,
    pub(super) feed: Feed,
    pub(super) logs: BTreeMap<OperationId, Log>,
    pub(super) accepted: u64,
    pub(super) cleaned: u64,
}

impl Tables {
    pub(super) fn document(&self, key: &Key) -> Option<&Document> {
        self.documents
            .get(key.as_bytes())
            .map(|indexed| &indexed.document)
    }

    pub(super) fn operation(&self, id: OperationId) -> Option<&Operation> {
        self.operations.get(&id).map(|entry| &entry.operation)
    }

    /// Stores a document in place of its predecessor.
    pub(super) fn file(&mut self, indexed: IndexedDocument) {
        self.discard(&indexed.document.key);
        for term in &indexed.terms {
            self.terms.insert(term_entry(&indexed.document.key, term));
        }
        let key = indexed.document.key.as_bytes().into();
        self.documents.insert(key, indexed);
    }

    /// Removes a document; returns whether it existed.
    pub(super) fn discard(&mut self, key: &Key) -> bool {
        let Some(indexed) = self.documents.remove(key.as_bytes()) else {
            return false;
        };
        for term in &indexed.terms {
            self.terms.remove(&term_entry(key, term));
        }
        true
    }

    /// Adds an operation under a free id.
    pub(super) fn add(&mut self, entry: OperationEntry) {
        let id = entry.operation.row.id;
        self.accepted += 1;
        self.lanes.insert((entry.operation.row.lane.clone(), id));
        self.enter_in_indexes(&entry);
        self.operations.insert(id, entry);
    }

    /// Changes an operation and its index entries; `None` if there is none.
    pub(super) fn change(
        &mut self,
        id: OperationId,
        change: impl FnOnce(&mut OperationEntry),
    ) -> Option<&Operation> {
        let mut entry = self.operations.remove(&id)?;
        self.take_from_indexes(&entry);
        change(&mut entry);
        self.enter_in_indexes(&entry);
        Some(&self.operations.entry(id).or_insert(entry).operation)
    }

    fn enter_in_indexes(&mut self, entry: &OperationEntry) {
        let row = &entry.operation.row;
        match row.state {
            State::Done(_) => {
                if let (false, Some(finished)) = (row.pinned, row.finished) {
                    self.sweepable.insert((finished, row.id));
                }
                return;
            }
            State::Waiting => {}
            State::Ready => {
                self.claimable.insert((row.queue.clone(), row.due, row.id));
            }
            State::Running => {
                if let Some(worker) = entry.worker {
                    let held = self.held.entry(worker).or_default();
                    held.operations.insert(row.id);
                    if held.void {
                        self.claimable.insert((row.queue.clone(), row.due, row.id));
                    }
                }
            }
        }
        self.unfinished.insert(row.id);
    }

    fn take_from_indexes(&mut self, entry: &OperationEntry) {
        let row = &entry.operation.row;
        self.unfinished.remove(&row.id);
        self.claimable.remove(&(row.queue.clone(), row.due, row.id));
        if let Some(finished) = row.finished {
            self.sweepable.remove(&(finished, row.id));
        }
        if let Some(worker) = entry.worker
            && let Some(held) = self.held.get_mut(&worker)
        {
            held.operations.remove(&row.id);
            if held.operations.is_empty() {
                self.held.remove(&worker);
            }
        }
    }

    pub(super) fn sweep(&mut self, sweep: &Sweep) -> u64 {
        match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                limit,
            } => self.sweep_operations(lanes, *outcome, *finished_before, *limit),
            Sweep::Feed { before, limit } => {
                self.forget_leases(*before);
                self.feed.trim(*before, *limit)
            }
        }
    }

    fn sweep_operations(
        &mut self,
        lanes: &[u8],
        wanted: Option<Outcome>,
        finished_before: StoreTime,
        limit: usize,
    ) -> u64 {
        let old = self
            .sweepable
            .iter()
            .take_while(|(finished, _)| *finished < finished_before);
        let swept: Vec<(StoreTime, OperationId)> = old
            .filter(|(_, id)| {
                self.operation(*id).is_some_and(|operation| {
                    operation.row.lane.as_bytes().starts_with(lanes)
                        && covers(wanted, operation.row.state)
                })
            })
            .take(limit)
            .copied()
            .collect();
        for ended in &swept {
            self.sweepable.remove(ended);
            self.logs.remove(&ended.1);
            if let Some(entry) = self.operations.remove(&ended.1) {
                self.lanes.remove(&(entry.operation.row.lane, ended.1));
            }
        }
        let count = swept.len() as u64;
        self.cleaned += count;
        count
    }

    pub(super) fn append_log(&mut self, id: OperationId, mut text: Bytes) {
        // A swept operation must not get a new log.
        if text.is_empty() || !self.operations.contains_key(&id) {
            return;
        }
        text.truncate(LOG_CHUNK_BYTES_MAX);
        let log = self.logs.entry(id).or_default();
        if log.bytes + text.len() <= LOG_BYTES_MAX {
            log.bytes += text.len();
            log.chunks.push(text);
        }
    }

    pub(super) fn reseal_log(&mut self, id: OperationId, read: &LogChunk, text: Bytes) -> bool {
        let log = self.logs.get_mut(&id);
        let chunk = log.and_then(|log| log.chunks.get_mut(read.number as usize));
        let Some(chunk) = chunk else { return false };
        if *chunk == read.text {
            *chunk = text.clone();
        }
        *chunk == text
    }

    pub(super) fn read_log(&self, id: OperationId, from: u32, limit: usize) -> Vec<LogChunk> {
        let Some(log) = self.logs.get(&id) else {
            return Vec::new();
        };
        (0..)
            .zip(&log.chunks)
            .skip(from as usize)
            .take(limit)
            .map(|(number, text)| LogChunk {
                number,
                text: text.clone(),
            })
            .collect()
    }
}

/// Whether a sweep for this outcome deletes an operation in this state.
fn covers(wanted: Option<Outcome>, state: State) -> bool {
    match state {
        State::Waiting | State::Ready | State::Running => false,
        State::Done(outcome) => match wanted {
            None => true,
            Some(Outcome::Succeeded) => outcome == Outcome::Succeeded,
            Some(Outcome::Failed) => outcome != Outcome::Succeeded,
            Some(Outcome::Cancelled) => outcome == Outcome::Cancelled,
        },
    }
}

fn term_entry(key: &Key, term: &Term) -> TermEntry {
    TermEntry {
        realm: key.realm().to_owned(),
        kind: key.kind().to_owned(),
        name: term.name.clone(),
        value: term.value.clone(),
        key: key.as_bytes().into(),
    }
}
