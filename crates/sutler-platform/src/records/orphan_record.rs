//! A row of the orphan ledger with the operation that deletes it.

use super::record::TypedRecord;
use super::terms::{BROKER_TERM, FOUND_TERM, GONE_TERM, STATE_TERM, moment_value};
use crate::lifecycle::orphan::{Orphan, OrphanState};
use crate::spec::ParameterSource;
use serde::{Deserialize, Serialize};
use sutler_journal::{OperationId, Term};

/// A row of the ledger as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanRecord {
    /// The row.
    pub orphan: Orphan,
    /// The operation that deletes it, while there is one.
    pub operation: Option<OperationId>,
    /// Secrets whose values the broker may have got for it, so that its words are kept without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<OrphanSecrets>,
}

/// Where the values of secrets are found that a broker may have got for an orphan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanSecrets {
    /// Namespace of the secrets.
    pub namespace: String,
    /// Sources of the parameters of what became the orphan.
    pub sources: Vec<ParameterSource>,
}

impl OrphanSecrets {
    /// The secrets of a resource; `None`: it has none.
    pub(crate) fn of(namespace: &str, sources: Vec<ParameterSource>) -> Option<Self> {
        let known = Self {
            namespace: namespace.to_owned(),
            sources: Vec::new(),
        };
        known.with(sources)
    }

    /// Those of a row that is found again, with those that it has already. An id belongs to one namespace as long as anything
    /// can be found under it.
    pub(crate) fn with_known(found: Option<Self>, known: Option<Self>) -> Option<Self> {
        match (found, known) {
            (Some(found), Some(known)) if found.namespace == known.namespace => {
                found.with(known.sources)
            }
            (found, known) => found.or(known),
        }
    }

    fn with(mut self, sources: Vec<ParameterSource>) -> Option<Self> {
        for source in sources {
            if !self.sources.contains(&source) {
                self.sources.push(source);
            }
        }
        (!self.sources.is_empty()).then_some(self)
    }
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
