//! The orphan ledger: what a broker may have although no instance or binding of the platform stands for it any more.
//!
//! An orphan is deleted by DELETEs of the platform's own, without an originating identity (P-010), until the broker says
//! that nothing is there (2.14, P-153). Its document stays: one that cannot be deleted waits for a person, one that a
//! person forgets stays listed, and one that is deleted is removed by retention, not by these rules.
//!
//! `state.rs` (how far it has come), `event.rs` (what can happen, and what follows), `decide.rs` (which event leads where)
//! and `commands.rs` (those of people), `answer.rs` (what an answer is for the ledger), `retry_wait.rs` (tries and waits),
//! `attempt_log.rs` (what is shown). The table is `tests/transitions/orphan.txt`. Not here: when something becomes an orphan (T-48, T-58, the instance's rules).

mod answer;
mod attempt_log;
mod commands;
mod decide;
mod event;
mod retry_wait;
mod state;
#[cfg(test)]
mod tests;

pub use attempt_log::{ATTEMPTS_KEPT, AttemptLog, AttemptOutcome, OrphanAttempt};
pub use decide::decide;
pub use event::{
    CleanupMode, NewOrphan, OrphanDecision, OrphanEffect, OrphanEvent, OrphanEventError,
    OrphanReply, OrphanResult,
};
pub use retry_wait::{DeleteRound, RETRY_AFTER_MAX, TRIES_MAX, WAITS_MAX};
pub use state::{
    DeleteStage, FORGET_REASON_CHARS_MAX, ForgetReason, ForgetReasonError, OperatorReason,
    OrphanState,
};

use crate::author::Author;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sutler_client::{Operation, PlanIds};
use sutler_osb::{BindingId, InstanceId, OperationKind, OperationToken, PlanId, ServiceId};
use uuid::Uuid;

/// Added to the time in which a request may still reach a broker: clocks differ, and processes are slow.
pub const LATE_CREATE_MARGIN: Duration = Duration::from_secs(30);

/// A row of the ledger. It is also the lane of its mitigation, so that an instance is never occupied by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// What may exist.
    pub key: OrphanKey,
    /// Offering that a DELETE names.
    pub service_id: ServiceId,
    /// Plan that a DELETE names.
    pub plan_id: PlanId,
    /// Why it is on the ledger.
    pub cause: OrphanCause,
    /// When it came there.
    pub found: Timestamp,
    /// The person who abandoned it, if a person did.
    pub by: Option<Author>,
    /// What is notified of its end: a create may be repeated then (T-71).
    pub waiting: Option<WaitingResource>,
    /// From then on no create of this id can arrive at the broker. A DELETE that was sent earlier proves nothing (T-58).
    pub guarded_until: Timestamp,
    /// Tries and waits since it was found, or since a person asked for another round.
    pub round: DeleteRound,
    /// What was tried, and the words of the broker.
    pub attempts: AttemptLog,
    /// How far it has come.
    pub state: OrphanState,
}

/// What may exist: the ids that a broker knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OrphanKey {
    /// Our uid of the broker.
    pub broker: Uuid,
    /// Instance at the broker.
    pub instance: InstanceId,
    /// Binding at the broker; `None`: the instance itself.
    pub binding: Option<BindingId>,
}

/// Why something is on the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrphanCause {
    /// The broker failed to create it and may have left something (T-48).
    FailedCreate,
    /// Whether it was created is unknown (T-48, D-40).
    DoubtfulCreate,
    /// A binding was created whose answer cannot be used: too long, or against what the offering requires (T-84).
    UnusableBinding,
    /// A person gave up the instance or the binding (T-30).
    Abandoned,
    /// The broker confirmed a delete while a create of the same id may still arrive: one more DELETE after that (T-58).
    LateCreate,
}

/// The document that waits for the end of an orphan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitingResource {
    /// An instance.
    Instance {
        /// Its namespace.
        namespace: String,
        /// Its uid.
        uid: Uuid,
    },
    /// A binding.
    Binding {
        /// Its namespace.
        namespace: String,
        /// Uid of its instance.
        instance: Uuid,
        /// Its uid.
        uid: Uuid,
    },
}

impl OrphanKey {
    /// The request that deletes it.
    pub fn kind(&self) -> OperationKind {
        match self.binding {
            None => OperationKind::Deprovision,
            Some(_) => OperationKind::Unbind,
        }
    }
}

impl Orphan {
    /// The offering and the plan that its requests name.
    pub fn offered(&self) -> PlanIds {
        PlanIds {
            service_id: self.service_id.clone(),
            plan_id: self.plan_id.clone(),
        }
    }

    /// The accepted DELETE, to be polled with the token of its 202.
    pub fn delete_operation(&self, token: Option<OperationToken>) -> Operation {
        let instance = self.key.instance.clone();
        match self.key.binding.clone() {
            None => Operation::deprovision(instance, self.offered(), token),
            Some(binding) => Operation::unbind(instance, binding, self.offered(), token),
        }
    }
}

/// Until when a create may still arrive that was written down at `sent`: its process may have been frozen before it sent
/// the bytes, for as long as its lease, and the broker may take as long as it may to answer.
pub fn late_create_guard(sent: Timestamp, answer_within: Duration, lease: Duration) -> Timestamp {
    let wait = answer_within
        .saturating_add(lease)
        .saturating_add(LATE_CREATE_MARGIN);
    retry_wait::later(sent, wait)
}
