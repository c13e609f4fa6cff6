//! The operation of a run: what was sent for it, and what the run's next commit writes of it.

use crate::lifecycle::intent::IntentEnd;
use crate::metrics::record_operation;
use crate::platform_records::PlatformRecords;
use crate::records::{IntentDetail, IntentProgress};
use std::time::Duration;
use sutler_journal::{Commit, Due, Next, OperationId, Outcome, Run, RunResult};

/// How the operation goes on after a commit of its run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextClaim {
    /// This run goes on.
    Held,
    /// It is claimed again after this time.
    After(Duration),
    /// It waits for a later commit that wakes it.
    Waiting,
    /// It has ended.
    Ended(IntentEnd),
}

/// The operation of a run.
#[derive(Clone)]
pub(crate) struct OwnOperation {
    /// Its id.
    pub(crate) id: OperationId,
    /// What was sent.
    pub(crate) progress: IntentProgress,
    /// What is shown.
    pub(crate) detail: IntentDetail,
    /// How it goes on.
    pub(crate) next: NextClaim,
    stored_progress: IntentProgress,
    stored_detail: IntentDetail,
}

impl OwnOperation {
    /// As it was read when it was claimed.
    pub(crate) fn claimed(id: OperationId, progress: IntentProgress, detail: IntentDetail) -> Self {
        Self {
            id,
            stored_progress: progress.clone(),
            stored_detail: detail.clone(),
            progress,
            detail,
            next: NextClaim::Held,
        }
    }

    /// Adds what changes to a commit. Nothing is added if nothing does.
    pub(crate) fn add_to(&self, commit: Commit, records: &PlatformRecords) -> Commit {
        let (next, progress, detail) = match &self.next {
            NextClaim::Ended(end) => {
                let mut detail = self.detail.clone();
                detail.end = Some(end.clone());
                let progress = self.progress.clone().scrubbed();
                (Next::Done(outcome(end)), progress, detail)
            }
            NextClaim::Held => (Next::Same, self.progress.clone(), self.detail.clone()),
            NextClaim::After(wait) => {
                let next = Next::Ready(Due::In(*wait));
                (next, self.progress.clone(), self.detail.clone())
            }
            NextClaim::Waiting => (Next::Waiting, self.progress.clone(), self.detail.clone()),
        };
        let documents = &records.documents;
        let sealed_progress =
            (progress != self.stored_progress).then(|| documents.seal_progress(self.id, &progress));
        let sealed_detail =
            (detail != self.stored_detail).then(|| documents.seal_detail(self.id, &detail));
        if next == Next::Same && sealed_progress.is_none() && sealed_detail.is_none() {
            return commit;
        }
        commit.advance(self.id, next, sealed_detail, sealed_progress)
    }

    /// How the engine goes on after a commit that gave the claim back.
    pub(crate) fn result(&self) -> RunResult {
        match &self.next {
            NextClaim::After(wait) => RunResult::Released(Some(*wait)),
            NextClaim::Held | NextClaim::Waiting => RunResult::Released(None),
            NextClaim::Ended(_) => RunResult::Finished,
        }
    }

    /// Nothing of it was written: what was prepared for it is forgotten, because it may follow from what has changed.
    pub(crate) fn forget_unwritten(&mut self) {
        self.progress = self.stored_progress.clone();
        self.detail = self.stored_detail.clone();
        self.next = NextClaim::Held;
    }

    /// The commit of the run was written.
    pub(crate) fn written(&mut self, run: &Run, records: &PlatformRecords) {
        if let NextClaim::Ended(end) = &self.next {
            let row = &run.operation().row;
            let after = records.documents.clock.now().since(row.accepted);
            record_operation(&row.verb, outcome(end), after);
        }
        self.stored_progress = self.progress.clone();
        self.stored_detail = self.detail.clone();
    }
}

/// The coarse outcome of an intent, as the journal counts it.
pub(crate) fn outcome(end: &IntentEnd) -> Outcome {
    match end {
        IntentEnd::Succeeded => Outcome::Succeeded,
        IntentEnd::Rejected(_) | IntentEnd::Failed(_) => Outcome::Failed,
        IntentEnd::Superseded(_) | IntentEnd::Cancelled(_) => Outcome::Cancelled,
    }
}
