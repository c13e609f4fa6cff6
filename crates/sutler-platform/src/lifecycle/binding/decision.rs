//! What a decision about a binding needs besides the event, and what it results in. Types only.

use crate::author::Author;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::intent::{IntentEnd, IntentNumber, OperationId};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::RetryAfter;
use sutler_osb::BindingId;
use uuid::Uuid;

/// The moment, ids and choices of a decision.
pub struct Context<'a> {
    /// The moment.
    pub now: Timestamp,
    /// Ids for what is created.
    pub ids: NewIds,
    /// Choices.
    pub policy: &'a BindingPolicy,
}

/// Choices for a broker and its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingPolicy {
    /// Time for all attempts of an intent.
    pub send_within: Duration,
    /// Failed binds are left on the ledger until a person deletes them.
    pub manual_cleanup: bool,
    /// Binds that the platform repeats by itself.
    pub auto_retries: u32,
    /// A bind whose outcome is unknown may still take effect for so long.
    pub late_create_within: Duration,
    /// An application is named if the broker demands one (P-106).
    pub may_name_application: bool,
    /// How long replaced credentials work if the binding does not say it.
    pub overlap: Duration,
}

/// Ids for what a decision may create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIds {
    /// Of an operation.
    pub operation: OperationId,
    /// Of the binding here.
    pub uid: Uuid,
    /// Of a generation at the broker.
    pub osb_id: BindingId,
}

/// The next state, what follows from it, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingDecision {
    /// Next state.
    pub next: Binding,
    /// To be carried out with or after its commit, in this order.
    pub effects: Vec<BindingEffect>,
    /// Answer to the person.
    pub reply: BindingReply,
}

/// When a new operation may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationStart {
    /// Now.
    Ready,
    /// When a later commit wakes it.
    Waiting,
    /// When a later commit wakes it, and without that after a wait that grows: the instance is not live yet.
    Later,
}

/// What follows from a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingEffect {
    /// An operation begins.
    Start(OperationId, OperationStart),
    /// A waiting operation may be claimed.
    Wake(OperationId),
    /// An operation goes back to waiting.
    Suspend(OperationId),
    /// An operation ends; its prepared request is removed.
    End(OperationId, IntentEnd),
    /// The prepared request of an operation is removed: its next one is another one.
    DiscardRequest(OperationId),
    /// After the commit the prepared request is sent.
    Send,
    /// After the commit the binding is fetched; if that is not possible, its operation is polled.
    Look,
    /// The operation of the intent is polled. Under a delete: in the place of the delete.
    Poll(IntentNumber),
    /// The operation is claimed again for a poll, after the pace or the broker's own wish.
    PollAfter(Option<RetryAfter>),
    /// The operation is claimed again after a wait that grows with its attempts.
    TryAgainAfter(Option<RetryAfter>),
    /// The operation is claimed again at once.
    TryAgainNow,
    /// What may exist goes to the orphan ledger.
    RecordOrphan(Box<BindingOrphan>),
    /// The name is taken.
    TakeName(String),
    /// The name is free.
    FreeName(String),
}

/// A generation for the orphan ledger. It is notified of the end if the binding waits for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingOrphan {
    /// What may exist.
    pub osb_id: BindingId,
    /// Why.
    pub cause: OrphanCause,
    /// The person who abandoned it, if a person did.
    pub by: Option<Author>,
    /// Who deletes it.
    pub cleanup: CleanupMode,
    /// Until when a bind of it may still arrive; `None` if none may.
    pub guarded_until: Option<Timestamp>,
}

/// Answer to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingReply {
    /// The intent is accepted.
    Accepted(IntentNumber),
    /// The same request began this intent earlier: nothing is written.
    AcceptedBefore(IntentNumber),
    /// The delete or the rotation in progress.
    Joined(IntentNumber),
    /// It is done.
    Done,
    /// The broker has been asked to unbind: it takes effect if the broker refuses.
    Noted,
    /// No person waits for an answer.
    Nothing,
}
