//! The desk: takes requests in. Reads, asks `decide`, commits, and only then answers.
//!
//! Every verb is the same loop: read the resource, gather the facts, decide, commit; if somebody
//! wrote first, do it again. Nothing is done in the world here. The verbs are in `desk/`; the wire is
//! in `http/`; what is committed here is carried out by `executor.rs`.

mod answer;
mod binding;
mod instance;
mod order;
mod poll;
mod untimely;
mod update;
mod wait;

pub(crate) use instance::unknown_plan;
pub(crate) use order::{Command, Given, Obeyed};
pub(crate) use poll::LastOperation;

use crate::handover::{Concluded, Fresh};
use crate::lifecycle::{Decision, Effect, Pace, Reply, Verb};
use crate::operation_log::{self, Origin};
use crate::records::{Detail, Kept, Loaded, RecordError, RefusedAs, Request, asked};
use crate::refusal::Refusal;
use crate::service::Policy;
use crate::stock::Stock;
use bytes::Bytes;
use serde::Serialize;
use std::sync::Arc;
use sutler_journal::{
    Commit, CommitError, Due, Engine, Key, NewOperation, Next, Operation, OperationId, Outcome,
    Permit, SealedWith, StaleItem, Start, Version, Write, commit_until_known,
};
use sutler_osb::{OriginatingIdentity, RequestIdentity};
use sutler_server::RequestContext;
use tokio::sync::oneshot;

/// How often a request reads and decides again before it gives up: others kept coming first.
const TRIES: u32 = 32;

/// Who asks, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The request's context; none where the broker itself asks.
    pub context: Option<Arc<RequestContext>>,
    pub accepts_incomplete: bool,
    pub identity: Option<OriginatingIdentity>,
    pub request_identity: Option<RequestIdentity>,
}

impl Asker {
    /// The broker itself asks, because of a request.
    pub(crate) fn broker(context: Option<Arc<RequestContext>>) -> Self {
        Self {
            context,
            ..Self::default()
        }
    }
}

/// Why there is no success to answer with.
#[derive(Debug)]
pub(crate) enum Problem {
    /// Nothing was changed.
    Refused(Refusal),
    /// The operation ran and did not succeed.
    Failed { verb: Verb, detail: Detail },
    /// The caller waited as long as it may.
    Overdue { verb: Verb },
    /// The store cannot take or give anything now.
    Unavailable(Box<dyn std::error::Error + Send + Sync>),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<sutler_journal::StoreError> for Problem {
    fn from(error: sutler_journal::StoreError) -> Self {
        Self::Unavailable(error.into())
    }
}

/// How a change is answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Changed<S> {
    /// It was already so (200).
    AlreadyDone(S),
    /// This request did it (201, or 200 for changes and deletes).
    Done(S),
    /// It runs (202).
    Running(OperationId, S),
}

/// The desk. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub stock: Arc<Stock>,
    pub engine: Engine,
}

/// A resource's key, how it was read, what was decided, for whom, and what else was read.
type Asked<'a, S> = (
    &'a Key,
    &'a Loaded<S>,
    &'a Decision<S>,
    &'a Draft,
    Option<&'a (Key, Version)>,
);

/// What a commit of the desk was about.
struct Applied<S> {
    state: S,
    reply: Reply,
    /// What it comes to, if it runs here.
    result: Option<oneshot::Receiver<Concluded<S>>>,
}

impl Desk {
    /// Commits a decision. `None`: somebody wrote first; read and decide again.
    async fn apply<S: Kept>(
        &self,
        key: &Key,
        was: &Loaded<S>,
        decision: Decision<S>,
        draft: &Draft,
        reads: Option<(Key, Version)>,
    ) -> Result<Option<Applied<S>>, Problem> {
        if decision.effects.is_empty() && decision.next == was.state {
            self.stock.records.refresh(key, was).await;
            let Decision {
                next: state, reply, ..
            } = decision;
            return Ok(Some(Applied {
                state,
                reply,
                result: None,
            }));
        }
        let asked = (key, was, &decision, draft, reads.as_ref());
        let (commit, claimed) = self.commit_of(asked, true);
        if commit.check().is_err() {
            let sentence = "The request is too large to be kept; send less.";
            return Err(Refusal::Invalid(sentence.to_owned()).into());
        }
        let store = self.stock.records.store.as_ref();
        match commit_until_known(store, &commit).await {
            Ok(()) => {
                draft.accepted(key, &decision.effects);
                let version = Version(commit.id());
                Ok(Some(self.set_going(decision, claimed, version, draft)))
            }
            // Our lease ran out and we do not know it yet: whoever holds one takes the operation.
            Err(CommitError::Stale(StaleItem::Write(_))) if claimed.is_some() => {
                let (commit, _) = self.commit_of(asked, false);
                match commit_until_known(store, &commit).await {
                    Ok(()) => {
                        draft.accepted(key, &decision.effects);
                        let version = Version(commit.id());
                        Ok(Some(self.set_going(decision, None, version, draft)))
                    }
                    Err(CommitError::Stale(_)) => Ok(None),
                    Err(error) => Err(Problem::Unavailable(error.into())),
                }
            }
            Err(CommitError::Stale(_)) => Ok(None),
            Err(error) => Err(Problem::Unavailable(error.into())),
        }
    }

    /// What a decision comes to in the store. `claim`: what can start here starts with the commit.
    fn commit_of<S: Kept>(
        &self,
        (key, was, decision, draft, reads): Asked<'_, S>,
        claim: bool,
    ) -> (Commit, Option<(Operation, Option<Permit>)>) {
        let records = &self.stock.records;
        let mut commit = records.put(Commit::new(), key, was, &decision.next);
        if let Some((read, version)) = reads {
            commit = commit.unchanged(read.clone(), *version);
        }
        if let Some(note) = &draft.note {
            commit = commit.insert(note.key.clone(), Vec::new(), note.body.clone());
        }
        let mut claimed = None;
        for effect in &decision.effects {
            commit = match *effect {
                Effect::Start(verb, id) => {
                    let permit = claim
                        .then(|| self.engine.permit(&self.stock.queue))
                        .flatten();
                    let inline = matches!(decision.reply, Reply::Started(_, Pace::Inline));
                    // Somebody waits for it, or there is room: it starts with this commit.
                    let here = claim && (inline || permit.is_some());
                    let start = if here {
                        Start::Claimed(self.engine.worker())
                    } else {
                        Start::Ready(Due::Now)
                    };
                    let new = self.new_operation(key, verb, id, start, draft);
                    if here {
                        claimed = Some((Operation::just_claimed(&new), permit));
                    }
                    commit.start(new)
                }
                Effect::StartWaiting(verb, id) => {
                    commit.start(self.new_operation(key, verb, id, Start::Waiting, draft))
                }
                // One that waits for its next attempt need not wait to be stopped.
                Effect::Cancel(id) => commit.write(Write::Cancel(id)).write(Write::Wake(id)),
                Effect::Wake(id) => commit.write(Write::Wake(id)),
                Effect::End(id) => {
                    let detail = Detail {
                        description: draft.note.as_ref().map(|note| note.ended.clone()),
                        ..Detail::default()
                    };
                    let sealed = records.seal_detail(id, &detail);
                    commit.advance(id, Next::Done(Outcome::Failed), Some(sealed), None)
                }
            };
        }
        (commit, claimed)
    }

    /// After the commit: what it claimed for this process starts, what it cancelled is told.
    fn set_going<S: Kept>(
        &self,
        decision: Decision<S>,
        claimed: Option<(Operation, Option<Permit>)>,
        version: Version,
        draft: &Draft,
    ) -> Applied<S> {
        for effect in &decision.effects {
            match effect {
                Effect::Cancel(id) => self.engine.notify_cancelled(*id),
                Effect::End(id) => self.engine.notify_ended(*id),
                Effect::Start(..) | Effect::StartWaiting(..) | Effect::Wake(_) => {}
            }
        }
        let waits = matches!(decision.reply, Reply::Started(_, Pace::Inline));
        let (sender, receiver) = waits.then(oneshot::channel).unzip();
        let started = claimed.map(|(operation, permit)| {
            let was = Loaded {
                state: decision.next.clone(),
                version: Some(version),
                sealed_with: SealedWith::Current,
            };
            let request = draft.request.clone();
            let result = sender;
            let fresh = Fresh {
                was,
                request,
                result,
            };
            self.stock.handover.leave(operation.row.id, fresh);
            self.engine.run_claimed(operation, permit);
        });
        Applied {
            state: decision.next,
            reply: decision.reply,
            result: started.and(receiver),
        }
    }

    fn new_operation(
        &self,
        lane: &Key,
        verb: Verb,
        id: OperationId,
        start: Start,
        draft: &Draft,
    ) -> NewOperation {
        let records = &self.stock.records;
        let detail = Detail {
            retry_after: draft.retry_after,
            ..Detail::default()
        };
        NewOperation {
            id,
            lane: lane.clone(),
            verb: verb.word(),
            queue: self.stock.queue.clone(),
            start,
            detail: records.seal_detail(id, &detail),
            request: records.seal_request(id, &draft.request),
        }
    }
}

/// What an operation that starts now is given.
struct Draft {
    request: Request,
    /// The request that is being answered.
    context: Option<Arc<RequestContext>>,
    /// What polls are told about when to come again, in seconds.
    retry_after: Option<u64>,
    /// What an operator's order leaves behind.
    note: Option<Note>,
}

/// What an operator's order writes beside its effects.
struct Note {
    /// The audit entry's name and sealed content.
    key: Key,
    body: Bytes,
    /// What polls of operations that it ends are told.
    ended: String,
}

/// What was asked, as it is kept with the operation.
fn draft(what: &impl Serialize, asker: &Asker) -> Draft {
    let request = Request {
        asked: asked(what),
        identity: asker.identity.clone(),
        request_identity: asker.request_identity.clone(),
        origin: asker
            .context
            .as_deref()
            .map(Origin::from)
            .unwrap_or_default(),
    };
    Draft {
        request,
        context: asker.context.clone(),
        retry_after: None,
        note: None,
    }
}

impl Draft {
    /// Logs the operations that a commit started.
    fn accepted(&self, lane: &Key, effects: &[Effect]) {
        let context = self.context.as_deref();
        operation_log::accepted(lane, effects, &self.request, context);
    }

    fn paced(mut self, policy: &Policy) -> Self {
        self.retry_after = policy.retry_after.map(|wait| wait.as_secs().max(1));
        self
    }
}

/// Too many others came first.
fn crowded() -> Problem {
    const SENTENCE: &str =
        "Many requests change this resource at once; wait a little, then repeat.";
    Problem::Refused(Refusal::Busy(SENTENCE))
}

/// The caller's part of a hook's refusal, with the sentence kept beside it.
fn refusal_of(as_: RefusedAs, detail: &Detail) -> Refusal {
    let sentence = detail.description.clone().unwrap_or_default();
    match as_ {
        RefusedAs::Invalid => Refusal::Invalid(sentence),
        RefusedAs::Unsupported => Refusal::Unsupported(sentence),
        RefusedAs::RequiresApp => Refusal::RequiresApp,
    }
}
