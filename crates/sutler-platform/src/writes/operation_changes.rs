//! Changes of operations that a decision calls for, the same for every kind of resource.
//!
//! An operation that ends loses its prepared request, which may hold secrets. Of an operation of another run that request
//! is stored, so what it sent is read first ([`ScrubbedOperations`]).

use super::own_operation::{NextClaim, OwnOperation, outcome};
use crate::lifecycle::intent::IntentEnd;
use crate::platform_records::PlatformRecords;
use crate::records::{IntentDetail, IntentProgress, IntentRequest};
use std::collections::HashMap;
use sutler_journal::{Commit, Due, Key, NewOperation, Next, OperationId, Queue, Start, Write};
use sutler_records::RecordError;

/// A change of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OperationChange {
    /// It begins.
    Start {
        /// Id.
        id: OperationId,
        /// Verb, for lists and counts.
        verb: &'static str,
        /// When it may be claimed.
        start: Start,
        /// What was accepted.
        request: Box<IntentRequest>,
    },
    /// It may be claimed now.
    Wake(OperationId),
    /// It waits until a later commit wakes it.
    Suspend(OperationId),
    /// It ends.
    End(OperationId, IntentEnd),
    /// Its prepared request is removed: its next one is another one.
    DiscardRequest(OperationId),
}

impl OperationChange {
    /// The operation whose stored progress must be known, because the change removes a request from it.
    fn scrubs(&self) -> Option<OperationId> {
        match self {
            Self::End(id, _) | Self::DiscardRequest(id) => Some(*id),
            Self::Start { .. } | Self::Wake(_) | Self::Suspend(_) => None,
        }
    }
}

/// What operations of other runs sent, without their requests. Those that sent nothing are not in it.
#[derive(Default)]
pub(crate) struct ScrubbedOperations(HashMap<OperationId, (IntentProgress, IntentDetail)>);

impl ScrubbedOperations {
    /// Reads the operations that the changes end.
    ///
    /// # Errors
    /// The store does not answer, or an operation cannot be opened.
    pub(crate) async fn read(
        records: &PlatformRecords,
        changes: &[OperationChange],
        own: Option<OperationId>,
    ) -> Result<Self, RecordError> {
        let mut found = HashMap::new();
        let ids = changes.iter().filter_map(OperationChange::scrubs);
        for id in ids.filter(|id| Some(*id) != own) {
            let documents = &records.documents;
            let Some(operation) = documents.store.operation(id).await? else {
                continue;
            };
            let progress: IntentProgress = documents.open_progress(&operation)?;
            let detail = documents.open_detail(id, &operation.row.detail)?;
            found.insert(id, (progress.scrubbed(), detail));
        }
        Ok(Self(found))
    }
}

/// Writes changes of the operations of one lane.
pub(crate) struct OperationWriter<'a> {
    /// Documents.
    pub(crate) records: &'a PlatformRecords,
    /// Document of the lane.
    pub(crate) lane: &'a Key,
    /// Queue of the operations.
    pub(crate) queue: &'a Queue,
    /// What operations that end have sent.
    pub(crate) scrubbed: &'a ScrubbedOperations,
}

impl OperationWriter<'_> {
    /// Adds the changes to a commit. Those of the run's own operation are only noted in it: its run adds them.
    pub(crate) fn add_to(
        &self,
        mut commit: Commit,
        changes: Vec<OperationChange>,
        mut own: Option<&mut OwnOperation>,
    ) -> Commit {
        for change in changes {
            commit = match (change, own.as_deref_mut()) {
                (OperationChange::Suspend(id), Some(own)) if own.id == id => {
                    own.next = NextClaim::Waiting;
                    commit
                }
                (OperationChange::End(id, end), Some(own)) if own.id == id => {
                    own.next = NextClaim::Ended(end);
                    commit
                }
                (OperationChange::DiscardRequest(id), Some(own)) if own.id == id => {
                    own.progress = std::mem::take(&mut own.progress).scrubbed();
                    commit
                }
                (OperationChange::Wake(id), Some(own)) if own.id == id => commit,
                (change, _) => self.add(commit, change),
            };
        }
        commit
    }

    fn add(&self, commit: Commit, change: OperationChange) -> Commit {
        match change {
            OperationChange::Start {
                id,
                verb,
                start,
                request,
            } => commit.start(self.new_operation(id, verb, start, &request)),
            OperationChange::Wake(id) => commit.write(Write::Wake(id)),
            OperationChange::Suspend(id) => commit.advance(id, Next::Waiting, None, None),
            OperationChange::End(id, end) => {
                let documents = &self.records.documents;
                let (progress, mut detail) = self.scrubbed.0.get(&id).cloned().unwrap_or_default();
                let next = Next::Done(outcome(&end));
                detail.end = Some(end);
                let detail = documents.seal_detail(id, &detail);
                let progress = (progress != IntentProgress::default())
                    .then(|| documents.seal_progress(id, &progress));
                commit.advance(id, next, Some(detail), progress)
            }
            OperationChange::DiscardRequest(id) => match self.scrubbed.0.get(&id) {
                Some((progress, _)) => {
                    let progress = self.records.documents.seal_progress(id, progress);
                    commit.advance(id, Next::Same, None, Some(progress))
                }
                None => commit,
            },
        }
    }

    fn new_operation(
        &self,
        id: OperationId,
        verb: &'static str,
        start: Start,
        request: &IntentRequest,
    ) -> NewOperation {
        let documents = &self.records.documents;
        let detail = IntentDetail {
            number: Some(request.number),
            ..IntentDetail::default()
        };
        NewOperation {
            id,
            lane: self.lane.clone(),
            verb,
            queue: self.queue.clone(),
            start,
            detail: documents.seal_detail(id, &detail),
            request: documents.seal_request(id, request),
        }
    }
}

/// An operation that is claimed as soon as a worker looks.
pub(crate) const START_NOW: Start = Start::Ready(Due::Now);
