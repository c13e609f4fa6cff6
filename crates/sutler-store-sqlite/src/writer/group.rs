//! One group of jobs in one transaction.
//!
//! Every job looks before it writes, so a stale commit leaves nothing behind and needs no savepoint.
//! If a job fails in a way nobody foresaw, the whole group is rolled back and each job is done alone:
//! slow, but one bad job harms no other. Not here: what a job does.

use super::desk::Desk;
use super::job::{Job, Trouble};
use crate::faults::{Fault, FaultPoint};
use rusqlite::ErrorCode;
use sutler_journal::{StoreError, metrics};

/// What the thread does next.
pub(super) enum Flow {
    /// The next group.
    GoOn,
    /// Close the file and open it again.
    Reopen,
}

/// Why a transaction did not end well.
enum Failure {
    /// Before COMMIT: nothing was written.
    Before(Trouble),
    /// A test cut the line before COMMIT: nothing was written.
    Cut,
    /// In COMMIT: nobody knows.
    During(StoreError),
}

/// Runs and answers all jobs of a group.
pub(super) fn run(desk: &mut Desk<'_>, group: &mut Vec<Job>) -> Flow {
    match attempt(desk, group) {
        Ok(()) => {
            desk.publish();
            metrics::record_commit_group(group.len());
            for job in group.drain(..) {
                job.settle();
            }
            desk.give_hints();
            Flow::GoOn
        }
        Err(Failure::Before(trouble)) => {
            let must_reopen = !desk.rolled_back() || is_io(&trouble);
            if must_reopen {
                return refuse_all(group);
            }
            alone_or_refused(desk, group, trouble)
        }
        Err(Failure::Cut) => {
            let whole = desk.rolled_back();
            let _ = refuse_all(group);
            if whole { Flow::GoOn } else { Flow::Reopen }
        }
        Err(Failure::During(cause)) => {
            tracing::error!(
                error = &cause as &dyn std::error::Error,
                jobs = group.len(),
                "the outcome of a group of writes is unknown"
            );
            desk.abandon();
            for job in group.drain(..) {
                job.doubt(StoreError::new(
                    "the store's file failed while the write was made durable",
                ));
            }
            Flow::Reopen
        }
    }
}

fn attempt(desk: &mut Desk<'_>, group: &mut [Job]) -> Result<(), Failure> {
    let before = |cause: rusqlite::Error| Failure::Before(Trouble::Sql(cause));
    desk.begin().map_err(before)?;
    let writes = group.iter().map(Job::writes).sum();
    desk.file_some(writes).map_err(before)?;
    for job in group.iter_mut() {
        job.run(desk).map_err(Failure::Before)?;
    }
    desk.write_tally().map_err(before)?;
    let commits = group.iter().any(Job::is_commit);
    let cut = |desk: &Desk<'_>, point| commits && desk.fault(point) == Fault::Cut;
    if cut(desk, FaultPoint::BeforeCommit) {
        return Err(Failure::Cut);
    }
    if cut(desk, FaultPoint::DuringCommit) {
        return Err(Failure::During(StoreError::new(
            "the line was cut in COMMIT",
        )));
    }
    desk.commit_transaction().map_err(|cause| {
        match cause.sqlite_error_code() {
            // Both are reported before the record that makes the transaction valid is written.
            Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => before(cause),
            _ => Failure::During(StoreError::caused("COMMIT failed", cause)),
        }
    })?;
    if cut(desk, FaultPoint::AfterCommit) {
        return Err(Failure::During(StoreError::new(
            "the line was cut after COMMIT",
        )));
    }
    Ok(())
}

fn alone_or_refused(desk: &mut Desk<'_>, group: &mut Vec<Job>, trouble: Trouble) -> Flow {
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
            Flow::GoOn => run(desk, &mut one),
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

fn explain(trouble: Trouble) -> StoreError {
    match trouble {
        Trouble::Content(cause) => cause,
        Trouble::Sql(cause) => match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                StoreError::caused("the disk with the store's file is full", cause)
            }
            _ => StoreError::caused("the store's file did not take the write", cause),
        },
    }
}

fn is_io(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Sql(cause) => cause.sqlite_error_code() == Some(ErrorCode::SystemIoFailure),
        Trouble::Content(_) => false,
    }
}
