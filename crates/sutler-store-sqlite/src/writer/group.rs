//! One group of jobs in one transaction.
//!
//! Every job checks before it writes, so a stale commit leaves nothing behind and needs no savepoint.
//! If a job fails unexpectedly, the whole group is rolled back and each job runs alone:
//! slow, but one bad job harms no other. Not here: the jobs.

use super::job::{Job, JobError};
use super::write_session::WriteSession;
#[cfg(any(test, feature = "testing"))]
use crate::faults::{Fault, FaultPoint};
use rusqlite::ErrorCode;
use sutler_journal::{StoreError, metrics};

/// Next step of the writer thread.
pub(super) enum Flow {
    /// Run the next group.
    GoOn,
    /// Close the file and open it again.
    Reopen,
}

/// Why a transaction failed.
enum GroupError {
    /// Before COMMIT: nothing was written.
    Before(JobError),
    /// A test simulated a broken connection before COMMIT: nothing was written.
    #[cfg(any(test, feature = "testing"))]
    Cut,
    /// During COMMIT: the outcome is unknown.
    During(StoreError),
}

/// Runs all jobs of a group and sends their responses.
pub(super) fn run(session: &mut WriteSession<'_>, group: &mut Vec<Job>) -> Flow {
    match attempt(session, group) {
        Ok(()) => {
            session.publish();
            metrics::record_commit_group(group.len());
            for job in group.drain(..) {
                job.settle();
            }
            session.give_hints();
            Flow::GoOn
        }
        Err(GroupError::Before(trouble)) => {
            let must_reopen = !session.rolled_back() || is_io(&trouble);
            if must_reopen {
                return refuse_all(group);
            }
            alone_or_refused(session, group, trouble)
        }
        #[cfg(any(test, feature = "testing"))]
        Err(GroupError::Cut) => {
            let whole = session.rolled_back();
            let _ = refuse_all(group);
            if whole { Flow::GoOn } else { Flow::Reopen }
        }
        Err(GroupError::During(cause)) => {
            tracing::error!(
                error = &cause as &dyn std::error::Error,
                jobs = group.len(),
                "the outcome of a group of writes is unknown"
            );
            session.abandon();
            for job in group.drain(..) {
                job.answer_unknown(StoreError::new(
                    "the store's file failed while the write was made durable",
                ));
            }
            Flow::Reopen
        }
    }
}

fn attempt(session: &mut WriteSession<'_>, group: &mut [Job]) -> Result<(), GroupError> {
    let before = |cause: rusqlite::Error| GroupError::Before(JobError::Sql(cause));
    session.begin().map_err(before)?;
    let writes = group.iter().map(Job::writes).sum();
    session.backfill_some(writes).map_err(before)?;
    for job in group.iter_mut() {
        job.run(session).map_err(GroupError::Before)?;
    }
    session.write_tally().map_err(before)?;
    #[cfg(any(test, feature = "testing"))]
    for point in [FaultPoint::BeforeCommit, FaultPoint::DuringCommit] {
        cut(session, group, point)?;
    }
    session.commit_transaction().map_err(|cause| {
        match cause.sqlite_error_code() {
            // Both are reported before the record that makes the transaction valid is written.
            Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => before(cause),
            _ => GroupError::During(StoreError::caused("COMMIT failed", cause)),
        }
    })?;
    #[cfg(any(test, feature = "testing"))]
    cut(session, group, FaultPoint::AfterCommit)?;
    Ok(())
}

/// Fails a group that holds a commit, at the point where a test cuts it.
#[cfg(any(test, feature = "testing"))]
fn cut(session: &WriteSession<'_>, group: &[Job], point: FaultPoint) -> Result<(), GroupError> {
    if !group.iter().any(Job::is_commit) || session.shared.settings.faults.at(point) == Fault::None
    {
        return Ok(());
    }
    Err(match point {
        FaultPoint::BeforeCommit => GroupError::Cut,
        FaultPoint::DuringCommit => {
            GroupError::During(StoreError::new("the line was cut in COMMIT"))
        }
        FaultPoint::AfterCommit => {
            GroupError::During(StoreError::new("the line was cut after COMMIT"))
        }
    })
}

fn alone_or_refused(
    session: &mut WriteSession<'_>,
    group: &mut Vec<Job>,
    trouble: JobError,
) -> Flow {
    if group.len() == 1
        && let Some(job) = group.pop()
    {
        job.refuse(explain(trouble));
        return Flow::GoOn;
    }
    let mut flow = Flow::GoOn;
    for job in group.drain(..) {
        let mut one = vec![job];
        flow = match flow {
            Flow::GoOn => run(session, &mut one),
            Flow::Reopen => refuse_all(&mut one),
        };
    }
    flow
}

fn refuse_all(group: &mut Vec<Job>) -> Flow {
    for job in group.drain(..) {
        job.refuse(StoreError::new(
            "the store's file could not be used; it is opened again",
        ));
    }
    Flow::Reopen
}

fn explain(trouble: JobError) -> StoreError {
    match trouble {
        JobError::Content(cause) => cause,
        JobError::Sql(cause) => match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                StoreError::caused("the disk with the store's file is full", cause)
            }
            _ => StoreError::caused("the store's file did not take the write", cause),
        },
    }
}

fn is_io(trouble: &JobError) -> bool {
    match trouble {
        JobError::Sql(cause) => cause.sqlite_error_code() == Some(ErrorCode::SystemIoFailure),
        JobError::Content(_) => false,
    }
}
