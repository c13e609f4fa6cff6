//! Why a command changes nothing. The sentences are for users; causes of failures are for operators.

use crate::binding_changes::BindingChangeError;
use crate::broker_request::AuthorIdentityError;
use crate::brokers::BrokerViewError;
use crate::lifecycle::binding::BindingEventError;
use crate::lifecycle::instance::InstanceEventError;
use crate::lifecycle::orphan::OrphanEventError;
use crate::orphan_events::OrphanChangeError;
use sutler_journal::{CommitSizeError, StoreError};
use sutler_records::RecordError;

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The rules of instances refuse it.
    #[error(transparent)]
    Instance(#[from] InstanceEventError),
    /// The rules of bindings refuse it.
    #[error(transparent)]
    Binding(#[from] BindingEventError),
    /// The rules of the orphan ledger refuse it.
    #[error(transparent)]
    Orphan(#[from] OrphanEventError),
    /// There is no such namespace.
    #[error("there is no namespace {0}; create it first")]
    NoNamespace(String),
    /// The namespace is being deleted.
    #[error("the namespace {0} is being deleted, so nothing is created in it")]
    NamespaceIsDeleting(String),
    /// The namespace is not empty.
    #[error("the namespace {0} has instances, secrets or brokers still; delete them first")]
    NamespaceInUse(String),
    /// The broker is being removed.
    #[error("the broker {0} is being deregistered, so nothing is created at it")]
    BrokerIsLeaving(String),
    /// There is no such secret.
    #[error("there is no secret {0}")]
    NoSecret(String),
    /// Instances or bindings use the secret.
    #[error("the secret {0} is used by instances or bindings; change or delete them first")]
    SecretInUse(String),
    /// Another resource has the name.
    #[error("the name {0} is taken; choose another one")]
    NameTaken(String),
    /// The broker knows something else by the id.
    #[error(
        "the external id is not free at the broker: a resource has it, or a row of the orphan ledger that is not deleted, be it a forgotten one; choose another one, or leave it out. An operator frees that of a row by its `:retry`, once the broker has nothing under it"
    )]
    BrokerIdTaken,
    /// Nothing can be sent for the orphan.
    #[error(
        "the broker of the orphan is deregistered, so nothing can be deleted there: see to it at the broker, then forget the orphan"
    )]
    OrphanWithoutBroker,
    /// A part of the request cannot be used.
    #[error("{sentence}")]
    Invalid {
        /// The part, as a JSON pointer.
        pointer: &'static str,
        /// What is wrong and what to do.
        sentence: String,
    },
    /// The person cannot be named to brokers.
    #[error(transparent)]
    Author(#[from] AuthorIdentityError),
    /// It does not fit into one record.
    #[error("the request is too large to be stored with what is pending; make it smaller")]
    TooLarge(#[source] CommitSizeError),
    /// Other writers were first too often.
    #[error("other changes were first again and again; repeat the request")]
    Contended,
    /// A newer version of the platform wrote a document.
    #[error("another replica runs a newer version and wrote this; ask it, or repeat the request")]
    NewerVersion,
    /// The broker cannot be read.
    #[error("the broker of the instance cannot be read now; repeat the request")]
    Broker(#[from] BrokerViewError),
    /// A record cannot be read or written.
    #[error("the platform cannot read or write its records now; repeat the request")]
    Unavailable(#[from] RecordError),
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<OrphanChangeError> for CommandError {
    fn from(error: OrphanChangeError) -> Self {
        match error {
            OrphanChangeError::Refused(error) => Self::Orphan(error),
            OrphanChangeError::Record(error) => Self::Unavailable(error),
            OrphanChangeError::NewerVersion => Self::NewerVersion,
            OrphanChangeError::TooLarge(why) => Self::TooLarge(why),
            OrphanChangeError::Contended => Self::Contended,
        }
    }
}

impl From<BindingChangeError> for CommandError {
    fn from(error: BindingChangeError) -> Self {
        match error {
            BindingChangeError::Refused(error) => Self::Binding(error),
            BindingChangeError::Record(error) => Self::Unavailable(error),
            BindingChangeError::Broker(error) => Self::Broker(error),
            BindingChangeError::TooLarge(why) => Self::TooLarge(why),
            BindingChangeError::NewerVersion => Self::NewerVersion,
            BindingChangeError::Contended => Self::Contended,
        }
    }
}
