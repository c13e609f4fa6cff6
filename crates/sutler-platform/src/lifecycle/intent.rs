//! An intent: one accepted change of one resource, and how far it has come. Used by instances and bindings.
//!
//! The rules that move an intent are in `instance.rs` and `binding.rs`.

use crate::author::Author;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use sutler_client::{BrokerMessage, NextQuestion};
use sutler_osb::ErrorCode;
use uuid::Uuid;

/// Number of an intent within its resource: 1, 2, 3 … in the order of acceptance.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct IntentNumber(pub u64);

impl IntentNumber {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for IntentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Id of the journal's operation that carries an intent out. The journal's own type wraps the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(pub Uuid);

/// What a broker said at the end of an exchange, as it is kept and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerStatement {
    /// Status of the answer; `None` if there was no answer, or if a poll reported it.
    pub status: Option<u16>,
    /// Error code for programs.
    pub error: Option<String>,
    /// Description for users; bounded.
    pub description: Option<String>,
}

impl From<&BrokerMessage> for BrokerStatement {
    fn from(message: &BrokerMessage) -> Self {
        Self {
            status: message.status,
            error: message.error.as_ref().map(ErrorCode::to_string),
            description: message.description.clone(),
        }
    }
}

/// Why an intent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldReason {
    /// It stands on an intent that was dropped.
    DependsOn {
        /// The dropped intent.
        dropped: IntentNumber,
        /// What they share.
        because: DependencyReason,
    },
    /// An intent before it failed and asked that everything behind it waits.
    HaltedBy(IntentNumber),
    /// A secret or a key that its parameters name does not exist or is not readable; the sentence names it.
    UnresolvedParameters(String),
    /// The parameters do not fit the schema of the plan; the sentences of the check.
    InvalidParameters(Vec<String>),
    /// It was taken over too often without an answer.
    Interrupted,
}

/// Why an intent depends on another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DependencyReason {
    /// Both change the same path (a JSON pointer).
    SamePath(String),
    /// The other changed the plan, and the author of this one saw that when changing parameters.
    PlanChange,
    /// Without the other the parameters do not fit the schema of the plan.
    SchemaMismatch,
    /// The other was to create the instance.
    Creation,
}

/// How far a pending intent has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentState {
    /// It waits for its turn; after a failed attempt with the words of the broker.
    Queued {
        /// Result of the last attempt, if there was one.
        last: Option<BrokerStatement>,
    },
    /// It waits for a person.
    OnHold(HoldReason),
    /// It waits for the end of a delete.
    Suspended,
    /// A request is written down and sent.
    Sending {
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// A request was sent, and its outcome is unknown.
    Unknown {
        /// How to find out.
        question: UnknownQuestion,
    },
    /// The broker works on it.
    Polling {
        /// Since when.
        since: Timestamp,
    },
}

/// How to find out the outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnknownQuestion {
    /// Send the same bytes again.
    SendAgain,
    /// Poll or fetch first: something is there.
    LookFirst,
}

impl From<NextQuestion> for UnknownQuestion {
    fn from(question: NextQuestion) -> Self {
        match question {
            NextQuestion::SendAgain => Self::SendAgain,
            NextQuestion::LookFirst => Self::LookFirst,
        }
    }
}

/// What caused an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentCause {
    /// A user asked for it.
    User,
    /// A user repeats an ended intent.
    Retry(IntentNumber),
    /// A user lets a held intent go on, in a new place.
    Resume(IntentNumber),
    /// A user goes back to what was confirmed at an intent.
    Rollback(IntentNumber),
    /// The platform repeats a create whose leftovers are deleted.
    AutoRetry(IntentNumber),
    /// A secret that the parameters name has changed.
    SecretChange,
    /// The instance of a binding is deleted.
    Cascade,
}

/// What happens to the intents behind one that is rejected or fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// They go on, unless they depend on it.
    #[default]
    Skip,
    /// They all wait for a person.
    Halt,
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntentEnd {
    /// The broker did it, or there was nothing to do.
    Succeeded,
    /// The broker refused it, and nothing has changed.
    Rejected(BrokerStatement),
    /// It failed, or nothing is known of it.
    Failed(BrokerStatement),
    /// Another intent contains it.
    Superseded(IntentNumber),
    /// A person or a delete ended it before it had an effect.
    Cancelled(CancelledBy),
}

/// What cancelled an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelledBy {
    /// A person.
    Person(Author),
    /// A delete of the resource.
    Delete(IntentNumber),
    /// The resource was abandoned.
    Abandon(Author),
}

/// Who gave a resource up, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandonment {
    /// The person.
    pub by: Author,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl From<Author> for Abandonment {
    fn from(by: Author) -> Self {
        Self { by, reason: None }
    }
}
