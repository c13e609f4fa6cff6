//! Checks the preconditions of a commit against the tables, and applies it.
//!
//! [`Tables::verify`] checks everything before [`Tables::apply`] changes anything, and `apply`
//! cannot fail, so a commit is applied completely or not at all. `Commit::check` ensures that no two
//! writes contend for one record, so checking the state before the commit is enough.

use super::tables::{OperationEntry, Tables};
use crate::clock::StoreTime;
use crate::commit::{Commit, Due, Expect, NewOperation, Next, StaleItem, Start, Write};
use crate::document::{Document, IndexedDocument, Version};
use crate::operation::{Fence, Operation, OperationId, OperationRow, State, WorkerId};
use crate::query::Subject;
use bytes::Bytes;
use std::borrow::Cow;

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
                let alive = match new.start {
                    Start::Waiting | Start::Ready(_) => true,
                    Start::Claimed(worker) => self.holds_lease(worker, now),
                };
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
                advance(entry, *next, now);
                replace(&mut entry.operation.row.detail, detail);
                replace(&mut entry.operation.progress, progress);
            }),
            Write::Cancel(id) => {
                self.touch_unfinished(*id, |entry| entry.operation.row.cancel = true)
            }
            Write::Wake(id) => {
                self.touch_unfinished(*id, |entry| wake(&mut entry.operation.row, now))
            }
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
    let (state, due, fence, worker): (State, StoreTime, Fence, Option<WorkerId>) = match new.start {
        Start::Waiting => (State::Waiting, now, Fence(0), None),
        Start::Ready(due) => (State::Ready, moment(due, now), Fence(0), None),
        Start::Claimed(worker) => (State::Running, now, Fence(1), Some(worker)),
    };
    let row = OperationRow {
        id: new.id,
        lane: new.lane.clone(),
        verb: Cow::Borrowed(new.verb),
        queue: new.queue.clone(),
        state,
        due,
        fence,
        attempt: 1,
        takeovers: 0,
        cancel: false,
        pinned: true,
        accepted: now,
        finished: None,
        detail: new.detail.clone(),
    };
    let operation = Operation {
        row,
        request: new.request.clone(),
        progress: Bytes::new(),
    };
    OperationEntry { operation, worker }
}

/// An operation of another store, without the worker it may have had there.
fn imported_entry(operation: &Operation, now: StoreTime) -> OperationEntry {
    let mut operation = operation.clone();
    match operation.row.state {
        State::Waiting | State::Ready => {}
        State::Running => {
            operation.row.state = State::Ready;
            operation.row.due = now;
        }
        State::Done(_) => operation.row.finished = operation.row.finished.or(Some(now)),
    }
    OperationEntry {
        operation,
        worker: None,
    }
}

fn advance(entry: &mut OperationEntry, next: Next, now: StoreTime) {
    let row = &mut entry.operation.row;
    match next {
        Next::Same => {
            row.takeovers = 0;
            return;
        }
        Next::Ready(due) => {
            row.takeovers = 0;
            row.state = State::Ready;
            row.due = moment(due, now);
        }
        Next::Retry(due) => {
            row.attempt = row.attempt.saturating_add(1);
            row.state = State::Ready;
            row.due = moment(due, now);
        }
        Next::Done(outcome) => {
            row.state = State::Done(outcome);
            row.finished = Some(now);
        }
    }
    entry.worker = None;
}

fn wake(row: &mut OperationRow, now: StoreTime) {
    match row.state {
        State::Waiting => {
            row.state = State::Ready;
            row.due = now;
        }
        // One that is already due keeps its due time: frequent wakes must not starve it.
        State::Ready => row.due = row.due.min(now),
        State::Running | State::Done(_) => {}
    }
}

fn moment(due: Due, now: StoreTime) -> StoreTime {
    match due {
        Due::Now => now,
        Due::In(wait) => now.plus(wait),
    }
}

fn replace(place: &mut Bytes, new: &Option<Bytes>) {
    if let Some(new) = new {
        *place = new.clone();
    }
}
