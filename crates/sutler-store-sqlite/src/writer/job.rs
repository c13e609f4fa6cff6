//! Jobs of the writer, and the responses to their callers.
//!
//! Commits are by far the most frequent and have their own variant; everything else is a task. A
//! job may run twice (alone, after its group failed), so running it must not consume it.

use super::apply::ApplyResult;
use super::write_session::WriteSession;
use crate::staged_commit::StagedCommit;
use sutler_journal::{CommitError, StoreError, StoreTime};
use tokio::sync::oneshot;

/// A commit is returned to its caller with the result: the caller, not the writer, frees its memory.
pub(crate) type CommitAnswer = (Box<StagedCommit>, Result<(), CommitError>);

/// Why a job failed. Nothing of it was written.
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

/// A unit of work.
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
    /// Any other work.
    Task(Box<dyn Task>),
}

impl Job {
    /// A commit, with the channel for its result.
    pub(crate) fn commit(staged: Box<StagedCommit>, answer: oneshot::Sender<CommitAnswer>) -> Self {
        Self::Commit {
            staged,
            verdict: ApplyResult::Applied,
            answer,
        }
    }

    /// Any work, with the channel for its result.
    pub(crate) fn task<T: Send + 'static>(
        work: impl FnMut(&mut WriteSession<'_>, StoreTime) -> Result<T, JobError> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (answer, waiting) = oneshot::channel();
        let pending = PendingTask {
            work,
            done: None,
            answer,
        };
        (Self::Task(Box::new(pending)), waiting)
    }

    /// Maximum number of documents it can add.
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

    /// Runs it, inside a transaction.
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

    /// Sends the result: the transaction is durable.
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
                // The caller is gone; the commit is durable anyway.
                let _ = answer.send((staged, result));
            }
            Self::Task(task) => task.settle(),
        }
    }

    /// Sends that nothing was written.
    pub(super) fn refuse(self, cause: StoreError) {
        match self {
            Self::Commit { staged, answer, .. } => {
                let _ = answer.send((staged, Err(CommitError::NotWritten(cause))));
            }
            Self::Task(task) => task.fail(cause),
        }
    }

    /// Sends that the outcome is unknown.
    pub(super) fn answer_unknown(self, cause: StoreError) {
        match self {
            Self::Commit { staged, answer, .. } => {
                let _ = answer.send((staged, Err(CommitError::Unknown(cause))));
            }
            Self::Task(task) => task.fail(cause),
        }
    }
}

/// Work other than a commit.
pub(crate) trait Task: Send {
    /// Runs it, inside a transaction.
    fn run(&mut self, session: &mut WriteSession<'_>, now: StoreTime) -> Result<(), JobError>;
    /// Sends the result.
    fn settle(self: Box<Self>);
    /// Sends the error.
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
