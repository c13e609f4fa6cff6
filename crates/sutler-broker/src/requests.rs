//! Handles requests of platforms: reads, calls `decide`, commits, and only then replies.
//!
//! Every verb is the same loop: read the resource, collect the facts, decide, commit; repeat if another writer was
//! first. No hook that changes anything is called here. The verbs are in `requests/`, HTTP is in `http/`;
//! committed operations are run by `executor.rs`.

mod admin_command;
mod binding;
mod instance;
mod poll;
mod purge;
mod respond;
mod unknown_plan;
mod update;

pub(crate) use admin_command::{CommandKind, CommandRequest, CommandResult};
pub(crate) use poll::LastOperation;

use crate::lifecycle::{Decision, Reply, ResponseMode, Verb};
use crate::operation_log::{self, Origin};
use crate::realm_context::RealmContext;
use crate::refusal::Refusal;
use crate::resources::{Detail, RefusedAs, Request, RequestBody};
use crate::service::Policy;
use bytes::Bytes;
use std::sync::Arc;
use sutler_journal::copy::{check_usable, expect_not_moved};
use sutler_journal::{Commit, Engine, Key, OperationId, Queue, Version};
use sutler_osb::{OriginatingIdentity, RequestIdentity};
use sutler_records::{
    CommitDecisionError, DecisionCommit, Documents, LoadedDocument, OperationContent, RecordError,
    Resource, ResultReceiver, StartPlace, commit_decision,
};
use sutler_server::RequestContext;

/// Maximum attempts of a request to commit while other writers are first.
const TRIES: u32 = 32;

/// Caller and options of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestInfo {
    /// Context of the request; `None` if the broker itself makes it.
    pub context: Option<Arc<RequestContext>>,
    pub accepts_incomplete: bool,
    pub identity: Option<OriginatingIdentity>,
    pub request_identity: Option<RequestIdentity>,
}

impl RequestInfo {
    /// Options of a request that the broker itself makes because of another request.
    pub(crate) fn broker(context: Option<Arc<RequestContext>>) -> Self {
        Self {
            context,
            ..Self::default()
        }
    }
}

/// Error of a request.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// Nothing was changed.
    Refused(Refusal),
    /// The operation ran and did not succeed.
    Failed { verb: Verb, detail: Detail },
    /// The time limit of the waiting request has passed.
    Overdue { verb: Verb },
    /// The store is not available.
    Unavailable(Box<dyn std::error::Error + Send + Sync>),
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<RecordError> for RequestError {
    fn from(error: RecordError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<CommitDecisionError> for RequestError {
    fn from(error: CommitDecisionError) -> Self {
        match error {
            CommitDecisionError::TooLarge(_) => {
                let sentence = "The request is too large to be kept; send less.";
                Self::Refused(Refusal::Invalid(sentence.to_owned()))
            }
            CommitDecisionError::Record(error) => Self::Unavailable(error.into()),
            CommitDecisionError::Store(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<sutler_journal::StoreError> for RequestError {
    fn from(error: sutler_journal::StoreError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// Outcome of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangeOutcome<S> {
    /// The resource was already in the requested state (200).
    AlreadyDone(S),
    /// This request made the change (201, or 200 for updates and deletes).
    Done(S),
    /// The operation runs (202).
    Running(OperationId, S),
}

/// Handles the requests of one realm. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RequestHandler {
    pub realm_context: Arc<RealmContext>,
    pub engine: Engine,
}

/// A committed decision.
struct CommittedDecision<S> {
    decision: Decision<S>,
    /// Receiver of the end, if the operation runs here and the request waits.
    result: Option<ResultReceiver<S, Detail>>,
}

impl RequestHandler {
    /// Refuses changes to a store that was moved; returns whether this process holds a lease. While it does, no copy of
    /// the store can be finished.
    async fn check_lease_or_store(&self) -> Result<bool, RequestError> {
        if self.engine.holds_lease() {
            return Ok(true);
        }
        let usable = check_usable(self.realm_context.records.store.as_ref()).await;
        usable.map_err(|error| RequestError::Unavailable(error.into()))?;
        Ok(false)
    }

    /// Commits a decision and starts its operation. `None`: another writer was first; read and decide again.
    async fn commit_and_start<S: Resource>(
        &self,
        key: &Key,
        was: &LoadedDocument<S>,
        decision: Decision<S>,
        draft: &OperationDraft,
        reads: Option<(Key, Version)>,
    ) -> Result<Option<CommittedDecision<S>>, RequestError> {
        let documents = &self.realm_context.records;
        if decision.effects.is_empty() && decision.next == was.state {
            documents.refresh(key, was).await;
            let result = None;
            return Ok(Some(CommittedDecision { decision, result }));
        }
        let has_lease = self.check_lease_or_store().await?;
        let waits = matches!(decision.reply, Reply::Started(_, ResponseMode::Inline));
        let decided = DecisionCommit {
            documents,
            key,
            was,
            next: &decision.next,
            effects: &decision.effects,
            content: &DraftContent {
                documents,
                queue: &self.realm_context.queue,
                draft,
            },
        };
        let engine = &self.engine;
        let place = StartPlace::Here { engine, waits };
        let extend = |commit: Commit| match has_lease {
            true => draft.extend(commit, reads.as_ref()),
            false => expect_not_moved(draft.extend(commit, reads.as_ref())),
        };
        let Some(written) = commit_decision(decided, place, extend).await? else {
            return Ok(None);
        };
        let context = draft.context.as_deref();
        operation_log::accepted(key, &decision.effects, &draft.request, context);
        let inflight = &self.realm_context.inflight;
        let result = written.start(engine, inflight, &decision, &draft.request, waits);
        Ok(Some(CommittedDecision { decision, result }))
    }
}

/// Stored content of the operations that a draft starts or ends.
struct DraftContent<'a> {
    documents: &'a Documents,
    queue: &'a Queue,
    draft: &'a OperationDraft,
}

impl OperationContent<Verb> for DraftContent<'_> {
    fn queue(&self) -> &Queue {
        self.queue
    }

    fn verb_name(&self, verb: Verb) -> &'static str {
        verb.word()
    }

    fn request(&self, id: OperationId) -> Result<Bytes, RecordError> {
        Ok(self.documents.seal_request(id, &self.draft.request))
    }

    fn start_detail(&self, id: OperationId) -> Bytes {
        let detail = Detail {
            retry_after: self.draft.retry_after,
            ..Detail::default()
        };
        self.documents.seal_detail(id, &detail)
    }

    fn end_detail(&self, id: OperationId) -> Bytes {
        let detail = Detail {
            description: self.draft.note.as_ref().map(|note| note.ended.clone()),
            ..Detail::default()
        };
        self.documents.seal_detail(id, &detail)
    }
}

/// Content of an operation to be started.
struct OperationDraft {
    request: Arc<Request>,
    /// Context of the request that is being answered.
    context: Option<Arc<RequestContext>>,
    /// Delay that polls are asked to keep, in seconds.
    retry_after: Option<u64>,
    /// Audit of an operator's command.
    note: Option<AuditNote>,
}

/// Audit data that an operator's command writes with its effects.
struct AuditNote {
    /// Name and sealed content of the audit entry.
    key: Key,
    body: Bytes,
    /// Description for polls of the operations that it ends.
    ended: String,
}

/// The request, as stored with the operation.
fn draft(body: RequestBody, info: &RequestInfo) -> OperationDraft {
    let request = Request {
        body,
        identity: info.identity.clone(),
        request_identity: info.request_identity.clone(),
        origin: info
            .context
            .as_deref()
            .map(Origin::from)
            .unwrap_or_default(),
    };
    OperationDraft {
        request: Arc::new(request),
        context: info.context.clone(),
        retry_after: None,
        note: None,
    }
}

impl OperationDraft {
    /// Adds the document that was read and the audit entry to a commit.
    fn extend(&self, commit: Commit, reads: Option<&(Key, Version)>) -> Commit {
        let commit = match reads {
            Some((read, version)) => commit.unchanged(read.clone(), *version),
            None => commit,
        };
        match &self.note {
            Some(note) => commit.insert(note.key.clone(), Vec::new(), note.body.clone()),
            None => commit,
        }
    }

    fn paced(mut self, policy: &Policy) -> Self {
        self.retry_after = policy.retry_after.map(|wait| wait.as_secs().max(1));
        self
    }
}

/// Other writers were first in every attempt.
fn too_contended() -> RequestError {
    const SENTENCE: &str =
        "Many requests change this resource at once; wait a little, then repeat.";
    RequestError::Refused(Refusal::Busy(SENTENCE))
}

/// The refusal of a hook for the caller, with the stored sentence.
fn refusal_of(as_: RefusedAs, detail: &Detail) -> Refusal {
    let sentence = detail.description.clone().unwrap_or_default();
    match as_ {
        RefusedAs::Invalid => Refusal::Invalid(sentence),
        RefusedAs::Unsupported => Refusal::Unsupported(sentence),
        RefusedAs::RequiresApp => Refusal::RequiresApp,
    }
}
