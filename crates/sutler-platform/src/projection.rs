//! The specification that is shown: what the broker acknowledged, plus the pending intents in their order.
//!
//! [`fold`] computes it, [`counts`] says which pending intents are part of it. Whether a dropped intent takes others out
//! with it is in `projection/dependency.rs`. Which intents exist, and when this is computed again, is decided in
//! `lifecycle/`.

mod dependency;
#[cfg(test)]
mod tests;

pub use dependency::dependency;

use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::spec::json_pointer::{members, push_segment};
use crate::spec::{Spec, SpecPatch, diff};
use serde_json::{Map, Value};

/// The specification that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// The base with all changes applied.
    pub spec: Spec,
    /// For each path (a JSON pointer) that differs from the base, the last intent that touches it.
    pub authors_of: Vec<(String, IntentNumber)>,
}

/// Whether a pending intent in this state is part of the specification that is shown.
#[must_use]
pub fn counts(state: &IntentState) -> bool {
    match state {
        IntentState::Queued { .. }
        | IntentState::Sending { .. }
        | IntentState::Unknown { .. }
        | IntentState::Polling { .. } => true,
        IntentState::OnHold(_) | IntentState::Suspended => false,
    }
}

/// Applies changes to a base, one after another.
///
/// # Assumptions
/// The caller passes the intents that count, in the order of their numbers.
#[must_use]
pub fn fold<'a>(
    base: &Spec,
    patches: impl IntoIterator<Item = (IntentNumber, &'a SpecPatch)>,
) -> Projection {
    let mut spec = base.clone();
    let mut documents = Vec::new();
    for (number, patch) in patches {
        spec.merge(patch);
        documents.push((number, patch.to_document()));
    }
    let difference = diff(base, &spec).to_document();
    let touching = documents.iter().enumerate();
    let touching: Vec<TouchingIntent<'_>> = touching
        .map(|(position, (number, members))| TouchingIntent {
            intent: (position, *number),
            members,
        })
        .collect();
    let mut authors_of = Vec::new();
    collect_authors(
        &difference,
        &touching,
        None,
        &mut String::new(),
        &mut authors_of,
    );
    Projection { spec, authors_of }
}

/// Position of an intent in the order, and its number.
type OrderedIntent = (usize, IntentNumber);

/// The part of an intent's change that is below one path.
#[derive(Clone, Copy)]
struct TouchingIntent<'a> {
    intent: OrderedIntent,
    members: &'a Map<String, Value>,
}

/// Finds the last intent for each leaf of the difference. All trees are walked together, so the work is bounded by the
/// size of the difference times the number of intents.
///
/// `touching`: the intents with changes below the path `at`, in their order. `above`: the last intent with a leaf at the
/// path or above it.
fn collect_authors(
    difference: &Map<String, Value>,
    touching: &[TouchingIntent<'_>],
    above: Option<OrderedIntent>,
    at: &mut String,
    found: &mut Vec<(String, IntentNumber)>,
) {
    for (key, value) in difference {
        let mut leaf = above;
        let mut below = Vec::new();
        for touch in touching {
            match touch.members.get(key).map(members) {
                Some(Some(members)) => below.push(TouchingIntent { members, ..*touch }),
                Some(None) => leaf = leaf.max(Some(touch.intent)),
                None => {}
            }
        }
        let parent = at.len();
        push_segment(at, key);
        match members(value) {
            Some(inside) => collect_authors(inside, &below, leaf, at, found),
            None => {
                let last = leaf.max(below.last().map(|touch| touch.intent));
                found.extend(last.map(|(_, number)| (at.clone(), number)));
            }
        }
        at.truncate(parent);
    }
}
