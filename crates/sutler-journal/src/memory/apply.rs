//! Checks the preconditions of a commit against the tables, and applies it.
//!
//! [`Tables::verify`] checks everything before [`Tables::apply`] changes anything, and `apply`
//! cannot fail, so a commit is applied completely or not at all. `Commit::check` ensures that no two
//! writes contend for one record, so checking the state before the commit is enough.

use super::tables::{OperationEntry, Tables};
use crate::clock::StoreTime;
use crate::commit::{Commit, Expect, NewOperation, Next, StaleItem, Write};
use crate::document::{Document, IndexedDocument, Version};
use crate::operation::{Operation, OperationId, OperationRow, State};
use crate::query::Subject;
use bytes::Bytes;

impl Tables {
    /// Returns the first condition that does not hold.
    pub(super) fn verify(&self, commit: &Commit, now: StoreTime) -> Result<(), StaleItem> {
        for (n, expect) in commit.expects().iter().enumerate() {
            if !self.holds(expect, now) {
                return Err(StaleItem::Expect(n));
            }
        }
        for (n, write) in commit.writes().iter().enumerate() {
            if !self.fits(write, now) {
                return Err(StaleItem::Write(n));
            }
        }
        Ok(())
    }

    fn holds(&self, expect: &Expect, now: StoreTime) -> bool {
        match expect {
            Expect::Absent(key) => self.document(key).is_none(),
            Expect::Version(key, read) | Expect::Unchanged(key, read) => self
                .document(key)
                .is_some_and(|document| document.version == *read),
            Expect::Fence(id, fence) => self.operations.get(id).is_some_and(|entry| {
                entry.operation.row.state == State::Running
                    && entry.operation.row.fence == *fence
                    && entry
                        .worker
                        .is_some_and(|worker| self.holds_lease(worker, now))
            }),
        }
    }

    fn fits(&self, write: &Write, now: StoreTime) -> bool {
        match write {
            Write::Start(new) => {
                let worker = new.start.worker();
                let alive = worker.is_none_or(|worker| self.holds_lease(worker, now));
                alive && !self.operations.contains_key(&new.id)
            }
            Write::Import(operation) => !self.operations.contains_key(&operation.row.id),
            Write::Advance { operation, .. } => self.unfinished.contains(operation),
            Write::Reseal {
                operation, read, ..
            } => self
                .operation(*operation)
                .is_some_and(|found| found.row.detail == read.0 && found.progress == read.1),
            Write::Put { .. }
            | Write::Remove(_)
            | Write::Cancel(_)
            | Write::Wake(_)
            | Write::Unpin(_) => true,
        }
    }

    /// Applies a verified commit; returns whether an operation may have become claimable.
    pub(super) fn apply(&mut self, commit: &Commit, now: StoreTime) -> bool {
        let mut subjects = Vec::new();
        let mut claimable = false;
        for write in commit.writes() {
            let Some(subject) = self.write(write, Version(commit.id()), now) else {
                continue;
            };
            if let Subject::Operation(id) = &subject {
                claimable |= self.operation(*id).is_some_and(|operation| {
                    operation.row.state == State::Ready && operation.row.due <= now
                });
            }
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        self.feed.append(commit.id(), now, subjects);
        claimable
    }

    /// Applies one write; returns the subjects it changed.
    fn write(&mut self, write: &Write, version: Version, now: StoreTime) -> Option<Subject> {
        match write {
            Write::Put { key, terms, body } => {
                let document = Document {
                    key: key.clone(),
                    version,
                    body: body.clone(),
                };
                self.file(IndexedDocument::new(document, terms.clone()));
                Some(Subject::Put(key.clone()))
            }
            Write::Remove(key) => self.discard(key).then(|| Subject::Removed(key.clone())),
            Write::Start(new) => {
                self.add(begin(new, now));
                Some(Subject::Operation(new.id))
            }
            Write::Import(operation) => {
                self.add(imported_entry(operation, now));
                Some(Subject::Operation(operation.row.id))
            }
            Write::Advance {
                operation,
                next,
                detail,
                progress,
            } => self.touch(*operation, |entry| {
                advance(entry, *next, progress.is_some(), now);
                replace(&mut entry.operation.row.detail, detail);
                replace(&mut entry.operation.progress, progress);
            }),
            Write::Cancel(id) => {
                self.touch_unfinished(*id, |entry| entry.operation.row.cancel = true)
            }
            Write::Wake(id) => self.touch_unfinished(*id, |entry| entry.operation.row.wake(now)),
            Write::Unpin(id) => self.touch(*id, |entry| entry.operation.row.pinned = false),
            Write::Reseal {
                operation,
                detail,
                request,
                progress,
                ..
            } => self.touch(*operation, |entry| {
                entry.operation.row.detail = detail.clone();
                entry.operation.request = request.clone();
                entry.operation.progress = progress.clone();
            }),
        }
    }

    fn touch(
        &mut self,
        id: OperationId,
        change: impl FnOnce(&mut OperationEntry),
    ) -> Option<Subject> {
        self.change(id, change).map(|_| Subject::Operation(id))
    }

    fn touch_unfinished(
        &mut self,
        id: OperationId,
        change: impl FnOnce(&mut OperationEntry),
    ) -> Option<Subject> {
        if !self.unfinished.contains(&id) {
            return None;
        }
        self.touch(id, change)
    }
}

fn begin(new: &NewOperation, now: StoreTime) -> OperationEntry {
    let operation = Operation {
        row: OperationRow::start(new, now),
        request: new.request.clone(),
        progress: Bytes::new(),
    };
    let worker = new.start.worker();
    OperationEntry { operation, worker }
}

/// An operation of another store, without the worker it may have had there.
fn imported_entry(operation: &Operation, now: StoreTime) -> OperationEntry {
    let mut operation = operation.clone();
    operation.row.import(now);
    OperationEntry {
        operation,
        worker: None,
    }
}

fn advance(entry: &mut OperationEntry, next: Next, progress: bool, now: StoreTime) {
    entry.operation.row.advance(next, progress, now);
    if entry.operation.row.state != State::Running {
        entry.worker = None;
    }
}

fn replace(place: &mut Bytes, new: &Option<Bytes>) {
    if let Some(new) = new {
        *place = new.clone();
    }
}
