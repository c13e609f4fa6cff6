//! What a decision about an instance needs besides the event, and what it results in. Types only.

use crate::author::Author;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::{IntentEnd, IntentNumber, OperationId};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use crate::spec::Spec;
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::RetryAfter;
use sutler_osb::InstanceId;
use uuid::Uuid;

/// The moment, ids and choices of a decision.
pub struct Context<'a> {
    /// The moment.
    pub now: Timestamp,
    /// Ids for what is created.
    pub ids: NewIds,
    /// Choices.
    pub policy: &'a InstancePolicy,
    /// Whether a specification fits the schemas of its plan.
    pub fits: &'a dyn Fn(&Spec) -> bool,
}

/// Choices for a broker and its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePolicy {
    /// Time for all attempts of an intent.
    pub send_within: Duration,
    /// Changes are refused while another one is pending.
    pub exclusive: bool,
    /// A delete waits for an update in progress instead of going over it.
    pub delete_waits_for_update: bool,
    /// Failed creates are left on the ledger until a person deletes them.
    pub manual_cleanup: bool,
    /// Creates that the platform repeats by itself.
    pub auto_retries: u32,
    /// A create whose outcome is unknown may still take effect for so long.
    pub late_create_within: Duration,
    /// A new name is an update at the broker (P-091).
    pub context_updates: bool,
    /// The broker can be asked for an instance.
    pub retrievable: bool,
}

/// Ids for what a decision may create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIds {
    /// Of an operation.
    pub operation: OperationId,
    /// Of the instance here.
    pub uid: Uuid,
    /// Of the instance at the broker.
    pub osb_id: InstanceId,
}

/// The next state, what follows from it, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceDecision {
    /// Next state.
    pub next: Instance,
    /// To be carried out with or after its commit, in this order.
    pub effects: Vec<InstanceEffect>,
    /// Answer to the person.
    pub reply: InstanceReply,
}

/// When a new operation may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationStart {
    /// Now.
    Ready,
    /// When a later commit wakes it.
    Waiting,
}

/// What goes to the orphan ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceOrphan {
    /// The id that the broker may know.
    pub osb_id: InstanceId,
    /// Why.
    pub cause: OrphanCause,
    /// Who deletes it.
    pub mode: CleanupMode,
    /// When a create under the id was sent last, if it may still take effect.
    pub create_sent: Option<Timestamp>,
}

/// What follows from a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceEffect {
    /// An operation begins.
    Start(OperationId, OperationStart),
    /// A waiting operation may be claimed.
    Wake(OperationId),
    /// An operation goes back to waiting.
    Suspend(OperationId),
    /// An operation ends; its prepared request is removed.
    End(OperationId, IntentEnd),
    /// After the commit the prepared request is sent.
    Send,
    /// After the commit the broker is asked what it has.
    Look,
    /// The operation under a delete is polled in its place.
    Poll(IntentNumber),
    /// The operation is claimed again for a poll, after the pace or the broker's own wish.
    PollAfter(Option<RetryAfter>),
    /// The operation is claimed again after a wait that grows with its attempts.
    TryAgainAfter(Option<RetryAfter>),
    /// The operation is claimed again at once.
    TryAgainNow,
    /// What may exist under this id goes to the orphan ledger.
    RecordOrphan(InstanceOrphan),
    /// The name is taken.
    TakeName(String),
    /// The name is free.
    FreeName(String),
    /// Bindings that wait for the instance are woken.
    WakeBindings,
    /// Each binding gets an unbind whose author deletes the instance.
    Unbind(Author),
    /// All bindings are abandoned with their instance.
    AbandonBindings(Author),
    /// The broker is asked what the instance is, because an update is uncertain.
    Fetch,
}

/// Answer to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceReply {
    /// The intent is accepted.
    Accepted(IntentNumber),
    /// There is no difference: nothing is written.
    Unchanged,
    /// The same request began this intent earlier: nothing is written.
    AcceptedBefore(IntentNumber),
    /// The delete in progress.
    Joined(IntentNumber),
    /// It is done.
    Done,
    /// The broker has been asked to delete: it takes effect if the broker refuses.
    Noted,
    /// No person waits for an answer.
    Nothing,
}
