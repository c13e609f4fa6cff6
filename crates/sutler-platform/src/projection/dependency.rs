//! Whether an intent depends on one that was dropped (T-46).
//!
//! An intent that depends on a dropped one is held, not sent: its author chose it on top of a specification that never
//! came to be. The state changes that follow from it are in `lifecycle/`.

use crate::lifecycle::intent::{DependencyReason, IntentNumber};
use crate::spec::SpecPatch;
use crate::spec::json_pointer::{members, push_segment, shortened};
use serde_json::{Map, Value};

/// Longest path in a reason, in bytes. Reasons are stored beside up to 32 changes in one document.
const PATH_BYTES_MAX: usize = 512;

/// Why `later` cannot stand without `dropped`; `None` if it can.
///
/// `later_saw`: the pending intents that were part of what the author of `later` was shown. `refolded_fits`: whether the
/// parameters of the projection without `dropped` fit the schema of its plan.
///
/// The first reason of these counts:
/// 1. Both touch the same path, or one a path inside the other's. The reason names the longer one, the first in the order
///    of keys; of a very long one only the beginning, up to a whole segment.
/// 2. `dropped` changes the plan, the author of `later` saw that, and `later` changes parameters.
/// 3. The parameters do not fit.
///
/// A local change needs no broker and no plan, so only the first applies to it.
#[must_use]
pub fn dependency(
    later: &SpecPatch,
    later_saw: &[IntentNumber],
    dropped: (IntentNumber, &SpecPatch),
    refolded_fits: bool,
) -> Option<DependencyReason> {
    let (number, dropped) = dropped;
    let shared = shared_path(
        &later.to_document(),
        &dropped.to_document(),
        &mut String::new(),
    );
    if let Some(path) = shared {
        let path = shortened(&path, PATH_BYTES_MAX).to_owned();
        return Some(DependencyReason::SamePath(path));
    }
    if later.is_local() {
        return None;
    }
    let saw_plan = dropped.changes_plan() && later_saw.contains(&number);
    if saw_plan && later.changes_parameters() {
        return Some(DependencyReason::PlanChange);
    }
    (!refolded_fits).then_some(DependencyReason::SchemaMismatch)
}

/// The first path below `at` that both touch.
fn shared_path(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    at: &mut String,
) -> Option<String> {
    one.iter().find_map(|(key, value)| {
        let other = other.get(key)?;
        let parent = at.len();
        push_segment(at, key);
        let found = match (members(value), members(other)) {
            (Some(one), Some(other)) => shared_path(one, other, at),
            (Some(longer), None) | (None, Some(longer)) => Some(first_leaf(longer, at)),
            (None, None) => Some(at.clone()),
        };
        at.truncate(parent);
        found
    })
}

/// The path of the first leaf inside an object.
fn first_leaf(object: &Map<String, Value>, at: &str) -> String {
    let mut path = at.to_owned();
    let mut next = Some(object);
    while let Some((key, value)) = next.and_then(|object| object.iter().next()) {
        push_segment(&mut path, key);
        next = members(value);
    }
    path
}
