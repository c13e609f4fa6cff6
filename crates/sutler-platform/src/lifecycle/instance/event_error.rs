//! Why a request about an instance changes nothing. The sentences are for users.

use crate::lifecycle::intent::IntentNumber;
use crate::preflight::Violation;

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InstanceEventError {
    /// There is no such instance.
    #[error("there is no such instance")]
    NotFound,
    /// There is one already.
    #[error("an instance of this name exists")]
    AlreadyExists,
    /// It was deleted or abandoned.
    #[error("the instance is deleted")]
    Gone,
    /// It cannot be done, as is known before anything is sent.
    #[error("the change breaks {} rules of the plan", .0.len())]
    Violations(Vec<Violation>),
    /// Too many intents wait.
    #[error(
        "{PENDING} changes of this instance wait already; cancel some of them or wait for them",
        PENDING = super::PENDING_MAX
    )]
    TooManyPending,
    /// It would have too many names or secrets at a time.
    #[error(
        "an instance has at most {NAMES} names and {SECRETS} secrets with its pending changes; wait for some of them, or \
         name fewer",
        NAMES = super::NAMES_MAX,
        SECRETS = super::SECRETS_MAX
    )]
    TooManyUses,
    /// The broker has rejected the same change.
    #[error("the broker rejected the same change ({0}); force it to send it again")]
    RejectedBefore(IntentNumber),
    /// Another request was accepted under its key.
    #[error("another request was sent with this idempotency key; choose a new one")]
    KeyReused,
    /// Another revision is shown.
    #[error("revision {shown} is shown by now; read it and decide again")]
    RevisionChanged {
        /// The revision that is shown.
        shown: u64,
    },
    /// A delete is in progress.
    #[error("the instance is being deleted; undelete it first")]
    Deleting,
    /// The platform takes one change at a time.
    #[error("another change of this instance is pending; wait for it or cancel it")]
    Busy,
    /// It is protected.
    #[error("the instance is protected from deletion; remove the protection first")]
    Protected,
    /// It has bindings.
    #[error("bindings of the instance exist; delete them first, or delete with cascade")]
    HasBindings(Vec<String>),
    /// There is no such intent, or it cannot be used for that.
    #[error("{0} {1}")]
    WrongIntent(IntentNumber, &'static str),
    /// What was confirmed then is not kept any more.
    #[error("what {0} confirmed is not kept any more")]
    NotKept(IntentNumber),
    /// Nothing is being deleted.
    #[error("the instance is not being deleted")]
    NotDeleting,
    /// The instance is in a state in which that has no meaning, e.g. no create succeeded.
    #[error("the instance is not live")]
    NotLive,
    /// The event does not belong to the present state: another process was first.
    #[error("the event does not belong to the present state")]
    OutOfDate,
}
