//! Fast functions for the two commits of every request.
//!
//! A commit that creates a document and starts an operation, and one that replaces a document and ends an
//! operation, each have their own function (`layout_3/fast_commit.sql`), which handles only the successful
//! case. In all other cases the general function decides (`commit.rs`), so no decision is made twice.

use super::ids::Id;
use super::sql;
use crate::codec;
use crate::commit_rows::{
    ABSENT, ADVANCE, CommitRows, ExpectRow, FENCE, PUT, PUT_NEW, START, VERSION, WriteRow,
};
use crate::error::SqlError;
use crate::rows::{Cells as _, only};
use sqlx::Arguments;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};

/// A commit that has a fast function.
pub(super) struct FastCommit<'s> {
    staged: &'s CommitRows<'s>,
    form: FastCommitKind<'s>,
    put: &'s WriteRow<'s>,
    /// Write of the operation.
    operation: &'s WriteRow<'s>,
}

enum FastCommitKind<'s> {
    Accept,
    Result {
        read: &'s ExpectRow<'s>,
        fence: &'s ExpectRow<'s>,
    },
}

impl<'s> FastCommit<'s> {
    /// `None` if the commit has another form.
    pub(super) fn of(staged: &'s CommitRows<'s>) -> Option<Self> {
        let [put, operation] = staged.writes.as_slice() else {
            return None;
        };
        // The expectation of the document must be the first: these functions check it first, and a stale
        // commit names the first precondition that fails.
        let form = match (put.kind, operation.kind, staged.expects.as_slice()) {
            (PUT_NEW, START, [one]) if one.kind == ABSENT => FastCommitKind::Accept,
            (PUT, ADVANCE, [read, fence]) if read.kind == VERSION && fence.kind == FENCE => {
                FastCommitKind::Result { read, fence }
            }
            _ => return None,
        };
        if let FastCommitKind::Result { read, fence } = &form {
            let ends = operation.state.is_some_and(codec::is_end);
            if !ends || read.key != put.key || fence.id != operation.id {
                return None;
            }
        }
        Some(Self {
            staged,
            form,
            put,
            operation,
        })
    }

    pub(super) fn statement(&self) -> &'static str {
        match self.form {
            FastCommitKind::Accept => sql::ACCEPT,
            FastCommitKind::Result { .. } => sql::RESULT,
        }
    }

    /// Adds the parameters of the function, in their order.
    pub(super) fn fill(&self, to: &mut PgArguments) -> Result<(), BoxDynError> {
        let (put, operation) = (self.put, self.operation);
        let lock = |shared: bool| {
            let mut locks = self.staged.locks.iter();
            locks.find(|lock| lock.1 == shared).map(|lock| lock.0)
        };
        to.add(Id(self.staged.id))?;
        to.add(lock(false))?;
        if matches!(self.form, FastCommitKind::Accept) {
            to.add(lock(true))?;
        }
        to.add(put.key)?;
        if let FastCommitKind::Result { read, .. } = self.form {
            to.add(read.id.map(Id))?;
        }
        to.add(put.terms.iter().map(|t| &t.0[..]).collect::<Vec<_>>())?;
        to.add(put.terms.iter().map(|t| t.1).collect::<Vec<_>>())?;
        to.add(put.a)?;
        to.add(operation.id.map(Id))?;
        match self.form {
            FastCommitKind::Accept => {
                to.add(operation.worker.map(Id))?;
                to.add(operation.state)?;
                to.add(operation.wait)?;
                to.add(operation.verb)?;
                to.add(operation.queue)?;
                to.add(operation.key)?;
            }
            FastCommitKind::Result { fence, .. } => {
                to.add(fence.fence)?;
                to.add(operation.state)?;
            }
        }
        to.add(operation.a)?;
        to.add(operation.b)?;
        to.add([&put.subject[..], &operation.subject[..]].concat())
    }

    /// Result as the general function would return it; `None` if that must be called. The
    /// document is the first expectation, so its result is the same.
    pub(super) fn verdict(answer: Result<Vec<PgRow>, SqlError>) -> Option<Result<i64, SqlError>> {
        let found = match answer {
            Ok(found) => found,
            Err(SqlError::Refused { code, .. }) if ["SU002", "23505"].contains(&&code[..]) => {
                return None;
            }
            Err(trouble) => return Some(Err(trouble)),
        };
        match only(&found).and_then(|row| row.integer(0)) {
            Ok(Some(verdict)) => Some(Ok(verdict)),
            Ok(None) => None,
            Err(trouble) => Some(Err(trouble)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FastCommit;
    use crate::commit_rows::CommitRows;
    use bytes::Bytes;
    use sutler_journal::{
        Commit, CommitId, Due, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue,
        Realm, Start, Version, Write,
    };
    use uuid::Uuid;

    fn key(id: &str) -> Key {
        Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &[id]).unwrap()
    }

    fn new() -> NewOperation {
        NewOperation {
            id: OperationId::fresh(),
            lane: key("a"),
            verb: "provision",
            queue: Queue::named("q"),
            start: Start::Ready(Due::Now),
            detail: Bytes::new(),
            request: Bytes::new(),
        }
    }

    fn has_fast_function(commit: &Commit) -> bool {
        FastCommit::of(&CommitRows::of(commit)).is_some()
    }

    #[test]
    fn only_accepting_and_ending_commits_have_a_fast_function() {
        let (id, other) = (OperationId::fresh(), OperationId::fresh());
        let read = Version(CommitId(Uuid::nil()));
        let insert = Commit::new().insert(key("a"), Vec::new(), Bytes::new());
        let replace = Commit::new().replace(key("a"), read, Vec::new(), Bytes::new());
        let fence_first = Commit::new().fenced(id, Fence(1));
        let fence_first = fence_first.replace(key("a"), read, Vec::new(), Bytes::new());
        let done = Next::Done(Outcome::Failed);
        let end = |of: &Commit, next| of.clone().advance(id, next, None, None);
        assert!(has_fast_function(&insert.clone().start(new())));
        assert!(has_fast_function(&end(&replace, done).fenced(id, Fence(1))));
        for general in [
            insert.clone(),
            insert.clone().start(new()).start(new()),
            insert.clone().unchanged(key("b"), read).start(new()),
            replace.clone().start(new()),
            end(&replace, done),
            end(&fence_first, done),
            end(&replace, done).fenced(other, Fence(1)),
            end(&replace, Next::Same).fenced(id, Fence(1)),
            end(&insert, done).fenced(id, Fence(1)),
            replace.write(Write::Cancel(id)).fenced(id, Fence(1)),
        ] {
            assert!(!has_fast_function(&general), "{general:?}");
        }
    }
}
