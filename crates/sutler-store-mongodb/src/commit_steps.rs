//! Turns a commit into the steps of one `bulkWrite`, and evaluates their results. Pure.
//!
//! The first step inserts the commit's own record, which fails if it exists: so a repeat is
//! detected before anything else, and while an earlier attempt is still open on the server, a later one
//! fails. Then come the expectations, in their order, then the writes: the first step that matches
//! nothing identifies the stale item. A write of a document replaces its expectation, so that both are
//! one step. A document that is only read is written too (a field that is never read), and an absent one
//! is inserted and removed, because MongoDB only detects conflicts between transactions that write the
//! same document. Not here: sending the steps (`transaction.rs`).

mod operations;

use crate::error::{DUPLICATE_KEY, MongoError};
use crate::key_encoding;
use crate::rows::{self, Collection, literal, now, uuid};
use mongodb::bson::{Bson, Document as Bsons, doc};
use std::collections::BTreeMap;
use sutler_journal::{
    Commit, Expect, Fence, Key, OperationId, StaleItem, Start, Subject, Version, WorkerId, Write,
};

/// One step, and the meaning of its result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommitStep {
    wire_form: Bsons,
    role: StepRole,
}

impl CommitStep {
    /// The step as it is sent.
    pub(crate) fn wire_form(&self) -> Bsons {
        self.wire_form.clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum StepRole {
    /// Inserts the record of the commit.
    Record,
    /// Must match a document, or the commit is stale.
    Must(StaleItem),
    /// May match nothing; then this subject is removed from the record, unless another step matched it.
    May(usize),
    /// Its result is ignored.
    Whatever,
}

/// A commit as steps for the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommitSteps {
    /// In order.
    pub(crate) steps: Vec<CommitStep>,
    /// Subjects in the record of the commit.
    subjects: Vec<Subject>,
    /// Index of the subject of each write.
    written: Vec<usize>,
    record: Bson,
}

/// Result of one step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepResult {
    /// Number of documents found.
    Count(i64),
    /// It failed, and with it the whole transaction.
    Error(i32),
}

/// Result of a commit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepsResult {
    /// All conditions hold. If the record names subjects that were not touched, this step corrects it.
    Fits(Option<Bsons>),
    /// It was applied before.
    Repeated,
    /// A condition does not hold.
    Stale(StaleItem),
    /// An unexpected error.
    Odd(MongoError),
}

/// A step that updates documents that match a filter.
pub(crate) fn update(collection: Collection, filter: Bsons, mods: impl Into<Bson>) -> Bsons {
    doc! { "update": collection.number(), "filter": filter, "updateMods": mods.into() }
}

/// A step that deletes a document that matches a filter.
pub(crate) fn delete(collection: Collection, filter: Bsons) -> Bsons {
    doc! { "delete": collection.number(), "filter": filter }
}

fn insert(collection: Collection, document: Bsons) -> Bsons {
    doc! { "insert": collection.number(), "document": document }
}

impl CommitSteps {
    /// Builds the steps. `holder` returns the worker of a claim; `None` if no live worker holds it.
    pub(crate) fn of(
        commit: &Commit,
        holder: impl Fn(OperationId, Fence) -> WorkerId,
    ) -> Result<Self, MongoError> {
        let mut plan = Self {
            steps: Vec::new(),
            subjects: Vec::new(),
            written: Vec::new(),
            record: uuid(commit.id().0),
        };
        let merged = merged(commit);
        plan.written = commit.writes().iter().map(|it| plan.name(it)).collect();
        plan.add(StepRole::Record, plan.make_record(commit));
        for (n, expect) in commit.expects().iter().enumerate() {
            plan.expect((n, expect), &merged, &holder, commit)?;
        }
        for (n, write) in commit.writes().iter().enumerate() {
            if !is_merged(write, &merged) {
                plan.write((n, plan.written[n]), write, commit)?;
            }
        }
        Ok(plan)
    }

    fn add(&mut self, role: StepRole, wire_form: Bsons) {
        self.steps.push(CommitStep { wire_form, role });
    }

    /// Index of the subject of a write.
    fn name(&mut self, write: &Write) -> usize {
        let subject = match write {
            Write::Put { key, .. } => Subject::Put(key.clone()),
            Write::Remove(key) => Subject::Removed(key.clone()),
            Write::Start(new) => Subject::Operation(new.id),
            Write::Import(operation) => Subject::Operation(operation.row.id),
            Write::Advance { operation, .. } | Write::Reseal { operation, .. } => {
                Subject::Operation(*operation)
            }
            Write::Cancel(id) | Write::Wake(id) | Write::Unpin(id) => Subject::Operation(*id),
        };
        let known = self.subjects.iter().position(|it| *it == subject);
        known.unwrap_or_else(|| {
            self.subjects.push(subject);
            self.subjects.len() - 1
        })
    }

    fn make_record(&self, commit: &Commit) -> Bsons {
        let subjects: Vec<Bson> = self.subjects.iter().map(rows::subject).collect();
        let fields = doc! {
            "at": now(),
            // No commit that begins after this one was acknowledged gets a smaller one.
            "ts": "$$CLUSTER_TIME",
            "new": true,
            "hint": commit.is_worth_a_hint(),
            "about": literal(subjects),
        };
        let filter = doc! { "_id": &self.record, "at": { "$exists": false } };
        let mut step = update(Collection::Commits, filter, vec![doc! { "$set": fields }]);
        step.insert("upsert", true);
        step
    }

    fn expect(
        &mut self,
        (n, expect): (usize, &Expect),
        merged: &BTreeMap<&Key, MergedWrite>,
        holder: &impl Fn(OperationId, Fence) -> WorkerId,
        commit: &Commit,
    ) -> Result<(), MongoError> {
        let must = StepRole::Must(StaleItem::Expect(n));
        let key = match expect {
            Expect::Absent(key) | Expect::Version(key, _) | Expect::Unchanged(key, _) => key,
            Expect::Fence(id, fence) => {
                let worker = holder(*id, *fence);
                self.add(must, operations::lives(worker));
                self.add(must, operations::holds(*id, *fence, worker));
                return Ok(());
            }
        };
        match merged.get(key) {
            Some(merge) if merge.at == n => self.merge(must, commit, merge),
            // It requires the same as the one before it.
            Some(_) => Ok(()),
            None => {
                self.expect_document(must, expect, key, commit);
                Ok(())
            }
        }
    }

    /// Requires a state of a document, and lets MongoDB detect if another commit changes it.
    fn expect_document(&mut self, must: StepRole, expect: &Expect, key: &Key, commit: &Commit) {
        let name = key_encoding::key(key);
        match expect {
            Expect::Version(_, read) | Expect::Unchanged(_, read) => {
                let touch = doc! { "$set": { "g": uuid(commit.id().0) } };
                self.add(
                    must,
                    update(Collection::Documents, as_read(&name, *read), touch),
                );
            }
            Expect::Absent(_) | Expect::Fence(..) => {
                self.add(
                    must,
                    insert(Collection::Documents, doc! { "_id": &name, "absent": true }),
                );
                // Steps that require a version of it as well must not find it absent because of this one.
                let filter = doc! { "_id": name, "absent": true };
                self.add(StepRole::Whatever, delete(Collection::Documents, filter));
            }
        }
    }

    /// A write of a document that also checks its expectation.
    fn merge(
        &mut self,
        must: StepRole,
        commit: &Commit,
        merge: &MergedWrite,
    ) -> Result<(), MongoError> {
        let wire_form = match (&commit.writes()[merge.write], merge.read) {
            (Write::Put { key, terms, body }, read) => {
                one_of_each(terms)?;
                let document = rows::document(key, commit.id(), terms, body);
                match read {
                    None => insert(Collection::Documents, document),
                    Some(read) => {
                        let filter = as_read(&key_encoding::key(key), read);
                        update(Collection::Documents, filter, document)
                    }
                }
            }
            (Write::Remove(key), Some(read)) => delete(
                Collection::Documents,
                as_read(&key_encoding::key(key), read),
            ),
            _ => return Err(MongoError::odd("a plan")),
        };
        self.add(must, wire_form);
        Ok(())
    }

    fn write(
        &mut self,
        (n, subject): (usize, usize),
        write: &Write,
        commit: &Commit,
    ) -> Result<(), MongoError> {
        let must = StepRole::Must(StaleItem::Write(n));
        match write {
            Write::Put { key, terms, body } => {
                one_of_each(terms)?;
                let document = rows::document(key, commit.id(), terms, body);
                let filter = doc! { "_id": key_encoding::key(key) };
                let mut step = update(Collection::Documents, filter, document);
                step.insert("upsert", true);
                self.add(must, step);
            }
            Write::Remove(key) => {
                let filter = doc! { "_id": key_encoding::key(key) };
                self.add(
                    StepRole::May(subject),
                    delete(Collection::Documents, filter),
                );
            }
            Write::Start(new) => {
                if let Start::Claimed(worker) = new.start {
                    self.add(must, operations::lives(worker));
                }
                self.add(must, operations::start(new));
            }
            Write::Import(operation) => self.add(must, operations::import(operation)),
            Write::Advance {
                operation,
                next,
                detail,
                progress,
            } => {
                let given = (detail.as_ref(), progress.as_ref());
                self.add(must, operations::advance(*operation, *next, given));
            }
            Write::Cancel(id) => self.add(StepRole::May(subject), operations::cancel(*id)),
            Write::Wake(id) => self.add(StepRole::May(subject), operations::wake(*id)),
            Write::Unpin(id) => self.add(StepRole::May(subject), operations::unpin(*id)),
            Write::Reseal {
                operation,
                read,
                detail,
                request,
                progress,
            } => {
                let resealed = (detail, request, progress);
                self.add(must, operations::reseal(*operation, read, resealed));
            }
        }
        Ok(())
    }

    /// Evaluates the results of the steps; they end early after an error.
    pub(crate) fn evaluate(&self, results: &[StepResult]) -> StepsResult {
        let mut missed = vec![false; self.subjects.len()];
        let mut hit = vec![false; self.subjects.len()];
        for (step, found) in self.steps.iter().zip(results) {
            match (step.role, found) {
                (StepRole::Record, StepResult::Error(DUPLICATE_KEY)) => {
                    return StepsResult::Repeated;
                }
                (
                    StepRole::Must(which),
                    StepResult::Error(DUPLICATE_KEY) | StepResult::Count(0),
                ) => {
                    return StepsResult::Stale(which);
                }
                (_, StepResult::Error(code)) => {
                    return StepsResult::Odd(MongoError::Refused {
                        code: *code,
                        name: "a step of a commit".to_owned(),
                        transient: false,
                    });
                }
                (StepRole::May(subject), StepResult::Count(0)) => missed[subject] = true,
                (StepRole::May(subject), StepResult::Count(_)) => hit[subject] = true,
                (StepRole::Must(StaleItem::Write(n)), StepResult::Count(_)) => {
                    hit[self.written[n]] = true
                }
                (
                    StepRole::Record | StepRole::Must(_) | StepRole::Whatever,
                    StepResult::Count(_),
                ) => {}
            }
        }
        if results.len() != self.steps.len() {
            return StepsResult::Odd(MongoError::odd("the results of a commit"));
        }
        StepsResult::Fits(self.correction(&missed, &hit))
    }

    /// The step that removes untouched subjects from the record.
    fn correction(&self, missed: &[bool], hit: &[bool]) -> Option<Bsons> {
        let touched = |n: &usize| !missed[*n] || hit[*n];
        let left: Vec<usize> = (0..self.subjects.len()).filter(touched).collect();
        if left.len() == self.subjects.len() {
            return None;
        }
        let left = left.into_iter().map(|n| rows::subject(&self.subjects[n]));
        let about = doc! { "$set": { "about": left.collect::<Vec<Bson>>() } };
        Some(update(
            Collection::Commits,
            doc! { "_id": &self.record },
            about,
        ))
    }
}

/// A write combined with its expectation in one step.
struct MergedWrite {
    /// Index of the expectation that it replaces.
    at: usize,
    write: usize,
    /// The expected version; `None` if the document must be absent.
    read: Option<Version>,
}

/// Writes of documents that are combined with an expectation: those whose expectations agree.
fn merged(commit: &Commit) -> BTreeMap<&Key, MergedWrite> {
    let mut demands: BTreeMap<&Key, (usize, Option<Version>, bool)> = BTreeMap::new();
    for (n, expect) in commit.expects().iter().enumerate() {
        let (key, read) = match expect {
            Expect::Absent(key) => (key, None),
            Expect::Version(key, read) | Expect::Unchanged(key, read) => (key, Some(*read)),
            Expect::Fence(..) => continue,
        };
        let known = demands.entry(key).or_insert((n, read, true));
        known.2 &= known.1 == read;
    }
    let mut merged = BTreeMap::new();
    for (write, it) in commit.writes().iter().enumerate() {
        let (key, puts) = match it {
            Write::Put { key, .. } => (key, true),
            Write::Remove(key) => (key, false),
            _ => continue,
        };
        if let Some((at, read, true)) = demands.get(key).copied()
            && (puts || read.is_some())
        {
            merged.insert(key, MergedWrite { at, write, read });
        }
    }
    merged
}

fn is_merged(write: &Write, merged: &BTreeMap<&Key, MergedWrite>) -> bool {
    match write {
        Write::Put { key, .. } | Write::Remove(key) => merged.contains_key(key),
        _ => false,
    }
}

fn as_read(name: &str, read: Version) -> Bsons {
    doc! { "_id": name, "v": uuid(read.0.0) }
}

/// Refuses a document with two terms of one name: a term has one field, with one value.
fn one_of_each(terms: &[sutler_journal::Term]) -> Result<(), MongoError> {
    for (n, term) in terms.iter().enumerate() {
        let twice = |it: &sutler_journal::Term| it.name == term.name && it.value != term.value;
        if terms[..n].iter().any(twice) {
            return Err(MongoError::Unfit(
                "a document has two values of one term, so write it with one of them",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
