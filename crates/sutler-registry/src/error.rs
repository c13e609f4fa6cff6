//! Errors of listings and of items, classified by what may be concluded from them.
//!
//! Every sentence names the registry or the item and a remedy, and contains no credentials.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// Reason why there is no listing. Nothing may be concluded about the content of the registry: all specs stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ListError {
    /// No response, an incomplete one, a request to retry later, or a server error. A retry may succeed.
    #[error("{0}")]
    Unreachable(String),
    /// Access is denied. Credentials or rights must be changed.
    #[error("{0}")]
    Denied(String),
    /// The response cannot be parsed. The URL or the server is wrong.
    #[error("{0}")]
    Malformed(String),
    /// The registry has more items than the limit. The selection must be narrowed.
    #[error("{0}")]
    TooMuch(String),
}

impl ListError {
    /// Label for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Denied(_) => "denied",
            Self::Malformed(_) => "malformed",
            Self::TooMuch(_) => "too-much",
        }
    }
}

/// Reason why a listed item could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ItemError {
    /// The registry itself reports that the image or tag does not exist. It counts as not listed.
    #[error("{0}")]
    Gone(String),
    /// The image exists and has no label of a bundle.
    #[error("{sentence}")]
    NotABundle {
        /// Version that was read.
        digest: Digest,
        /// The missing label, and a remedy.
        sentence: String,
    },
    /// The content is invalid, and stays so until another version is pushed.
    #[error("{sentence}")]
    Malformed {
        /// Version that was read, if it is known.
        digest: Option<Digest>,
        /// Cause and remedy.
        sentence: String,
    },
    /// Access to this item is denied. Credentials or rights must be changed.
    #[error("{0}")]
    Denied(String),
    /// The item could not be read this time. A retry may succeed.
    #[error("{0}")]
    Transient(String),
}

impl ItemError {
    /// Label for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Gone(_) => "gone",
            Self::NotABundle { .. } => "not-a-bundle",
            Self::Malformed { .. } => "malformed",
            Self::Denied(_) => "denied",
            Self::Transient(_) => "transient",
        }
    }

    /// Version for which the error is permanent; `None` if a retry may succeed.
    #[must_use]
    pub fn verdict_on(&self) -> Option<&Digest> {
        match self {
            Self::NotABundle { digest, .. } => Some(digest),
            Self::Malformed { digest, .. } => digest.as_ref(),
            Self::Gone(_) | Self::Denied(_) | Self::Transient(_) => None,
        }
    }
}
