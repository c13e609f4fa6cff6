//! A service binding: the document of its lane, with everything that must be decided at once.
//!
//! A binding consists of *generations*: bindings at the broker, each with its own id and credentials. One is current;
//! those that it replaced are retiring, and are unbound when their overlap is over. Credentials are in the document from
//! the commit of the successful bind until the commit of the confirmed unbind (invariant I-10), and nowhere else: no
//! intent, effect or end of an intent has any.
//!
//! What a bind asks for never changes. A rotation sends the same parameters again; a binding with others is another
//! binding. Phase and conditions are derived and never stored (`conditions.rs`).
//!
//! The rules: `event.rs` (what can happen), `decision.rs` (what follows), `decide.rs` (which rule for which event), then
//! `create.rs`, `rotate.rs`, `delete.rs`, `commands.rs` (people and the expiry chore), `turn.rs` (a request is prepared or
//! taken over), `bind_answer.rs`, `unbind_answer.rs`, `delete_answer.rs` (brokers), `repeated_bind.rs` (the orphan ledger).
//! They share `transition.rs`, `generations.rs` and `schedule.rs` (which operation may be claimed). Apart from all that:
//! `transforms.rs` and `transform.rs` (how credentials are delivered), `rotation_policy.rs` (when something is due).

mod bind_answer;
mod commands;
mod conditions;
mod create;
mod credential_path;
mod decide;
mod decision;
mod delete;
mod delete_answer;
mod event;
mod event_error;
mod generation;
mod generations;
mod pending;
mod repeated_bind;
mod rotate;
mod rotation_policy;
mod schedule;
#[cfg(test)]
mod tests;
mod transform;
mod transforms;
mod transition;
mod turn;
mod unbind_answer;

pub use conditions::{BindingPhase, Conditions, GenerationPhase};
pub use credential_path::{CredentialPath, CredentialPathError, PATH_BYTES_MAX, PATH_SEGMENTS_MAX};
pub use decide::decide;
pub use decision::{
    BindingDecision, BindingEffect, BindingOrphan, BindingPolicy, BindingReply, Context, NewIds,
    OperationStart,
};
pub use event::{
    BindFacts, BindingBody, BindingCommand, BindingDetails, CreateRequest, Event,
    InstanceReadiness, Observation, PreparedTurn, RotateRequest,
};
pub use event_error::BindingEventError;
pub use generation::{
    ANSWER_BYTES_MAX, AnswerTooLongError, BindExposure, BoundDetails, CredentialsAnswer,
    Generation, GenerationState, Retirement,
};
pub use pending::{BindChange, EndedIntent, IntentCause, IntentChange, PendingIntent};
pub use rotation_policy::{
    EVERY_MIN, FailedRotations, OVERLAP_MAX, RotationPolicy, RotationPolicyError,
};
pub use transform::{AddedKey, AddedKeyError, AddedValue, Transform};
pub use transforms::{
    KEY_BYTES_MAX, RESULT_BYTES_MAX, RESULT_DEPTH_MAX, TRANSFORMS_BYTES_MAX, TRANSFORMS_MAX,
    TransformError, Transforms, TransformsError,
};

use crate::author::Author;
use crate::lifecycle::instance::Tombstone;
use crate::lifecycle::intent::{Abandonment, IntentNumber, IntentState};
use crate::lifecycle::request_key::AcceptedKey;
use crate::spec::{ParameterSource, Parameters};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use sutler_osb::{BindingId, NonEmptyText};
use uuid::Uuid;

/// Most generations at once, so that the document has room for their credentials.
pub const GENERATIONS_MAX: usize = 4;
/// Ended intents that the document keeps; older ones are in the journal only.
pub const ENDED_KEPT: usize = 20;
/// Idempotency keys that are remembered.
pub const IDEMPOTENCY_KEYS_KEPT: usize = 16;

/// A service binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Our own stable id.
    pub uid: Uuid,
    /// Namespace, of the instance too.
    pub namespace: String,
    /// Our own id of the instance.
    pub instance: Uuid,
    /// Name for people.
    pub name: String,
    /// The person who created it, and in whose name it is renewed.
    pub author: Author,
    /// What each bind asks for.
    pub spec: BindSpec,
    /// How the credentials are delivered.
    pub transforms: Transforms,
    /// When it is rotated; `None`: only if a person asks for it.
    pub rotation: Option<RotationPolicy>,
    /// The id at the broker that a person chose for the first generation, unless it was used (P-007).
    pub chosen_id: Option<BindingId>,
    /// Bindings at the broker, or on the way there, oldest first; at most [`GENERATIONS_MAX`].
    pub generations: Vec<Generation>,
    /// Number of accepted intents.
    pub accepted: u64,
    /// Intents that have not ended, by number. They are few: a bind, a delete, and an unbind of each generation.
    pub pending: Vec<PendingIntent>,
    /// The last intents that ended, oldest first.
    pub ended: VecDeque<EndedIntent>,
    /// Idempotency keys and the intents that they began, oldest first.
    pub idempotency_keys: VecDeque<AcceptedKey>,
    /// The delete in progress, if any.
    pub deletion: Option<Deletion>,
    /// Rotations that failed since the last bind that succeeded, if any.
    pub failed_rotations: Option<FailedRotations>,
    /// It waits until the orphan of its last bind is deleted.
    pub waits_for_orphan: bool,
    /// Which one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaited_orphan: Option<BindingId>,
    /// Binds that the platform repeated by itself since a user asked for one.
    pub auto_retries: u32,
    /// Why it is no more, if so.
    pub tombstone: Option<Tombstone>,
    /// Who gave it up and why, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandonment>,
}

/// What each bind of a binding asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindSpec {
    /// Parameters that are written out.
    pub parameters: Parameters,
    /// Secrets that hold further parameters, in the order in which they are merged in.
    pub parameter_sources: Vec<ParameterSource>,
    /// What the credentials are for.
    pub target: TargetResource,
}

/// What the credentials of a binding are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetResource {
    /// Nothing in particular.
    Credentials,
    /// An application, because the broker demanded one (P-105).
    Application,
    /// A route whose requests the service handles (P-101).
    Route(NonEmptyText),
}

/// A delete in progress. It unbinds one generation after another, the current one last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Its intent.
    pub number: IntentNumber,
    /// The generation that its requests are about, since the first of them was written down.
    pub target: Option<BindingId>,
    /// The person who wants the binding back, if any.
    pub undelete: Option<Author>,
    /// Whether the next turn polls the bind under the delete instead of sending the unbind again.
    pub polls_next: bool,
}

impl Binding {
    /// A pending intent.
    pub fn intent(&self, number: IntentNumber) -> Option<&PendingIntent> {
        self.pending.iter().find(|intent| intent.number == number)
    }

    /// The bind that is pending: of the first generation, or a rotation.
    pub fn pending_bind(&self) -> Option<&PendingIntent> {
        let is_bind = |intent: &&PendingIntent| intent.change.bind().is_some();
        self.pending.iter().find(is_bind)
    }

    /// Whether a request was sent whose answer is not known or not final.
    pub fn is_busy(&self) -> bool {
        self.pending.iter().any(|intent| {
            matches!(
                intent.state,
                IntentState::Sending { .. }
                    | IntentState::Unknown { .. }
                    | IntentState::Polling { .. }
            )
        })
    }
}
