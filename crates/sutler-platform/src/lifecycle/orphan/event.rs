//! What can happen to an orphan, and what follows from it. Types only; `decide.rs` chooses.

use crate::author::Author;
use crate::lifecycle::orphan::{
    ForgetReason, OperatorReason, Orphan, OrphanCause, OrphanKey, WaitingResource,
};
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::{Meaning, RetryAfter};
use sutler_osb::{DeleteResponse, PlanId, ServiceId};

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum OrphanEvent {
    /// A resource that may exist without an owner is found.
    Found(Box<NewOrphan>),
    /// Its operation is claimed.
    Turn,
    /// Its operation is claimed after the end of another worker.
    TakenOver,
    /// The answer to its DELETE, or to a poll of it.
    Answer(Box<Meaning<DeleteResponse>>),
    /// Its broker is deregistered: nothing can be sent there any more (T-92).
    BrokerGone,
    /// A person asks for another round, now.
    Retry,
    /// A person decides that it does not matter. The permission and the audit are the caller's.
    Forget {
        /// The person.
        by: Author,
        /// Why.
        reason: ForgetReason,
    },
}

/// What is known of a new orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrphan {
    /// What may exist.
    pub key: OrphanKey,
    /// Offering that a DELETE names.
    pub service_id: ServiceId,
    /// Plan that a DELETE names.
    pub plan_id: PlanId,
    /// Why.
    pub cause: OrphanCause,
    /// The person who abandoned it, if a person did.
    pub by: Option<Author>,
    /// What waits for its end, if anything.
    pub waiting: Option<WaitingResource>,
    /// Until when a create of this id may still arrive, see [`late_create_guard`](super::late_create_guard); `None` if no
    /// create is in doubt.
    pub guarded_until: Option<Timestamp>,
    /// Who deletes it.
    pub cleanup: CleanupMode,
}

/// Who deletes an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupMode {
    /// The platform.
    Automatic,
    /// A person: `orphanMitigation: manual` of the broker, or the instance was adopted.
    Manual,
}

/// What follows from a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrphanEffect {
    /// An operation begins in its lane, to be claimed after this time.
    Start(Duration),
    /// After the commit the DELETE is sent, without an originating identity.
    Send,
    /// The accepted DELETE is polled, without an originating identity.
    Poll,
    /// The operation is claimed again for a poll, at the pace of polls; with the wish of the broker.
    PollAfter(Option<RetryAfter>),
    /// The operation is claimed again after this time.
    AgainAfter(Duration),
    /// The operation ends; another one may begin later.
    End,
    /// What waits for the orphan is notified, in the same commit or after it.
    NotifyInstance(WaitingResource, OrphanResult),
    /// An operator is called.
    Alert(OperatorReason),
}

/// End of an orphan, for the resource that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanResult {
    /// Nothing is left at the broker: a create may be repeated (T-71).
    Deleted,
    /// A person has to look at it, or has decided to forget it. `Deleted` may still follow.
    LeftToOperator,
}

/// The next state, what follows from it, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OrphanDecision {
    /// Document to store.
    pub next: Orphan,
    /// To be carried out with or after its commit, in this order.
    pub effects: Vec<OrphanEffect>,
    /// Answer to the caller.
    pub reply: OrphanReply,
}

/// Answer to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanReply {
    /// It is on the ledger now.
    Noted,
    /// It is on the ledger, or under way, already.
    Joined,
    /// The command takes effect.
    Accepted,
    /// Nothing is different.
    Unchanged,
    /// No caller waits.
    Nothing,
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrphanEventError {
    /// There is no such row.
    #[error("there is no such orphan")]
    NotFound,
    /// A DELETE is being sent.
    #[error("a request about the orphan is being sent; repeat this in a minute")]
    Sending,
    /// The broker said that nothing is there.
    #[error("the orphan is deleted")]
    Done,
    /// The event does not belong to the present state: another worker was first, or an answer is late.
    #[error("the event does not belong to the present state")]
    OutOfDate,
}
