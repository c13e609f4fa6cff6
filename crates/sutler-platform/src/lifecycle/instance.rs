//! A service instance: the document of its lane, with everything that must be decided at once.
//!
//! `confirmed` is what the broker acknowledged; the specification that users see is the basis plus the pending intents
//! that count, see [`Instance::projection`]. Phase and conditions are derived and never stored (`conditions.rs`).
//!
//! The rules: `event.rs` (what can happen), `decision.rs` (what follows), `decide.rs` (which rule for which event), then
//! `create.rs`, `change.rs`, `bounds.rs`, `delete.rs`, `commands.rs` (people), `turn.rs` (a request is prepared or taken over),
//! `create_answer.rs`, `update_answer.rs`, `delete_answer.rs` (brokers). They share `transition.rs`, `dependents.rs` (what
//! cannot go on without a dropped intent) and `schedule.rs` (which operation may be claimed).

mod bounds;
mod change;
mod commands;
mod conditions;
mod create;
mod create_answer;
mod decide;
mod decision;
mod delete;
mod delete_answer;
mod dependents;
mod event;
mod event_error;
mod pending;
mod repeated_create;
mod schedule;
#[cfg(test)]
mod tests;
mod transition;
mod turn;
mod update_answer;

pub use conditions::{ConditionStatus, Conditions, InstancePhase};
pub use decide::decide;
pub use decision::{
    Context, InstanceDecision, InstanceEffect, InstanceOrphan, InstancePolicy, InstanceReply,
    NewIds, OperationStart,
};
pub use event::{
    BindingsFound, ChangeFacts, ChangeRequest, CreateRequest, Event, FetchedInstance,
    InstanceCommand, Observation, PreparedTurn, ResourceDetails,
};
pub use event_error::InstanceEventError;
pub use pending::{EndedIntent, IntentChange, PendingIntent};

use crate::author::Author;
use crate::lifecycle::intent::{Abandonment, IntentNumber, IntentState};
use crate::lifecycle::request_key::AcceptedKey;
use crate::projection::{self, Projection};
use crate::spec::{ParameterSource, Spec, SpecPatch};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use sutler_osb::{InstanceId, InstanceMetadata, ServiceId};
use uuid::Uuid;

/// Most intents that wait or run at once.
pub const PENDING_MAX: usize = 32;
/// Most bytes of their patches together.
pub const PENDING_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of their authors together.
pub const AUTHORS_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of the parameters of a specification.
pub const PARAMETERS_BYTES_MAX: usize = 128 * 1024;
/// Most bytes of its labels, and of its annotations.
pub const LABELS_BYTES_MAX: usize = 16 * 1024;
/// Most names that it holds at once, its own and those of pending changes.
pub const NAMES_MAX: usize = 8;
/// Most secrets that it uses at once, with those of pending changes.
pub const SECRETS_MAX: usize = 16;
/// Ended intents that the document keeps; older ones are in the journal only.
pub const ENDED_KEPT: usize = 20;
/// Bytes of them together.
pub const ENDED_BYTES_MAX: usize = 128 * 1024;
/// Earlier ids that the document keeps; older ones are on the ledger only.
pub const FORMER_IDS_KEPT: usize = 32;
/// Earlier revisions that can be compared with.
pub const REVISIONS_KEPT: usize = 64;
/// Bytes of the patches of earlier revisions together.
pub const REVISIONS_BYTES_MAX: usize = 64 * 1024;
/// Managers whose last applied specification is kept.
pub const MANAGERS_KEPT: usize = 4;
/// Bytes of these specifications together.
pub const MANAGERS_BYTES_MAX: usize = 128 * 1024;
/// Idempotency keys that are remembered.
pub const IDEMPOTENCY_KEYS_KEPT: usize = 64;

/// A service instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Our own stable id.
    pub uid: Uuid,
    /// Namespace.
    pub namespace: String,
    /// The broker.
    pub broker: Uuid,
    /// The offering; it never changes.
    pub service: ServiceId,
    /// The id by which the broker knows it; minted again after a create that had to be deleted (P-007).
    pub osb_id: InstanceId,
    /// Whether a person chose that id, so that it stays.
    pub osb_id_is_chosen: bool,
    /// Earlier ids.
    pub former_ids: Vec<InstanceId>,
    /// How it came here.
    pub origin: Origin,
    /// The object of another system that it follows, if any.
    pub source: Option<Source>,
    /// What the pending intents are applied to.
    pub basis: Basis,
    /// What the broker may have.
    pub exposure: Exposure,
    /// Whether new bindings may be made, as the broker said last (P-096, P-123).
    pub usable: bool,
    /// Refuses deletes.
    pub protected: bool,
    /// Number of accepted intents.
    pub generation: u64,
    /// Number of specifications that were shown; the entity tag.
    pub revision: u64,
    /// The last intent that succeeded.
    pub applied: Option<IntentNumber>,
    /// Intents that have not ended, by number.
    pub pending: Vec<PendingIntent>,
    /// The last intents that ended, oldest first.
    pub ended: VecDeque<EndedIntent>,
    /// Earlier revisions, oldest first.
    pub revisions: VecDeque<EarlierRevision>,
    /// What each manager applied last, oldest first.
    pub managers: VecDeque<(String, Spec)>,
    /// Idempotency keys and the intents that they began, oldest first.
    pub idempotency_keys: VecDeque<AcceptedKey>,
    /// The delete in progress, if any.
    pub deletion: Option<Deletion>,
    /// When a create under the present id was sent last, if it may still take effect.
    pub create_sent: Option<Timestamp>,
    /// It waits until the orphan of its last create is deleted.
    pub waits_for_orphan: bool,
    /// Creates that the platform repeated by itself since a user asked for one.
    pub auto_retries: u32,
    /// Why it is no more, if so.
    pub tombstone: Option<Tombstone>,
    /// Who gave it up and why, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandonment>,
}

/// How an instance came here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Created here.
    Created,
    /// It existed before: nothing of it is ever deleted to clean up.
    Adopted,
}

/// An object of another system, e.g. a custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where it is, e.g. `cluster/namespace/name`.
    pub object: String,
    /// Its own stable id.
    pub uid: String,
    /// Its generation that was taken over last.
    pub generation: u64,
}

/// What the pending intents are applied to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// What the last create asks or asked for; no broker acknowledged anything.
    Requested(Box<Spec>),
    /// What the broker acknowledged.
    Confirmed(Box<ConfirmedState>),
}

/// What a broker acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedState {
    /// The specification.
    pub spec: Spec,
    /// Dashboard of the instance.
    pub dashboard_url: Option<String>,
    /// Labels and attributes of the broker.
    pub metadata: Option<InstanceMetadata>,
}

/// What the broker may have under the instance's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exposure {
    /// Nothing.
    Nothing,
    /// A create was sent, and no answer proves that nothing was made: a delete has to ask the broker.
    MayExist,
    /// The instance, as confirmed.
    Confirmed,
    /// The instance, but these updates may have been applied or not.
    Uncertain(Vec<IntentNumber>),
    /// What may exist is on the orphan ledger, which deletes it.
    OnLedger,
}

/// A delete in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Its intent.
    pub number: IntentNumber,
    /// The person in whose name bindings are deleted first, if they are.
    pub cascade: Option<Author>,
    /// Whether it waits for an update that the broker works on (the broker's profile).
    pub waits_for_update: bool,
    /// The person who wants the instance back, if any.
    pub undelete: Option<Author>,
    /// Whether the next turn polls the intent under the delete instead of sending the delete again.
    pub polls_next: bool,
}

/// A revision that was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierRevision {
    /// Its number.
    pub revision: u64,
    /// Leads from the revision after it back to it.
    pub undo: SpecPatch,
    /// The pending intents that it contained.
    pub folded: Vec<IntentNumber>,
}

/// Why an instance is no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tombstone {
    /// The broker confirmed the delete, or never had the instance.
    Deleted(Timestamp),
    /// It was given up; what the broker may have is on the orphan ledger.
    Abandoned(Timestamp),
}

impl Tombstone {
    /// Since when it is no more.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Deleted(at) | Self::Abandoned(at) => *at,
        }
    }
}

impl Basis {
    /// The specification without pending intents.
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Requested(spec) => spec,
            Self::Confirmed(confirmed) => &confirmed.spec,
        }
    }
}

impl Instance {
    /// What the broker acknowledged, if anything.
    pub fn confirmed(&self) -> Option<&ConfirmedState> {
        match &self.basis {
            Basis::Confirmed(confirmed) => Some(confirmed),
            Basis::Requested(_) => None,
        }
    }

    /// The specification that is shown: the basis and the pending intents that count, in their order.
    pub fn projection(&self) -> Projection {
        let counted = self.pending.iter().filter_map(|intent| {
            let patch = intent.change.patch()?;
            projection::counts(&intent.state).then_some((intent.number, patch))
        });
        projection::fold(self.basis.spec(), counted)
    }

    /// The pending intents that the shown specification contains.
    pub fn folded(&self) -> Vec<IntentNumber> {
        let counted = |intent: &&PendingIntent| {
            projection::counts(&intent.state) && !intent.change.is_delete()
        };
        self.pending
            .iter()
            .filter(counted)
            .map(|intent| intent.number)
            .collect()
    }

    /// The names that it holds: its own, and those that pending changes give it.
    pub fn names(&self) -> BTreeSet<String> {
        if self.tombstone.is_some() {
            return BTreeSet::new();
        }
        let patches = self.pending.iter().filter_map(|it| it.change.patch());
        let pending = patches.filter_map(|patch| patch.name.clone());
        std::iter::once(self.basis.spec().name.clone())
            .chain(pending)
            .collect()
    }

    /// The secrets that it uses, and whether a change of them causes an update. Those of pending changes count.
    pub fn secrets(&self) -> BTreeMap<String, bool> {
        let mut secrets = BTreeMap::new();
        if self.tombstone.is_some() {
            return secrets;
        }
        let patches = self.pending.iter().filter_map(|it| it.change.patch());
        let pending = patches.filter_map(|patch| patch.parameter_sources.as_ref());
        let own = &self.basis.spec().parameter_sources;
        for source in pending.flatten().chain(own) {
            *secrets.entry(source.secret.clone()).or_insert(false) |= source.watch;
        }
        secrets
    }

    /// Sources of the parameters that its broker has got or may have got: its own, and those of pending changes.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &ParameterSource> {
        let patches = self.pending.iter().filter_map(|it| it.change.patch());
        let pending = patches.filter_map(|it| it.parameter_sources.as_ref());
        let own = &self.basis.spec().parameter_sources;
        own.iter().chain(pending.flatten())
    }

    /// A pending intent.
    pub fn intent(&self, number: IntentNumber) -> Option<&PendingIntent> {
        self.pending.iter().find(|intent| intent.number == number)
    }

    /// Whether a request about the instance was sent whose answer is not known or not final.
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
