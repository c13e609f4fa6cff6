//! What can happen to an instance: commands of people, turns of its operations, answers of its broker. Types only.
//!
//! What follows is in `decision.rs` and `event_error.rs`; the rules begin in `decide.rs`.

use crate::author::Author;
use crate::lifecycle::instance::Source;
use crate::lifecycle::intent::{Abandonment, IntentCause, IntentNumber, OnFailure};
use crate::lifecycle::orphan::OrphanResult;
use crate::lifecycle::request_key::RequestKey;
use crate::preflight::Violation;
use crate::spec::{Spec, SpecPatch};
use serde::{Deserialize, Serialize};
use sutler_client::Meaning;
use sutler_osb::{InstanceId, InstanceMetadata, ServiceId};
use uuid::Uuid;

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A person, or the platform in the name of a person, asks for something.
    Command(Box<InstanceCommand>),
    /// The turn of an intent: its operation was claimed, and its request is prepared.
    Turn(IntentNumber, PreparedTurn),
    /// The answer to a request of an intent, or to a poll of it.
    Answer(IntentNumber, Box<Meaning<ResourceDetails>>),
    /// The orphan of this id is settled, for which the instance waited when it was found.
    OrphanSettled(InstanceId, OrphanResult),
    /// The broker was asked what it has, because an update is uncertain.
    Fetched(Box<FetchedInstance>),
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceCommand {
    /// Creates the instance.
    Create(CreateRequest),
    /// Takes over an instance that the broker has already.
    Adopt(CreateRequest),
    /// Changes what the patch names.
    Patch(SpecPatch, ChangeFacts),
    /// Makes the specification equal to this one.
    Replace(Spec, ChangeFacts),
    /// Applies what a manager changed in its own specification since it applied it last.
    Apply(String, Spec, ChangeFacts),
    /// Sends an update without a difference.
    Touch(ChangeFacts),
    /// Deletes the instance; with its bindings if `cascade`. The names of the bindings that are left.
    Delete {
        /// The person.
        by: Author,
        /// Whether bindings are deleted first.
        cascade: bool,
        /// Names of bindings that exist now.
        bindings: Vec<String>,
    },
    /// Takes a delete back, if the broker has not done it.
    Undelete(Author),
    /// Ends an intent that was not sent.
    Cancel(IntentNumber, Author),
    /// Lets an intent on hold go on, at the end of the queue.
    Resume(IntentNumber, ChangeFacts),
    /// Repeats an ended intent.
    Retry(IntentNumber, ChangeFacts),
    /// Goes back to the specification that an intent confirmed.
    Rollback(IntentNumber, ChangeFacts),
    /// Forgets the instance here; what the broker may have goes to the orphan ledger.
    Abandon(Abandonment),
    /// Follows another object, or none.
    Follow(Option<Source>),
    /// Refuses deletes, or takes that back.
    Protect(bool),
}

/// A request to create or to adopt.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// Namespace.
    pub namespace: String,
    /// The broker.
    pub broker: Uuid,
    /// The offering.
    pub service: ServiceId,
    /// What is wanted, or what exists.
    pub spec: Spec,
    /// The id that the broker knows or shall know; `None`: a new one.
    pub osb_id: Option<InstanceId>,
    /// The object that the instance follows.
    pub source: Option<Source>,
    /// Who, under which conditions.
    pub facts: ChangeFacts,
}

/// A request to change: its author, its conditions, and what was found out before it is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeFacts {
    /// Who asks.
    pub request: ChangeRequest,
    /// Faults that are known before anything is sent.
    pub violations: Vec<Violation>,
    /// Number of the catalog: a rejected change may be sent again under another one.
    pub catalog_revision: u64,
}

/// Who asks for a change, and its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRequest {
    /// The person.
    pub author: Author,
    /// The revision that must be shown still.
    pub if_revision: Option<u64>,
    /// Key under which the same request is accepted once.
    pub idempotency_key: Option<RequestKey>,
    /// The object and its generation that the change follows.
    pub source: Option<Source>,
    /// What happens to those behind it if it fails.
    pub on_failure: OnFailure,
    /// Sends a change that was rejected before.
    pub forced: bool,
    /// What causes it: a user, unless the platform acts for one.
    pub cause: IntentCause,
}

/// What is known when an operation was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedTurn {
    /// The request is prepared, and may be written down and sent.
    Ready,
    /// The instance is so already.
    NothingToDo,
    /// A secret that its parameters name cannot be read; the sentence names it.
    Unresolved(String),
    /// The parameters do not fit the schema.
    Unfit(Vec<String>),
    /// Another process wrote the request down, and its answer is not known.
    TakenOver,
    /// It was taken over too often without an answer.
    TakenOverTooOften,
    /// The bindings, which must be deleted before the instance.
    Bindings(BindingsFound),
    /// The answer to a look at what the broker has.
    Observed(Observation),
}

/// Bindings of an instance that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingsFound {
    /// Some, which can be deleted.
    Left,
    /// This one cannot be deleted.
    Stuck(String),
}

/// What the broker has under the id of a create whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// An operation is in progress.
    InProgress,
    /// It is there, and as requested.
    Ours(ResourceDetails),
    /// It is not there, or cannot be read, or is another one.
    AbsentOrUnreadable,
    /// The broker did not say.
    NotNow,
}

/// What a broker says of an instance besides the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceDetails {
    /// Dashboard.
    pub dashboard_url: Option<String>,
    /// Labels and attributes.
    pub metadata: Option<InstanceMetadata>,
}

/// What a broker returned for an instance whose update is uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedInstance {
    /// The specification that it has, as far as the broker tells.
    pub spec: Spec,
    /// Dashboard and metadata.
    pub details: ResourceDetails,
}

impl ChangeRequest {
    /// A request of the platform in the name of a person.
    pub fn of_platform(author: Author, cause: IntentCause) -> Self {
        Self {
            author,
            if_revision: None,
            idempotency_key: None,
            source: None,
            on_failure: OnFailure::Skip,
            forced: false,
            cause,
        }
    }
}
