//! Turns a commit into the conditions and operations of one etcd transaction. Pure: no I/O, no clock.
//!
//! A commit is decided against a [`View`], and the transaction requires that everything the decision
//! depends on is unchanged. If it is not, nothing was written, and the commit is decided again against a
//! newer view. One key is written for each document and each operation, however many terms a document
//! has; in addition the commit's own record, the head, and at most one overflow value. `commit.rs` sends the
//! transaction.

#[cfg(test)]
mod tests;

use crate::keys::Keys;
use crate::rows::{
    self, CommitRecord, OperationValue, OperationValues, OverflowValue, StoredOperation,
};
use crate::view::View;
use crate::wire::{Compare, RequestOp};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::{
    Commit, CommitId, Expect, Key, OperationId, OperationRow, StaleItem, State, StoreTime, Subject,
    Version, WorkerId, Write,
};

/// Maximum conditions of one transaction; etcd accepts 128 by default. Beyond that, one condition
/// replaces all: that nothing at all was changed.
const CONDITIONS_MAX: usize = 110;
/// Maximum steps of one transaction, including deletions of old overflow values.
const STEPS_MAX: usize = 120;

/// Everything that a decision depends on.
pub(crate) struct CommitContext<'a> {
    pub(crate) view: &'a View,
    pub(crate) keys: &'a Keys,
    pub(crate) commit: &'a Commit,
    pub(crate) now: StoreTime,
    /// Workers that hold no lease according to etcd, though the view may not know yet.
    pub(crate) dead: &'a BTreeSet<WorkerId>,
    /// Operations that the view holds without contents.
    pub(crate) fetched: &'a BTreeMap<OperationId, FetchedOperation>,
    /// Revision at which earlier attempts of this commit were voided; 0: they were not.
    pub(crate) void: i64,
}

/// An operation that was read for a commit.
pub(crate) struct FetchedOperation {
    pub(crate) revision: i64,
    pub(crate) job: StoredOperation,
    pub(crate) detail: Bytes,
    pub(crate) progress: Bytes,
}

/// Decision about a commit.
pub(crate) enum CommitDecision {
    /// It was applied before.
    Applied,
    /// A condition does not hold, according to this view.
    Stale(StaleItem),
    /// These operations must be read first.
    Fetch(Vec<OperationId>),
    /// This transaction applies it.
    Write(Transaction),
}

/// A transaction to send.
pub(crate) struct Transaction {
    pub(crate) conditions: Vec<Compare>,
    pub(crate) steps: Vec<RequestOp>,
    /// Workers whose leases it requires.
    pub(crate) workers: BTreeSet<WorkerId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Absent,
    Unchanged(i64),
}

/// Decides a commit.
pub(crate) fn decide(case: &CommitContext<'_>) -> CommitDecision {
    if case.view.remembers(case.commit.id()) {
        return CommitDecision::Applied;
    }
    let mut builder = TransactionBuilder::new(case);
    if let Err(which) = builder.verify() {
        return CommitDecision::Stale(which);
    }
    if builder.unread.is_empty() {
        builder.write_all();
    }
    if !builder.unread.is_empty() {
        return CommitDecision::Fetch(builder.unread.into_iter().collect());
    }
    CommitDecision::Write(builder.finish())
}

/// State of one decision.
struct TransactionBuilder<'a> {
    case: &'a CommitContext<'a>,
    conditions: BTreeMap<Vec<u8>, Condition>,
    workers: BTreeSet<WorkerId>,
    /// Operations that must be read before they can be written.
    unread: BTreeSet<OperationId>,
    jobs: BTreeMap<OperationId, StoredOperation>,
    overflow: OverflowValue,
    /// Overflow values that lost a user.
    left: Vec<CommitId>,
    subjects: Vec<Subject>,
    steps: Vec<RequestOp>,
}

impl<'a> TransactionBuilder<'a> {
    fn new(case: &'a CommitContext<'a>) -> Self {
        Self {
            case,
            conditions: BTreeMap::new(),
            workers: BTreeSet::new(),
            unread: BTreeSet::new(),
            jobs: BTreeMap::new(),
            overflow: OverflowValue::default(),
            left: Vec::new(),
            subjects: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Returns the first condition that does not hold before the commit.
    fn verify(&mut self) -> Result<(), StaleItem> {
        for (n, expect) in self.case.commit.expects().iter().enumerate() {
            if !self.holds(expect) {
                return Err(StaleItem::Expect(n));
            }
        }
        for (n, write) in self.case.commit.writes().iter().enumerate() {
            if !self.fits(write) {
                return Err(StaleItem::Write(n));
            }
        }
        Ok(())
    }

    fn demand(&mut self, key: Vec<u8>, condition: Condition) {
        self.conditions.insert(key, condition);
    }

    fn is_alive(&mut self, worker: WorkerId) -> bool {
        self.workers.insert(worker);
        self.case.view.is_alive(worker) && !self.case.dead.contains(&worker)
    }

    fn holds(&mut self, expect: &Expect) -> bool {
        let (view, keys) = (self.case.view, self.case.keys);
        match expect {
            Expect::Absent(key) => {
                self.demand(keys.document(key), Condition::Absent);
                view.document(key).is_none()
            }
            Expect::Version(key, read) | Expect::Unchanged(key, read) => {
                let Some(found) = view.document(key) else {
                    return false;
                };
                self.demand(keys.document(key), Condition::Unchanged(found.revision));
                found.version == *read
            }
            Expect::Fence(id, fence) => {
                let Some(entry) = view.operations.get(*id) else {
                    return false;
                };
                self.demand(keys.operation(*id), Condition::Unchanged(entry.revision));
                entry.row.state == State::Running
                    && entry.row.fence == *fence
                    && entry.worker.is_some_and(|worker| self.is_alive(worker))
            }
        }
    }

    fn fits(&mut self, write: &Write) -> bool {
        match write {
            Write::Start(new) => {
                let worker = new.start.worker();
                let alive = worker.is_none_or(|worker| self.is_alive(worker));
                alive && self.is_free(new.id)
            }
            Write::Import(operation) => self.is_free(operation.row.id),
            Write::Advance { operation, .. } => {
                let entry = self.case.view.operations.get(*operation);
                entry.is_some_and(|entry| !is_done(entry.row.state))
            }
            Write::Reseal {
                operation, read, ..
            } => {
                let Some(entry) = self.case.view.operations.get(*operation) else {
                    return false;
                };
                match self.case.fetched.get(operation) {
                    Some(fetched) if fetched.revision >= entry.revision => {
                        fetched.detail == read.0 && fetched.progress == read.1
                    }
                    Some(_) | None => {
                        self.unread.insert(*operation);
                        true
                    }
                }
            }
            Write::Put { .. }
            | Write::Remove(_)
            | Write::Cancel(_)
            | Write::Wake(_)
            | Write::Unpin(_) => true,
        }
    }

    fn is_free(&mut self, id: OperationId) -> bool {
        self.demand(self.case.keys.operation(id), Condition::Absent);
        self.case.view.operations.get(id).is_none()
    }

    fn write_all(&mut self) {
        for write in self.case.commit.writes() {
            if let Some(subject) = self.write(write)
                && !self.subjects.contains(&subject)
            {
                self.subjects.push(subject);
            }
        }
    }

    /// Applies one write; returns the subject it changed.
    fn write(&mut self, write: &Write) -> Option<Subject> {
        let (now, id) = (self.case.now, self.case.commit.id());
        match write {
            Write::Put { key, terms, body } => {
                let value = rows::document(Version(id), terms, body);
                let step = RequestOp::put(self.case.keys.document(key), value);
                self.steps.push(step);
                Some(Subject::Put(key.clone()))
            }
            Write::Remove(key) => self.remove(key),
            Write::Start(new) => {
                let parts = self.parts(&new.detail, &new.request, &Bytes::new());
                let (row, worker) = (OperationRow::start(new, now), new.start.worker());
                self.jobs.insert(new.id, stored(row, worker, parts));
                Some(Subject::Operation(new.id))
            }
            Write::Import(operation) => {
                let (mut row, request) = (operation.row.clone(), &operation.request);
                let parts = self.parts(&row.detail, request, &operation.progress);
                row.import(now);
                let id = row.id;
                self.jobs.insert(id, stored(row, None, parts));
                Some(Subject::Operation(id))
            }
            Write::Advance {
                operation,
                next,
                detail,
                progress,
            } => {
                let job = self.job(*operation)?;
                job.row.advance(*next, progress.is_some(), now);
                if job.row.state != State::Running {
                    job.worker = None;
                }
                if let Some(detail) = detail {
                    self.replace(*operation, detail, |parts| &mut parts.detail);
                }
                if let Some(progress) = progress {
                    self.replace(*operation, progress, |parts| &mut parts.progress);
                }
                Some(Subject::Operation(*operation))
            }
            Write::Cancel(id) => {
                self.unfinished(*id)?.row.cancel = true;
                Some(Subject::Operation(*id))
            }
            Write::Wake(id) => {
                self.unfinished(*id)?.row.wake(now);
                Some(Subject::Operation(*id))
            }
            Write::Unpin(id) => {
                self.job(*id)?.row.pinned = false;
                Some(Subject::Operation(*id))
            }
            Write::Reseal {
                operation,
                detail,
                request,
                progress,
                ..
            } => {
                self.job(*operation)?;
                self.replace(*operation, detail, |parts| &mut parts.detail);
                self.replace(*operation, request, |parts| &mut parts.request);
                self.replace(*operation, progress, |parts| &mut parts.progress);
                Some(Subject::Operation(*operation))
            }
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Subject> {
        let place = self.case.keys.document(key);
        let Some(found) = self.case.view.document(key) else {
            self.demand(place, Condition::Absent);
            return None;
        };
        self.demand(place.clone(), Condition::Unchanged(found.revision));
        self.steps.push(RequestOp::delete(place));
        Some(Subject::Removed(key.clone()))
    }

    fn parts(&mut self, detail: &Bytes, request: &Bytes, progress: &Bytes) -> OperationValues {
        let commit = self.case.commit.id();
        OperationValues {
            detail: self.overflow.place(commit, detail),
            request: self.overflow.place(commit, request),
            progress: self.overflow.place(commit, progress),
        }
    }

    fn replace(
        &mut self,
        id: OperationId,
        content: &Bytes,
        part: fn(&mut OperationValues) -> &mut OperationValue,
    ) {
        let new = self.overflow.place(self.case.commit.id(), content);
        if let Some(job) = self.jobs.get_mut(&id) {
            let old = std::mem::replace(part(&mut job.parts), new);
            self.left.extend(old.overflow());
        }
    }

    /// The operation as changed by this commit so far.
    fn job(&mut self, id: OperationId) -> Option<&mut StoredOperation> {
        if self.jobs.contains_key(&id) {
            return self.jobs.get_mut(&id);
        }
        let place = self.case.keys.operation(id);
        let Some(entry) = self.case.view.operations.get(id) else {
            self.demand(place, Condition::Absent);
            return None;
        };
        let fetched = self.case.fetched.get(&id);
        let newer = fetched.filter(|fetched| fetched.revision >= entry.revision);
        let (revision, job) = match (newer, entry.job()) {
            (Some(fetched), _) => (fetched.revision, fetched.job.clone()),
            (None, Some(job)) => (entry.revision, job),
            (None, None) => {
                self.unread.insert(id);
                return None;
            }
        };
        self.demand(place, Condition::Unchanged(revision));
        Some(self.jobs.entry(id).or_insert(job))
    }

    /// Like `job`, unless it is done: an ended operation never changes, so that needs no condition.
    fn unfinished(&mut self, id: OperationId) -> Option<&mut StoredOperation> {
        let entry = self.case.view.operations.get(id);
        if !self.jobs.contains_key(&id) && entry.is_some_and(|entry| is_done(entry.row.state)) {
            return None;
        }
        self.job(id).filter(|job| !is_done(job.row.state))
    }

    fn finish(mut self) -> Transaction {
        let (keys, id) = (self.case.keys, self.case.commit.id());
        for (operation, job) in &self.jobs {
            let value = rows::operation(job);
            self.steps
                .push(RequestOp::put(keys.operation(*operation), value));
        }
        let record = CommitRecord {
            at: self.case.now,
            subjects: std::mem::take(&mut self.subjects),
        };
        let value = rows::record(&record);
        self.steps.push(RequestOp::put(keys.commit(id), value));
        let now = rows::time(self.case.now);
        self.steps.push(RequestOp::put(keys.head(), now));
        if !self.overflow.0.is_empty() {
            let overflow = std::mem::take(&mut self.overflow.0);
            self.steps.push(RequestOp::put(keys.overflow(id), overflow));
        }
        for overflow in self.unused_overflows() {
            if self.steps.len() < STEPS_MAX {
                self.steps.push(RequestOp::delete(keys.overflow(overflow)));
            }
        }
        Transaction {
            conditions: self.conditions(),
            steps: self.steps,
            workers: self.workers,
        }
    }

    /// Overflow values without users after this commit.
    fn unused_overflows(&self) -> BTreeSet<CommitId> {
        let still = |overflow: CommitId| {
            let jobs = self.jobs.values();
            jobs.flat_map(|job| job.parts.overflows())
                .filter(|used| *used == overflow)
                .count()
        };
        let left = |overflow: &CommitId| self.left.iter().filter(|it| *it == overflow).count();
        let unused = |overflow: &&CommitId| {
            still(**overflow) == 0
                && left(overflow) == self.case.view.operations.uses_of(**overflow)
        };
        self.left.iter().filter(unused).copied().collect()
    }

    fn conditions(&self) -> Vec<Compare> {
        let (keys, id) = (self.case.keys, self.case.commit.id());
        let mut compares = vec![
            Compare::absent(keys.commit(id)),
            Compare::unchanged(keys.void(id), self.case.void),
        ];
        if self.conditions.len() + self.workers.len() > CONDITIONS_MAX {
            compares.push(Compare::unchanged(keys.head(), self.case.view.head));
        } else {
            let conditions = self.conditions.iter();
            compares.extend(conditions.map(|(key, condition)| match condition {
                Condition::Absent => Compare::absent(key.clone()),
                Condition::Unchanged(revision) => Compare::unchanged(key.clone(), *revision),
            }));
        }
        let alive = self.workers.iter();
        compares.extend(alive.map(|worker| Compare::present(keys.worker(*worker))));
        compares
    }
}

fn is_done(state: State) -> bool {
    match state {
        State::Waiting | State::Ready | State::Running => false,
        State::Done(_) => true,
    }
}

/// The detail is among the parts, not in the row.
fn stored(
    mut row: OperationRow,
    worker: Option<WorkerId>,
    parts: OperationValues,
) -> StoredOperation {
    row.detail = Bytes::new();
    StoredOperation { row, worker, parts }
}
