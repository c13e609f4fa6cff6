//! End of a run: outcome, detail and the resource's next state in one commit.
//!
//! The meaning of an end is decided by the crate above ([`EndedResource::ended`]); if another writer
//! was first, it is decided again. Calling hooks is not done here.

use crate::documents::wait_to_read;
use crate::{
    CommittedEnd, Decision, DecisionCommit, Documents, End, LoadedDocument, OperationContent,
    OperationEnd, RecordError, Resource, ResultSender, StartPlace,
};
use bytes::Bytes;
use serde::Serialize;
use sutler_journal::{
    Commit, CommitRejectedError, CommitSizeError, Lost, Next, OperationId, Outcome, Queue, Run,
    Write,
};

/// A resource whose operations end.
pub trait EndedResource: Resource {
    /// Verbs of its operations.
    type Verb: Copy + Send + Sync;
    /// Replies of its rules.
    type Reply: Send;
    /// Output of a run that succeeded.
    type Output: Clone + Send;

    /// Decides the end of an operation. `None`: the resource does not know the operation.
    fn ended(
        self,
        id: OperationId,
        end: End<Self::Output>,
    ) -> Option<Decision<Self, Self::Verb, Self::Reply>>;

    /// Whether the operation was abandoned while it ran: then it did not succeed, whatever its run
    /// returns.
    fn is_halted(&self, id: OperationId) -> bool;
}

/// How a run ended, and the sender to a caller that waits for it.
pub struct RunEnd<S: EndedResource, D> {
    /// End of the run.
    pub end: End<S::Output>,
    /// Detail to store.
    pub detail: D,
    /// The resource as it was read before the run.
    pub was: Option<LoadedDocument<S>>,
    /// Sender to a caller that waits in this process.
    pub result: Option<ResultSender<S, D>>,
}

/// Parts of an end that the crate above decides.
pub trait EndContext<V, D>: Sync {
    /// Queue of operations that an end starts.
    fn queue(&self) -> &Queue;

    /// Stored name of a verb.
    fn verb_name(&self, verb: V) -> &'static str;

    /// Detail of an operation whose result is too large for any store.
    fn too_large(&self, run: &Run, why: CommitSizeError) -> D;

    /// Adds further writes to the commit of the end.
    fn extend(
        &self,
        commit: Commit,
        run: &Run,
    ) -> impl Future<Output = Result<Commit, Lost>> + Send;

    /// Logs and counts an end that was committed.
    fn committed(&self, run: &Run, outcome: Outcome);
}

/// Whether the end of a run was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndResult {
    /// It was committed.
    Committed,
    /// The resource does not know the operation: see [`Documents::end_orphaned`].
    Orphaned,
}

/// Content of operations that the end of a run starts or ends: they have the same request.
struct EndContent<'a, X, D> {
    documents: &'a Documents,
    run: &'a Run,
    context: &'a X,
    detail: std::marker::PhantomData<fn() -> D>,
}

impl<V, D, X: EndContext<V, D>> OperationContent<V> for EndContent<'_, X, D> {
    fn queue(&self) -> &Queue {
        self.context.queue()
    }

    fn verb_name(&self, verb: V) -> &'static str {
        self.context.verb_name(verb)
    }

    fn request(&self, id: OperationId) -> Result<Bytes, RecordError> {
        self.documents.copy_request(self.run.operation(), id)
    }

    fn start_detail(&self, _: OperationId) -> Bytes {
        Bytes::new()
    }

    fn end_detail(&self, _: OperationId) -> Bytes {
        Bytes::new()
    }
}

impl Documents {
    /// Commits the end of a run together with its resource's next state, and sends it to the caller
    /// that waits in this process.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn commit_end<S, D, X>(
        &self,
        run: &Run,
        ended: RunEnd<S, D>,
        context: &X,
    ) -> Result<EndResult, Lost>
    where
        S: EndedResource + Sync,
        D: Serialize + Default + PartialEq + Send + Sync,
        X: EndContext<S::Verb, D>,
    {
        let RunEnd {
            mut end,
            mut detail,
            mut was,
            result,
        } = ended;
        let lane = &run.operation().row.lane;
        let content = EndContent {
            documents: self,
            run,
            context,
            detail: std::marker::PhantomData::<fn() -> D>,
        };
        loop {
            let was = match was.take() {
                Some(was) => was,
                None => self.load_for_run::<S>(run, lane).await?,
            };
            let Some(decision) = was.state.clone().ended(run.id(), end.clone()) else {
                return Ok(EndResult::Orphaned);
            };
            let outcome = outcome_of(&end, was.state.is_halted(run.id()));
            let sealed = self.seal_detail(run.id(), &detail);
            let decided = DecisionCommit {
                documents: self,
                key: lane,
                was: &was,
                next: &decision.next,
                effects: &decision.effects,
                content: &content,
            };
            let commit = match decided.add_to(Commit::new(), StartPlace::Anywhere) {
                // The document first: PostgreSQL has one statement for this order (`fast_commit.rs`).
                Ok((commit, _)) => {
                    commit.advance(run.id(), Next::Done(outcome), Some(sealed), None)
                }
                Err(error) => {
                    wait_to_read(run, "a request cannot be read", error).await?;
                    continue;
                }
            };
            let commit = context.extend(commit, run).await?;
            match run.commit(commit).await? {
                Ok(()) => {
                    context.committed(run, outcome);
                    let state = decision.next;
                    let end = OperationEnd { outcome, detail };
                    // The receiver may be gone; its caller has stopped waiting.
                    result.map(|result| result.send(CommittedEnd { state, end }));
                    return Ok(EndResult::Committed);
                }
                Err(CommitRejectedError::Stale(_)) => {}
                // The operation fails rather than being tried for ever.
                Err(CommitRejectedError::TooLarge(why)) => {
                    (end, detail) = (End::Failed, context.too_large(run, why));
                }
            }
        }
    }

    /// Ends an operation that its resource does not know: purged, or imported without it.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn end_orphaned<D: Serialize + Default + PartialEq>(
        &self,
        run: &Run,
        detail: &D,
    ) -> Result<(), Lost> {
        let sealed = self.seal_detail(run.id(), detail);
        let commit = Commit::new()
            .advance(run.id(), Next::Done(Outcome::Cancelled), Some(sealed), None)
            .write(Write::Unpin(run.id()));
        run.commit(commit).await?.map_err(|_| Lost)
    }
}

/// A create that was halted, or an update that was abandoned, did not succeed, whatever its run
/// returns.
fn outcome_of<T>(end: &End<T>, halted: bool) -> Outcome {
    match end {
        End::Succeeded(_) | End::Failed | End::Refused if halted => Outcome::Cancelled,
        End::Succeeded(_) => Outcome::Succeeded,
        End::Failed | End::Refused => Outcome::Failed,
    }
}
