//! Why a run stops without an answer: its operation is given back as it is, and claimed again later.

use super::{AFTER_FAULT, NEWER_VERSION};
use crate::brokers::BrokerViewError;
use std::time::Duration;
use sutler_client::wire::StoredRequestError;
use sutler_journal::{Lost, StoreError};
use sutler_records::RecordError;

/// Why a run stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Its claim is lost: nothing may be written.
    #[error("the claim was lost")]
    Lost(#[from] Lost),
    /// A record cannot be read.
    #[error("a record cannot be read")]
    Record(#[from] RecordError),
    /// The broker cannot be read.
    #[error("the broker of the operation cannot be used")]
    Broker(#[from] BrokerViewError),
    /// The request that was written down cannot be read.
    #[error("the request that was written down cannot be read")]
    Request(#[from] StoredRequestError),
    /// A newer version of the platform wrote the document.
    #[error("a newer version of the platform wrote the document")]
    NewerVersion,
    /// The instance of a binding is not stored any more.
    #[error("the instance of the binding is not stored any more")]
    NoInstance,
    /// Too many others write to the same document.
    #[error("other writers were first too often")]
    Contended,
    /// The rules refuse what happened.
    #[error("the rules refuse what happened")]
    Refused,
    /// What follows from a decision is too large to be written.
    #[error("a commit is too large")]
    TooLarge(#[source] sutler_journal::CommitSizeError),
    /// The lane of the operation is of a kind that this version does not know.
    #[error("this version does not know such operations")]
    UnknownKind,
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}

impl RunError {
    /// Whether the same may succeed a moment later in the same claim.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Record(RecordError::Store(_)) | Self::Contended => true,
            // A record that cannot be opened stays so.
            Self::Record(_)
            | Self::Refused
            | Self::Lost(_)
            | Self::Broker(_)
            | Self::Request(_)
            | Self::NewerVersion
            | Self::NoInstance
            | Self::TooLarge(_)
            | Self::UnknownKind => false,
        }
    }

    /// How long the operation waits before it is tried again.
    pub(crate) fn wait(&self) -> Duration {
        match self {
            Self::Lost(_) | Self::Record(_) | Self::Broker(_) | Self::Contended | Self::Refused => {
                AFTER_FAULT
            }
            Self::Request(_)
            | Self::NewerVersion
            | Self::NoInstance
            | Self::TooLarge(_)
            | Self::UnknownKind => NEWER_VERSION,
        }
    }
}
