//! Final outcomes of the operations of one instance and its bindings, from the store.
//!
//! The model may only end operations as they really ended (`sequential_model.rs`); what nobody was told the name
//! of may end as some operation of its sort did.

use super::sequential_model::Op;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use sutler_journal::Outcome;

/// One operation as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOperation {
    /// Its id.
    pub id: String,
    /// The instance that it is about.
    pub instance: String,
    /// The binding that it is about; `None`: the instance itself.
    pub binding: Option<usize>,
    /// Verb.
    pub verb: String,
    /// Outcome; `None` if it has not ended.
    pub outcome: Option<Outcome>,
    /// Number of takeovers since the last progress.
    pub takeovers: u32,
}

/// Short names for long ones.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<String, u32>);

impl Names {
    /// The short name, always the same.
    pub fn of(&mut self, long: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(long.to_owned()).or_insert(next)
    }
}

/// Known outcomes of operations.
#[derive(Clone, Debug, Default)]
pub struct OperationEnds {
    named: BTreeMap<u32, Outcome>,
    seen: BTreeSet<(Option<usize>, String, Outcome)>,
}

impl OperationEnds {
    /// From the rows of one instance and its bindings.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r EndedOperation>, names: &mut Names) -> Self {
        let mut facts = Self::default();
        for row in rows {
            let Some(outcome) = row.outcome else { continue };
            facts.named.insert(names.of(&row.id), outcome);
            facts.seen.insert((row.binding, row.verb.clone(), outcome));
        }
        facts
    }

    /// Whether an operation may have ended so.
    pub(crate) fn may(&self, of: Option<usize>, op: Op, verb: &str, outcome: Outcome) -> bool {
        match op {
            Op::Named(name) => self.named.get(&name) == Some(&outcome),
            Op::Unnamed => self.seen.contains(&(of, verb.to_owned(), outcome)),
        }
    }
}
