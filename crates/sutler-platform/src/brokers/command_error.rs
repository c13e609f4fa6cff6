//! Why a command about a broker is not carried out, by what the caller can do.

use super::broker_view::BrokerViewError;
use crate::lifecycle::breaker::BreakerEventError;
use sutler_journal::{CommitError, CommitSizeError, StoreError};
use sutler_records::RecordError;

/// Why a command about a broker is not carried out. Nothing was written, except that after `Unavailable` it may have been.
#[derive(Debug, thiserror::Error)]
pub enum BrokerCommandError {
    /// There is no such broker.
    #[error("there is no such broker")]
    NoBroker,
    /// There is no such namespace.
    #[error("there is no such namespace")]
    NoNamespace,
    /// The namespace is being deleted.
    #[error("the namespace is being deleted")]
    NamespaceIsDeleting,
    /// Another broker of the scope has the name.
    #[error("a broker of this name is registered already; choose another name, or change that one")]
    NameTaken,
    /// The namespace has as many brokers as it may have.
    #[error(
        "the namespace has {0} brokers already, which is the most; deregister one, or ask an operator to register it for all namespaces"
    )]
    TooManyBrokers(usize),
    /// The registration was changed since the caller read it.
    #[error("the registration has revision {0} now; read it again")]
    OtherRevision(u64),
    /// The broker is being deregistered.
    #[error("the broker is being deregistered")]
    Deregistering,
    /// The broker has instances.
    #[error("the broker has {0}; delete or abandon them first")]
    HasInstances(RemainingInstances),
    /// Rows of the orphan ledger are about the broker, and are neither deleted nor forgotten.
    #[error(
        "{0} of the orphan ledger are about the broker and not settled; wait until they are deleted, or forget them"
    )]
    HasOrphans(RemainingOrphans),
    /// A value cannot be used.
    #[error("{sentence}")]
    Invalid {
        /// JSON pointer to the value.
        pointer: &'static str,
        /// What is wrong, and what to write.
        sentence: String,
    },
    /// The breaker refuses.
    #[error(transparent)]
    Breaker(#[from] BreakerEventError),
    /// The registration is too large for any store.
    #[error("the registration is too large; shorten its rules or certificates")]
    TooLarge(#[source] CommitSizeError),
    /// Other writers were first again and again.
    #[error("too many changes at once; try again")]
    Contended,
    /// A newer version of the platform wrote it.
    #[error("a newer version of the platform wrote this; use that version")]
    NewerForm,
    /// The store does not answer, or a document cannot be opened.
    #[error("the documents of the platform are not available")]
    Unavailable(#[source] RecordError),
}

/// Instances that a broker still has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemainingInstances {
    /// How many were counted.
    pub count: usize,
    /// Whether these are all.
    pub is_complete: bool,
    /// The first of them, as `namespace/name`.
    pub first: Vec<String>,
}

impl std::fmt::Display for RemainingInstances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, more) = (self.count, if self.is_complete { "" } else { " or more" });
        let first = self.first.join(", ");
        let noun = if count == 1 { "instance" } else { "instances" };
        write!(f, "{count}{more} {noun}: {first}")?;
        let is_whole_list = self.is_complete && self.first.len() == count;
        f.write_str(if is_whole_list { "" } else { ", …" })
    }
}

/// Rows of the orphan ledger that a broker still has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemainingOrphans {
    /// How many were counted.
    pub count: usize,
    /// Whether these are all.
    pub is_complete: bool,
}

impl std::fmt::Display for RemainingOrphans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if self.is_complete { "" } else { " or more" };
        let noun = if self.count == 1 { "row" } else { "rows" };
        write!(f, "{}{more} {noun}", self.count)
    }
}

impl From<RecordError> for BrokerCommandError {
    fn from(error: RecordError) -> Self {
        Self::Unavailable(error)
    }
}

impl From<StoreError> for BrokerCommandError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(RecordError::Store(error))
    }
}

impl From<BrokerViewError> for BrokerCommandError {
    fn from(error: BrokerViewError) -> Self {
        match error {
            BrokerViewError::NotRegistered(_) => Self::NoBroker,
            BrokerViewError::NewerForm(_) => Self::NewerForm,
            BrokerViewError::Record(error) => Self::Unavailable(error),
        }
    }
}

/// Whether a commit was written. `false`: another writer was first.
pub(super) fn is_written(result: Result<(), CommitError>) -> Result<bool, StoreError> {
    match result {
        Ok(()) => Ok(true),
        Err(CommitError::Stale(_)) => Ok(false),
        Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error),
    }
}
