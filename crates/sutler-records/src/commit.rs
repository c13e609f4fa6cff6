//! The only interpreter of a [`Decision`]: one commit with the next state and every effect.
//!
//! Requests commit through [`commit_decision`], which also starts operations claimed for this process.
//! Runs add a decision to their own commit with [`DecisionCommit::add_to`]. Rules are not here, and
//! neither are logs and metrics: the crate above writes them between the commit and the start.

#[cfg(test)]
mod tests;

use crate::{
    Decision, Documents, Effect, InflightCache, LoadedDocument, RecordError, Resource,
    ResultReceiver, StartedOperation,
};
use bytes::Bytes;
use std::time::Duration;
use sutler_journal::copy::expect_not_moved;
use sutler_journal::{
    Commit, CommitError, CommitSizeError, Due, Engine, ExpectedClaim, Key, NewOperation, Next,
    Operation, OperationId, Outcome, Queue, StaleItem, Start, Version, Write, commit_until_known,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Time for the answer to a commit whose operation starts with it. If the answer takes longer, another process may have
/// ended the operation meanwhile: it starts when a renewal of the lease, sent at once, lists it.
const START_WITHIN: Duration = Duration::from_secs(1);

/// Stored content of the operations that a decision starts or ends. `V`: the verbs.
pub trait OperationContent<V> {
    /// Queue of operations that start.
    fn queue(&self) -> &Queue;

    /// Stored name of a verb.
    fn verb_name(&self, verb: V) -> &'static str;

    /// Sealed request of an operation that starts.
    ///
    /// # Errors
    /// The request it is made of cannot be opened.
    fn request(&self, id: OperationId) -> Result<Bytes, RecordError>;

    /// Sealed detail of an operation that starts.
    fn start_detail(&self, id: OperationId) -> Bytes;

    /// Sealed detail of an operation that the decision ends.
    fn end_detail(&self, id: OperationId) -> Bytes;
}

/// Where operations that a commit adds may start.
#[derive(Clone, Copy)]
pub enum StartPlace<'a> {
    /// With the commit in this process if the engine has a free slot; without one too if a caller
    /// waits for the operation.
    Here {
        /// Engine of this process.
        engine: &'a Engine,
        /// Whether a caller waits for the end.
        waits: bool,
    },
    /// In any process that claims them.
    Anywhere,
}

/// An operation that a commit claims for this process.
pub struct ClaimedOperation {
    id: OperationId,
    claim: ExpectedClaim,
}

/// A decision about one document, with the context needed to write it.
pub struct DecisionCommit<'a, S, V, C> {
    /// Documents of the realm.
    pub documents: &'a Documents,
    /// Key of the resource; also the lane of its operations.
    pub key: &'a Key,
    /// The resource as it was read.
    pub was: &'a LoadedDocument<S>,
    /// State to store.
    pub next: &'a S,
    /// Changes of operations.
    pub effects: &'a [Effect<V>],
    /// Content of operations that start or end.
    pub content: &'a C,
}

impl<S, V, C> Clone for DecisionCommit<'_, S, V, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, V, C> Copy for DecisionCommit<'_, S, V, C> {}

impl<S: Resource, V: Copy, C: OperationContent<V>> DecisionCommit<'_, S, V, C> {
    /// Adds the next state and all effects to a commit.
    ///
    /// `Cancel` also wakes the operation, so that one that waits for its next attempt stops at once.
    ///
    /// # Errors
    /// The request of an operation that starts cannot be opened.
    pub fn add_to(
        &self,
        commit: Commit,
        place: StartPlace<'_>,
    ) -> Result<(Commit, Option<ClaimedOperation>), RecordError> {
        let mut commit = self.documents.put(commit, self.key, self.was, self.next);
        let mut claimed = None;
        for effect in self.effects {
            commit = match *effect {
                Effect::Start(verb, id) => {
                    let here = self.claim(place, id);
                    let start = match &here {
                        Some(here) => Start::Claimed(here.claim.worker()),
                        None => Start::Ready(Due::Now),
                    };
                    let new = self.new_operation(verb, id, start)?;
                    claimed = here.map(|mut here| {
                        here.claim.set_operation(Operation::just_claimed(&new));
                        here
                    });
                    commit.start(new)
                }
                Effect::StartWaiting(verb, id) => {
                    commit.start(self.new_operation(verb, id, Start::Waiting)?)
                }
                Effect::Cancel(id) => commit.write(Write::Cancel(id)).write(Write::Wake(id)),
                Effect::Wake(id) => commit.write(Write::Wake(id)),
                Effect::End(id) => {
                    let sealed = self.content.end_detail(id);
                    commit.advance(id, Next::Done(Outcome::Failed), Some(sealed), None)
                }
            };
        }
        Ok((commit, claimed))
    }

    /// Claims a new operation for this process, if it may start here.
    fn claim(&self, place: StartPlace<'_>, id: OperationId) -> Option<ClaimedOperation> {
        let StartPlace::Here { engine, waits } = place else {
            return None;
        };
        let permit = engine.permit(self.content.queue());
        if !waits && permit.is_none() {
            return None;
        }
        let claim = engine.expect_claim(id, permit)?;
        Some(ClaimedOperation { id, claim })
    }

    fn new_operation(
        &self,
        verb: V,
        id: OperationId,
        start: Start,
    ) -> Result<NewOperation, RecordError> {
        Ok(NewOperation {
            id,
            lane: self.key.clone(),
            verb: self.content.verb_name(verb),
            queue: self.content.queue().clone(),
            start,
            detail: self.content.start_detail(id),
            request: self.content.request(id)?,
        })
    }
}

/// Why a decision was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitDecisionError {
    /// The commit is too large for any store.
    #[error(transparent)]
    TooLarge(CommitSizeError),
    /// The request of an operation that starts cannot be opened.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The store did not write it, or the outcome is unknown.
    #[error(transparent)]
    Store(CommitError),
}

/// A commit that was written, and the operation it claimed for this process.
pub struct WrittenCommit {
    version: Version,
    claimed: Option<ClaimedOperation>,
}

/// Commits a decision with further writes and expectations of the caller (`extend`). `None`: another
/// writer was first; read and decide again.
///
/// # Errors
/// See [`CommitDecisionError`].
pub async fn commit_decision<S: Resource, V: Copy, C: OperationContent<V>>(
    decided: DecisionCommit<'_, S, V, C>,
    place: StartPlace<'_>,
    extend: impl Fn(Commit) -> Commit,
) -> Result<Option<WrittenCommit>, CommitDecisionError> {
    let (commit, claimed) = decided.add_to(Commit::new(), place)?;
    let commit = extend(commit);
    if let Err(why) = commit.check() {
        discard(claimed);
        return Err(CommitDecisionError::TooLarge(why));
    }
    let store = decided.documents.store.as_ref();
    let sent = Instant::now();
    match commit_until_known(store, &commit).await {
        Ok(()) => Ok(Some(WrittenCommit {
            version: Version(commit.id()),
            claimed: claimed.filter(|_| sent.elapsed() < START_WITHIN),
        })),
        // The lease of this process ran out without its notice: another process with a lease claims
        // the operation.
        Err(CommitError::Stale(StaleItem::Write(_))) if claimed.is_some() => {
            discard(claimed);
            let (commit, _) = decided.add_to(Commit::new(), StartPlace::Anywhere)?;
            let commit = expect_not_moved(extend(commit));
            written(
                commit_until_known(store, &commit).await,
                Version(commit.id()),
            )
        }
        // It may be written later: then a renewal of the lease shows it, and it runs.
        Err(unknown @ CommitError::Unknown(_)) => Err(CommitDecisionError::Store(unknown)),
        other => {
            discard(claimed);
            written(other, Version(commit.id()))
        }
    }
}

/// Forgets a claim whose commit was not written.
fn discard(claimed: Option<ClaimedOperation>) {
    if let Some(claimed) = claimed {
        claimed.claim.not_written();
    }
}

fn written(
    result: Result<(), CommitError>,
    version: Version,
) -> Result<Option<WrittenCommit>, CommitDecisionError> {
    match result {
        Ok(()) => Ok(Some(WrittenCommit {
            version,
            claimed: None,
        })),
        Err(CommitError::Stale(_)) => Ok(None),
        Err(error) => Err(CommitDecisionError::Store(error)),
    }
}

impl WrittenCommit {
    /// Starts the operation that was claimed, and notifies runs in this process that were cancelled
    /// or ended. Returns a receiver of the end if `waits` and the operation runs here.
    pub fn start<S, V, R, Q, D>(
        self,
        engine: &Engine,
        inflight: &InflightCache,
        decision: &Decision<S, V, R>,
        request: &Q,
        waits: bool,
    ) -> Option<ResultReceiver<S, D>>
    where
        S: Resource,
        Q: Clone + Send + 'static,
        D: Send + 'static,
    {
        for effect in &decision.effects {
            match effect {
                Effect::Cancel(id) => engine.notify_cancelled(*id),
                Effect::End(id) => engine.notify_ended(*id),
                Effect::Start(..) | Effect::StartWaiting(..) | Effect::Wake(_) => {}
            }
        }
        let ClaimedOperation { id, claim } = self.claimed?;
        let (sender, receiver) = waits.then(oneshot::channel).unzip();
        let started = StartedOperation {
            was: LoadedDocument::written(decision.next.clone(), self.version),
            request: request.clone(),
            result: sender,
        };
        inflight.insert::<S, Q, D>(id, started);
        if claim.run().is_none() {
            // Another process runs it; a caller that waits polls.
            drop(inflight.remove::<S, Q, D>(id));
        }
        receiver
    }
}
