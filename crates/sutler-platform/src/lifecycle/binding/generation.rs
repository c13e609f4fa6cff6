//! A generation of a binding: one binding at the broker, with its credentials while it has any. Types only.
//!
//! Which generations a binding has, and which one is next, is in `generations.rs`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use sutler_osb::{BindResponse, BindingId};

/// Longest answer to a bind that is kept, in bytes of JSON: those of four generations fit into one document.
pub const ANSWER_BYTES_MAX: usize = 128 * 1024;

/// A binding at the broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The id by which the broker knows it; never used for another one (P-007).
    pub osb_id: BindingId,
    /// When a bind of it was sent last, if it may still take effect.
    pub bind_sent: Option<Timestamp>,
    /// How far it has come.
    pub state: GenerationState,
}

/// How far a generation has come. Whether it is being unbound is seen at the pending intents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GenerationState {
    /// The broker has not confirmed it: its bind is pending or failed.
    Binding(BindExposure),
    /// Its credentials are delivered.
    Current(BoundDetails),
    /// Another one replaced it. Its credentials work until it is unbound.
    Retiring(Retirement, BoundDetails),
}

/// What the broker may have of a generation that it has not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindExposure {
    /// Nothing.
    Nothing,
    /// A bind was sent, and no answer proves that nothing was made.
    MayExist,
}

/// What the broker confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundDetails {
    /// Credentials, and everything else of the answer.
    pub credentials: CredentialsAnswer,
    /// When the broker confirmed it.
    pub bound_at: Timestamp,
    /// When the credentials stop working, if the broker says so.
    pub expires_at: Option<Timestamp>,
    /// When it should be rotated at the latest, if the broker says so.
    pub renew_before: Option<Timestamp>,
}

/// When a replaced generation is unbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// Not before then: the end of the overlap, or later after a failed unbind.
    pub until: Timestamp,
    /// Unbinds that failed.
    pub failures: u32,
}

/// What a broker returned for a bind: the credentials, and everything else of the answer. It is sealed with the document
/// that it is part of, and by nothing else. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CredentialsAnswer(Box<BindResponse>);

// Every JSON value is equal to itself.
impl Eq for CredentialsAnswer {}

/// An answer to a bind that is too long to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer to a bind must not be longer than {ANSWER_BYTES_MAX} bytes")]
pub struct AnswerTooLongError;

impl CredentialsAnswer {
    /// What the broker returned.
    pub fn as_response(&self) -> &BindResponse {
        &self.0
    }
}

impl TryFrom<BindResponse> for CredentialsAnswer {
    type Error = AnswerTooLongError;

    fn try_from(answer: BindResponse) -> Result<Self, AnswerTooLongError> {
        let bytes = serde_json::to_vec(&answer).map_or(usize::MAX, |json| json.len());
        match bytes <= ANSWER_BYTES_MAX {
            true => Ok(Self(Box::new(answer))),
            false => Err(AnswerTooLongError),
        }
    }
}

impl fmt::Debug for CredentialsAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsAnswer(…)")
    }
}

impl Generation {
    /// A generation whose bind has not been sent.
    pub(super) fn unsent(osb_id: BindingId) -> Self {
        Self {
            osb_id,
            bind_sent: None,
            state: GenerationState::Binding(BindExposure::Nothing),
        }
    }

    /// Whether the broker may have it.
    pub fn may_exist(&self) -> bool {
        match self.state {
            GenerationState::Binding(BindExposure::Nothing) => false,
            GenerationState::Binding(BindExposure::MayExist)
            | GenerationState::Current(_)
            | GenerationState::Retiring(..) => true,
        }
    }

    /// What the broker confirmed, if it did.
    pub fn bound(&self) -> Option<&BoundDetails> {
        match &self.state {
            GenerationState::Current(details) | GenerationState::Retiring(_, details) => {
                Some(details)
            }
            GenerationState::Binding(_) => None,
        }
    }

    /// When it is unbound, if it is retiring.
    pub fn retirement(&self) -> Option<&Retirement> {
        match &self.state {
            GenerationState::Retiring(retirement, _) => Some(retirement),
            GenerationState::Binding(_) | GenerationState::Current(_) => None,
        }
    }
}
