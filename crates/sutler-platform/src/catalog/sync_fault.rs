//! What a sync reports of items that it could not use: bounded sentences for the operator.
//!
//! The rules are in `received_catalog.rs` (an item by itself) and `unique_values.rs` (items among each other).

use crate::quoted_text::{quoted, shortened};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Most faults that are listed.
const FAULTS_MAX: usize = 100;
/// Longest path, in characters.
const PATH_CHARS_MAX: usize = 200;
/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 400;

/// One unusable item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFault {
    /// Where in the catalog, e.g. `services[0].plans[2].id`.
    pub path: String,
    /// Name of the item, or its id, if it has one; shortened.
    pub item: Option<String>,
    /// The rest of a sentence that begins with the path, e.g. `must not be empty`.
    pub reason: String,
    /// The rule that is broken, e.g. `B-068`.
    pub rule: String,
    /// What became of the item.
    pub outcome: FaultOutcome,
}

/// What became of an unusable item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultOutcome {
    /// It is not offered.
    NotOffered,
    /// The last usable version is offered still.
    LastVersionStays,
}

/// The faults of a sync, in the order of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFaults {
    /// The first of them.
    pub listed: Vec<SyncFault>,
    /// Number of those that are not listed.
    pub omitted: usize,
}

/// Place of a fault: the offering, and the plan within it.
pub(super) type FaultPosition = (usize, Option<usize>);

/// Why one item is not usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemProblem {
    /// Path within the item, e.g. `.id`; empty for the whole item.
    pub(super) field: String,
    /// The rest of a sentence that begins with the path.
    pub(super) reason: String,
    /// The rule that is broken.
    pub(super) rule: &'static str,
}

impl ItemProblem {
    pub(super) fn new(field: &str, reason: impl Into<String>, rule: &'static str) -> Self {
        Self {
            field: field.to_owned(),
            reason: reason.into(),
            rule,
        }
    }
}

/// Collects the faults of a sync, at most one for each place.
#[derive(Default)]
pub(super) struct FaultCollector(BTreeMap<FaultPosition, SyncFault>);

impl FaultCollector {
    /// Records a fault. The first one of a place counts.
    pub(super) fn add(
        &mut self,
        position: FaultPosition,
        item: Option<&str>,
        problem: &ItemProblem,
        outcome: FaultOutcome,
    ) {
        let (service, plan) = position;
        let plan = plan.map_or_else(String::new, |nth| format!(".plans[{nth}]"));
        let path = format!("services[{service}]{plan}{}", problem.field);
        let fault = SyncFault {
            path: shortened(&path, PATH_CHARS_MAX),
            item: item.map(quoted),
            reason: shortened(&problem.reason, REASON_CHARS_MAX),
            rule: problem.rule.to_owned(),
            outcome,
        };
        self.0.entry(position).or_insert(fault);
    }

    pub(super) fn into_faults(self) -> SyncFaults {
        let omitted = self.0.len().saturating_sub(FAULTS_MAX);
        SyncFaults {
            listed: self.0.into_values().take(FAULTS_MAX).collect(),
            omitted,
        }
    }
}

impl SyncFaults {
    /// Whether every item was usable.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.omitted == 0
    }
}

impl fmt::Display for SyncFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(item) = &self.item {
            write!(f, " ({item})")?;
        }
        let outcome = match self.outcome {
            FaultOutcome::NotOffered => "it is not offered",
            FaultOutcome::LastVersionStays => "its last usable version stays",
        };
        write!(f, " {}; {outcome}", self.reason)
    }
}
