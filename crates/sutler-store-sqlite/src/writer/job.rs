//! Jobs of the writer, and the answers to their callers.
//!
//! Commits are by far the most frequent and have a form of their own; everything else is a task. A
//! job may be run twice (alone, after its group failed), so running it leaves it whole.

use super::apply::ApplyResult;
use super::write_session::WriteSession;
use crate::staged_commit::StagedCommit;
use sutler_journal::{CommitError, StoreError, StoreTime};
use tokio::sync::oneshot;

/// A commit goes back to its caller with the answer: the caller, not the writer, frees its memory.
pub(crate) type CommitAnswer = (Box<StagedCommit>, Result<(), CommitError>);

/// Why a job could not be done. Nothing of it stays.
#[derive(Debug)]
pub(crate) enum JobError {
    /// The database failed.
    Sql(rusqlite::Error),
    /// The contents of the file are invalid.
    Content(StoreError),
}

impl From<rusqlite::Error> for JobError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sql(cause)
    }
}

impl From<StoreError> for JobError {
    fn from(cause: StoreError) -> Self {
        Self::Content(cause)
    }
}

/// One thing to do.
pub(crate) enum Job {
    /// A commit.
    Commit {
        /// The commit.
        staged: Box<StagedCommit>,
        /// Result, once run.
        verdict: ApplyResult,
        /// Channel to the caller.
        answer: oneshot::Sender<CommitAnswer>,
    },
    /// Anything else.
    Task(Box<dyn Task>),
}

impl Job {
    /// A commit, with its answer.
    pub(crate) fn commit(staged: Box<StagedCommit>, answer: oneshot::Sender<CommitAnswer>) -> Self {
        Self::Commit {
            staged,
            verdict: ApplyResult::Applied,
            answer,
        }
    }

    /// Any work, with its answer.
    pub(crate) fn task<T: Send + 'static>(
        work: impl FnMut(&mut WriteSession<'_>, StoreTime) -> Result<T, JobError> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (answer, waiting) = oneshot::channel();
        let asked = PendingTask {
            work,
            done: None,
            answer,
        };
        (Self::Task(Box::new(asked)), waiting)
    }

    /// How many documents it can add at most.
    pub(super) fn writes(&self) -> usize {
        match self {
            Self::Commit { staged, .. } => staged.commit.writes().len(),
            Self::Task(_) => 0,
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn is_commit(&self) -> bool {
        match self {
            Self::Commit { .. } => true,
            Self::Task(_) => false,
        }
    }

    /// Does it, inside a transaction.
    pub(super) fn run(&mut self, session: &mut WriteSession<'_>) -> Result<(), JobError> {
        let now = session.now();
        match self {
            Self::Commit {
                staged, verdict, ..
            } => {
                *verdict = session.commit(staged, now)?;
                Ok(())
            }
            Self::Task(task) => task.run(session, now),
        }
    }

    /// Answers the caller: the transaction is durable.
    pub(super) fn settle(self) {
        match self {
            Self::Commit {
                staged,
                verdict,
                answer,
            } => {
                let result = match verdict {
                    ApplyResult::Applied => Ok(()),
                    ApplyResult::Stale(which) => Err(CommitError::Stale(which)),
                };
                // The caller is gone; the commit is durable all the same.
                let _ = answer.send((staged, result));
            }
            Self::Task(task) => task.settle(),
        }
    }

    /// Nothing of it was written.
    pub(super) fn refuse(self, cause: StoreError) {
        match self {
            Self::Commit { staged, answer, .. } => {
                let _ = answer.send((staged, Err(CommitError::NotWritten(cause))));
            }
            Self::Task(task) => task.fail(cause),
        }
    }

    /// Answers that the outcome is unknown.
    pub(super) fn doubt(self, cause: StoreError) {
        match self {
            Self::Commit { staged, answer, .. } => {
                let _ = answer.send((staged, Err(CommitError::Unknown(cause))));
            }
            Self::Task(task) => task.fail(cause),
        }
    }
}

/// Something other than a commit.
pub(crate) trait Task: Send {
    /// Does it, inside a transaction.
    fn run(&mut self, session: &mut WriteSession<'_>, now: StoreTime) -> Result<(), JobError>;
    /// Answers with what was done.
    fn settle(self: Box<Self>);
    /// Answers that it failed.
    fn fail(self: Box<Self>, cause: StoreError);
}

struct PendingTask<T, W> {
    work: W,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Task for PendingTask<T, W>
where
    T: Send,
    W: FnMut(&mut WriteSession<'_>, StoreTime) -> Result<T, JobError> + Send,
{
    fn run(&mut self, session: &mut WriteSession<'_>, now: StoreTime) -> Result<(), JobError> {
        self.done = Some((self.work)(session, now)?);
        Ok(())
    }

    fn settle(self: Box<Self>) {
        let done = self.done;
        let _ = self
            .answer
            .send(done.ok_or_else(|| StoreError::new("the store did not do what was asked")));
    }

    fn fail(self: Box<Self>, cause: StoreError) {
        let _ = self.answer.send(Err(cause));
    }
}
