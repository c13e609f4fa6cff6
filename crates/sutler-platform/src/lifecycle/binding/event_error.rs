//! Why a request about a binding changes nothing. The sentences are for users.

use crate::lifecycle::intent::IntentNumber;
use crate::preflight::Violation;

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BindingEventError {
    /// There is no such binding.
    #[error("there is no such binding")]
    NotFound,
    /// There is one already.
    #[error("a binding of this name exists")]
    AlreadyExists,
    /// It was deleted or abandoned.
    #[error("the binding is deleted")]
    Gone,
    /// It cannot be done, as is known before anything is sent.
    #[error("the bind breaks {} rules of the plan", .0.len())]
    Violations(Vec<Violation>),
    /// The instance is no more.
    #[error("there is no such instance")]
    NoInstance,
    /// The instance is being deleted.
    #[error("the instance is being deleted; undelete it first")]
    InstanceDeleting,
    /// The broker said that the instance cannot be used.
    #[error(
        "the instance cannot be used, so it takes no new bindings; see why its last change failed"
    )]
    InstanceUnusable,
    /// A delete is in progress.
    #[error("the binding is being deleted; undelete it first")]
    Deleting,
    /// Nothing can be replaced.
    #[error("the binding has no credentials yet that could be replaced")]
    NotBound,
    /// There is no room for another generation.
    #[error(
        "{GENERATIONS} generations of the credentials exist already; wait until replaced ones are unbound, or shorten \
         the overlap",
        GENERATIONS = super::GENERATIONS_MAX
    )]
    TooManyGenerations,
    /// There is no such intent, or it cannot be used for that.
    #[error("{0} {1}")]
    WrongIntent(IntentNumber, &'static str),
    /// Another request was accepted under its key.
    #[error("another request was sent with this idempotency key; choose a new one")]
    KeyReused,
    /// Nothing is being deleted.
    #[error("the binding is not being deleted")]
    NotDeleting,
    /// The expiry chore has nothing to do.
    #[error("nothing is due")]
    NotDue,
    /// The event does not belong to the present state: another process was first.
    #[error("the event does not belong to the present state")]
    OutOfDate,
}
