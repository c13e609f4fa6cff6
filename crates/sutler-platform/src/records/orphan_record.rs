//! A row of the orphan ledger with the operation that deletes it.

use super::record::TypedRecord;
use super::terms::{BROKER_TERM, FOUND_TERM, GONE_TERM, STATE_TERM, moment_value};
use crate::lifecycle::orphan::{Orphan, OrphanState};
use serde::{Deserialize, Serialize};
use sutler_journal::{OperationId, Term};

/// A row of the ledger as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanRecord {
    /// The row.
    pub orphan: Orphan,
    /// The operation that deletes it, while there is one.
    pub operation: Option<OperationId>,
    /// Whether the broker may have got values of secrets for it: then no words of it are kept. Where the values come from is
    /// not kept either: a secret changes, and the old value stays in the words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
}

impl OrphanState {
    /// The state as it is shown and listed.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Due { .. } => "due",
            Self::InFlight { .. } => "in_flight",
            Self::NeedsOperator { .. } => "needs_operator",
            Self::Deferred => "deferred",
            Self::Done { .. } => "done",
            Self::Forgotten { .. } => "forgotten",
        }
    }
}

impl TypedRecord for OrphanRecord {
    fn terms(&self) -> Vec<Term> {
        let broker = self.orphan.key.broker.to_string();
        let found = moment_value(self.orphan.found.as_microsecond());
        let mut terms = vec![
            Term::new(STATE_TERM, self.orphan.state.word()),
            Term::new(BROKER_TERM, broker.into_bytes()),
            Term::new(FOUND_TERM, found),
        ];
        if let OrphanState::Done { at } = &self.orphan.state {
            terms.push(Term::new(GONE_TERM, moment_value(at.as_microsecond())));
        }
        terms
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}
