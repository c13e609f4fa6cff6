//! Why a registry or one of its items could not be read, told apart by what may be concluded from it.
//!
//! Every sentence names the registry or the item, says what to do next, and holds no credentials.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// Why there is no listing. Nothing may be concluded about what the registry has: everything stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ListError {
    /// It did not answer, broke off, asked for patience or failed itself. It may be fine next time.
    #[error("{0}")]
    Unreachable(String),
    /// It does not let us in. Somebody must change credentials or rights.
    #[error("{0}")]
    Denied(String),
    /// What it answered cannot be understood. Somebody must look at the address or at the server.
    #[error("{0}")]
    Malformed(String),
    /// It has more than we take. Somebody must choose.
    #[error("{0}")]
    TooMuch(String),
}

impl ListError {
    /// One word, for metrics.
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

/// Why an item that was listed could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ItemError {
    /// The registry itself says that there is no such image or tag. It counts as not listed.
    #[error("{0}")]
    Gone(String),
    /// There is such an image, and it is none of ours: it does not say that it is a bundle.
    #[error("{sentence}")]
    NotABundle {
        /// The version that was looked at.
        digest: Digest,
        /// What was missing.
        sentence: String,
    },
    /// What is there cannot be understood. It stays so until somebody pushes another version.
    #[error("{sentence}")]
    Malformed {
        /// The version that was looked at, if it is known.
        digest: Option<Digest>,
        /// What is wrong with it.
        sentence: String,
    },
    /// We may not read this one. Somebody must change credentials or rights.
    #[error("{0}")]
    Denied(String),
    /// It could not be read this time. It may be fine next time.
    #[error("{0}")]
    Transient(String),
}

impl ItemError {
    /// One word, for metrics.
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

    /// The version that this is true of for ever; there is none where another look may end better.
    #[must_use]
    pub fn verdict_on(&self) -> Option<&Digest> {
        match self {
            Self::NotABundle { digest, .. } => Some(digest),
            Self::Malformed { digest, .. } => digest.as_ref(),
            Self::Gone(_) | Self::Denied(_) | Self::Transient(_) => None,
        }
    }
}
