//! What can happen to a binding: commands of people, turns of its operations, answers of its broker. Types only.
//!
//! What follows is in `decision.rs` and `event_error.rs`; the rules begin in `decide.rs`.

use crate::author::Author;
use crate::lifecycle::binding::{BindSpec, CredentialsAnswer, RotationPolicy, Transforms};
use crate::lifecycle::intent::{Abandonment, IntentNumber};
use crate::lifecycle::orphan::OrphanResult;
use crate::lifecycle::request_key::RequestKey;
use crate::preflight::Violation;
use jiff::Timestamp;
use sutler_client::Meaning;
use sutler_osb::BindingId;
use uuid::Uuid;

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A person asks for something.
    Command(Box<BindingCommand>),
    /// The expiry chore found that the binding is to be rotated, in the name of its author.
    RenewalDue(BindFacts),
    /// The expiry chore found that a retiring generation is to be unbound, in the name of the binding's author.
    RetirementDue,
    /// The instance for which the binding waits is live.
    InstanceLive,
    /// The turn of an intent: its operation was claimed, and its request is prepared.
    Turn(IntentNumber, PreparedTurn),
    /// The answer to a request of an intent, or to a poll of it.
    Answer(IntentNumber, Box<Meaning<BindingBody>>),
    /// The orphan that the binding waits for is settled.
    OrphanSettled(BindingId, OrphanResult),
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingCommand {
    /// Creates the binding.
    Create(Box<CreateRequest>),
    /// Deletes it: all its generations are unbound.
    Delete(Author),
    /// The same, because this person deletes the instance with its bindings.
    Cascade(Author),
    /// Takes a delete back, if the broker has not done it.
    Undelete(Author),
    /// Ends an intent that was not sent.
    Cancel(IntentNumber, Author),
    /// Lets a bind on hold go on.
    Resume(IntentNumber, Author, BindFacts),
    /// Repeats an ended intent.
    Retry(IntentNumber, Author, BindFacts),
    /// Replaces the current generation, with the same parameters.
    Rotate(RotateRequest),
    /// Ends the binding here; what the broker may have goes to the orphan ledger.
    Abandon(Abandonment),
}

/// A request to create a binding.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// Namespace, of the instance too.
    pub namespace: String,
    /// Our own id of the instance.
    pub instance: Uuid,
    /// Name for people.
    pub name: String,
    /// What each bind asks for.
    pub spec: BindSpec,
    /// How the credentials are delivered.
    pub transforms: Transforms,
    /// When it is rotated.
    pub rotation: Option<RotationPolicy>,
    /// The id that the broker shall know; `None`: a new one.
    pub osb_id: Option<BindingId>,
    /// The person.
    pub by: Author,
    /// Key under which the same request is accepted once.
    pub idempotency_key: Option<RequestKey>,
    /// What was found out before it is decided.
    pub facts: BindFacts,
}

/// A request to replace the current generation.
#[derive(Clone, Debug, PartialEq)]
pub struct RotateRequest {
    /// The person.
    pub by: Author,
    /// Key under which the same request is accepted once.
    pub idempotency_key: Option<RequestKey>,
    /// What was found out before it is decided.
    pub facts: BindFacts,
}

/// What was found out before a bind is accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct BindFacts {
    /// Whether the instance can be bound to. The commit expects that it has not changed since.
    pub instance: InstanceReadiness,
    /// Faults that are known before anything is sent.
    pub violations: Vec<Violation>,
    /// Whether the plan rotates bindings (P-110).
    pub rotatable: bool,
}

/// Whether an instance can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceReadiness {
    /// Yes.
    Live,
    /// Not yet: no broker has confirmed it.
    NotLiveYet,
    /// It is being deleted.
    Deleting,
    /// The broker said that it cannot be used (P-123).
    Unusable,
    /// There is none.
    Gone,
}

/// What is known when an operation was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedTurn {
    /// The request is prepared, and may be written down and sent. For a bind: the instance is live and usable.
    Ready,
    /// A secret that its parameters name cannot be read; the sentence names it.
    Unresolved(String),
    /// The parameters do not fit the schema.
    Unfit(Vec<String>),
    /// Another process wrote the request down, and its answer is not known.
    TakenOver,
    /// It was taken over too often without an answer.
    TakenOverTooOften,
    /// A bind has to wait, because the instance is not live or not usable.
    InstanceNotReady,
    /// The broker takes one operation per instance at a time, and another one is in progress (P-061).
    InstanceBusy,
    /// The instance was deleted or abandoned.
    InstanceGone,
    /// The answer to a look at what the broker has.
    Observed(Observation),
}

/// What the broker has under the id of a bind that is done, or whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// An operation is in progress.
    InProgress,
    /// It is there, and as requested.
    Found(BindingBody),
    /// It is not there, or cannot be read, or is another one.
    AbsentOrUnreadable,
    /// The broker did not say.
    NotNow,
}

/// The body of a bind that succeeded, or of a fetched binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingBody {
    /// It can be kept and delivered.
    Fit(BindingDetails),
    /// It is too long, or contradicts what the offering requires (P-103); the sentence says which.
    Unfit(String),
}

/// What a broker says of a binding. Unlike the answer itself it can be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingDetails {
    /// The answer, sealed.
    pub credentials: CredentialsAnswer,
    /// When the credentials stop working.
    pub expires_at: Option<Timestamp>,
    /// When it should be rotated at the latest.
    pub renew_before: Option<Timestamp>,
}

impl BindFacts {
    /// Of a bind that needs no check: its turn finds out what has changed.
    pub(super) fn of_repeated_bind() -> Self {
        Self {
            instance: InstanceReadiness::Live,
            violations: Vec::new(),
            rotatable: false,
        }
    }
}
