//! How far the deletion of an orphan has come. Types only; `decide.rs` chooses.

use crate::author::Author;
use crate::lifecycle::orphan::OrphanResult;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Longest reason of a person, in characters.
pub const FORGET_REASON_CHARS_MAX: usize = 1_000;

/// How far the deletion has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrphanState {
    /// The next DELETE is planned, and the outcome of every earlier one is known.
    Due {
        /// Not before then.
        at: Timestamp,
    },
    /// A DELETE was written down, and its outcome is open.
    InFlight {
        /// When it was written down.
        sent: Timestamp,
        /// What is known of it.
        stage: DeleteStage,
    },
    /// The platform has given up until a person asks for more.
    NeedsOperator {
        /// Since when.
        since: Timestamp,
        /// Why.
        reason: OperatorReason,
    },
    /// It waits for a person from the beginning.
    Deferred,
    /// The broker says that nothing is there.
    Done {
        /// Since when it is known.
        at: Timestamp,
    },
    /// A person decided that it does not matter.
    Forgotten {
        /// When.
        at: Timestamp,
        /// The person.
        by: Author,
        /// Why.
        reason: ForgetReason,
    },
}

impl OrphanState {
    /// How it was settled, for what waits for it; `None`: it is not.
    pub fn result(&self) -> Option<OrphanResult> {
        match self {
            Self::Done { .. } => Some(OrphanResult::Deleted),
            Self::NeedsOperator { .. } | Self::Forgotten { .. } => {
                Some(OrphanResult::LeftToOperator)
            }
            Self::Due { .. } | Self::InFlight { .. } | Self::Deferred => None,
        }
    }

    /// Whether it can be settled only as long as its broker is registered.
    pub fn needs_broker(&self) -> bool {
        match self {
            Self::Due { .. } | Self::InFlight { .. } | Self::Deferred => true,
            Self::NeedsOperator { reason, .. } => *reason != OperatorReason::BrokerGone,
            Self::Done { .. } | Self::Forgotten { .. } => false,
        }
    }

    /// Whether nothing is to be done any more: the broker has nothing, or a person forgot it.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Forgotten { .. } => true,
            Self::Due { .. }
            | Self::InFlight { .. }
            | Self::NeedsOperator { .. }
            | Self::Deferred => false,
        }
    }
}

/// What is known of a DELETE without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeleteStage {
    /// It is being sent.
    Sending,
    /// It may have been sent, and there is no answer: it is sent again.
    Unknown {
        /// Not before then.
        again: Timestamp,
    },
    /// The broker accepted it and works on it.
    Polling {
        /// Since when.
        since: Timestamp,
    },
}

/// Why a person must look at an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorReason {
    /// All tries of a round failed.
    TriesUsedUp,
    /// The broker said "later" for about a week.
    AlwaysBusy,
    /// The broker is deregistered.
    BrokerGone,
}

/// Why a person forgets an orphan: some words, not too many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ForgetReason(String);

/// A text that is not a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgetReasonError {
    /// There are no words.
    #[error("a reason must be given")]
    Empty,
    /// There are too many.
    #[error("a reason must not be longer than {FORGET_REASON_CHARS_MAX} characters")]
    TooLong,
}

impl ForgetReason {
    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ForgetReason {
    type Error = ForgetReasonError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.trim().is_empty() {
            Err(ForgetReasonError::Empty)
        } else if text.chars().nth(FORGET_REASON_CHARS_MAX).is_some() {
            Err(ForgetReasonError::TooLong)
        } else {
            Ok(Self(text))
        }
    }
}

impl From<ForgetReason> for String {
    fn from(reason: ForgetReason) -> Self {
        reason.0
    }
}
