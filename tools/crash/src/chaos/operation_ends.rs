//! Final outcomes of the operations of one instance and its bindings, from the store.
//!
//! The model may only end operations as they really ended (`sequential_model.rs`); an operation whose id no
//! client knows may end like any operation of its verb.

use super::sequential_model::Op;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use sutler_journal::Outcome;

/// One operation in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOperation {
    /// Id.
    pub id: String,
    /// Its instance.
    pub instance: String,
    /// Its binding; `None`: the instance itself.
    pub binding: Option<usize>,
    /// Verb.
    pub verb: String,
    /// Outcome; `None` if it has not ended.
    pub outcome: Option<Outcome>,
    /// Number of takeovers since the last progress.
    pub takeovers: u32,
    /// Its last claim.
    pub fence: u64,
}

/// Numbers for long names.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<String, u32>);

impl Names {
    /// The number of a name, always the same.
    pub fn of(&mut self, long: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(long.to_owned()).or_insert(next)
    }
}

/// Known outcomes of operations.
#[derive(Clone, Debug, Default)]
pub struct OperationEnds {
    named: BTreeMap<u32, Outcome>,
    outcomes: BTreeSet<(Option<usize>, String, Outcome)>,
}

impl OperationEnds {
    /// Reads the rows of one instance and its bindings.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r EndedOperation>, names: &mut Names) -> Self {
        let mut facts = Self::default();
        for row in rows {
            let Some(outcome) = row.outcome else { continue };
            facts.named.insert(names.of(&row.id), outcome);
            facts
                .outcomes
                .insert((row.binding, row.verb.clone(), outcome));
        }
        facts
    }

    /// Whether an operation may have this outcome.
    pub(crate) fn may(&self, of: Option<usize>, op: Op, verb: &str, outcome: Outcome) -> bool {
        match op {
            Op::Named(name) => self.named.get(&name) == Some(&outcome),
            Op::Unnamed => self.outcomes.contains(&(of, verb.to_owned(), outcome)),
        }
    }
}
