//! Compares the store with the responses to clients, and the external world with the store: nothing acknowledged
//! is lost, nothing is unfinished, nothing happened without a request, and nothing is left over.
//!
//! Pure. The order of events is checked in `linearizability.rs`; this only counts.

#[cfg(test)]
mod tests;

use super::executions::Executions;
use super::external_world::ExternalWorld;
use super::history::{BINDINGS, Call, ObservedReply, RecordedCall, Spec};
use super::operation_ends::EndedOperation;
use crate::platform::RequestMode;
use crate::violation::{CheckResult, Violation};
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::{Outcome, Stats};

/// Takeovers without progress after which an operation is correctly given up.
const TAKEOVERS_MAX: u32 = 5;

/// Final content of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinalState {
    /// Every operation except scheduled work.
    pub rows: Vec<EndedOperation>,
    /// Its counts.
    pub stats: Stats,
    /// The lifecycle state of every instance and binding, by lane.
    pub lifecycle: BTreeMap<String, String>,
}

/// The lane of an instance or of one of its bindings, as in events.
pub fn lane_of(instance: &str, binding: Option<usize>) -> String {
    match binding {
        Some(n) => format!("{instance}/{}", BINDINGS[n]),
        None => instance.to_owned(),
    }
}

impl EndedOperation {
    /// Whether it was given up after too many takeovers. Nobody knows how far its hook came.
    pub(super) fn is_given_up(&self) -> bool {
        self.outcome == Some(Outcome::Failed) && self.takeovers > TAKEOVERS_MAX
    }
}

/// Compares history, store, executions and world.
///
/// # Errors
/// The first contradiction.
pub fn check_leftovers(
    history: &[RecordedCall],
    left: &FinalState,
    executions: &Executions,
    world: &ExternalWorld,
) -> CheckResult<()> {
    let stats = &left.stats;
    if stats.accepted != stats.live + stats.terminal + stats.cleaned {
        let sentence = format!("the counts do not add up: {stats:?}");
        return Err(Violation::new(sentence));
    }
    acknowledged(history, left)?;
    ends(history, left, executions)?;
    explained(history, left)?;
    leftovers(left, world)
}

/// Every operation named by a 202 exists, in its lane, with the requested verb.
fn acknowledged(history: &[RecordedCall], left: &FinalState) -> CheckResult<()> {
    let rows: BTreeMap<&str, &EndedOperation> =
        left.rows.iter().map(|row| (row.id.as_str(), row)).collect();
    for recorded in history {
        let ObservedReply::Accepted(operation) = &recorded.observed else {
            continue;
        };
        let kept = rows.get(operation.as_str()).is_some_and(|row| {
            row.instance == recorded.instance
                && row.binding == recorded.call.binding()
                && Some(row.verb.as_str()) == recorded.call.verb()
        });
        if !kept {
            return Err(Violation::new(format!(
                "{}: {:?} was accepted as {operation}, which is lost",
                recorded.instance, recorded.call
            )));
        }
    }
    Ok(())
}

/// Every operation has ended, none failed without a reason, and those that clients saw end have ended. None was taken
/// over more often than its claims show: else one could be given up too early.
fn ends(history: &[RecordedCall], left: &FinalState, executions: &Executions) -> CheckResult<()> {
    let to_fail: BTreeSet<&str> = history
        .iter()
        .filter(|recorded| matches!(recorded.call, Call::Provision(Spec { fails: true, .. })))
        .map(|recorded| recorded.instance.as_str())
        .collect();
    for row in &left.rows {
        let name = format!(
            "{} {} of {}",
            row.verb,
            row.id,
            lane_of(&row.instance, row.binding)
        );
        let creates = ["provision", "bind"].contains(&row.verb.as_str());
        let asked_to_fail = row.verb == "provision" && to_fail.contains(row.instance.as_str());
        let right = match row.outcome {
            None => return Err(Violation::new(format!("{name} is stuck"))),
            Some(Outcome::Succeeded) => true,
            Some(Outcome::Failed) => asked_to_fail || row.is_given_up(),
            Some(Outcome::Cancelled) => creates,
        };
        if !right {
            let sentence = format!("{name} ended as {:?}, without a reason", row.outcome);
            return Err(Violation::new(sentence));
        }
        let known = executions.known_claims.get(&row.id);
        let most = known.cloned().unwrap_or_default().takeovers_max(row.fence);
        if u64::from(row.takeovers) > most {
            return Err(Violation::new(format!(
                "{name} was taken over {} times, and its {} claims show at most {most}",
                row.takeovers, row.fence
            )));
        }
    }
    let rows: BTreeSet<&str> = left.rows.iter().map(|row| row.id.as_str()).collect();
    let ended = executions.ended.iter();
    match ended.map(String::as_str).find(|id| !rows.contains(id)) {
        Some(lost) => Err(Violation::new(format!("{lost} ended, and is lost"))),
        None => Ok(()),
    }
}

/// There are no operations without a request.
fn explained(history: &[RecordedCall], left: &FinalState) -> CheckResult<()> {
    type Sort<'a> = (&'a str, Option<usize>, &'a str);
    let mut may: BTreeMap<Sort<'_>, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for recorded in history {
        let Some(verb) = recorded.call.verb() else {
            continue;
        };
        let of = (recorded.instance.as_str(), recorded.call.binding(), verb);
        let (some, named) = may.entry(of).or_default();
        match (&recorded.observed, recorded.mode) {
            (ObservedReply::Accepted(operation), _) => named.extend([operation.as_str()]),
            (ObservedReply::Unknown, _) | (ObservedReply::Done(_), RequestMode::Sync) => *some += 1,
            _ => {}
        }
    }
    let mut rows: BTreeMap<Sort<'_>, u64> = BTreeMap::new();
    for row in &left.rows {
        let of = (row.instance.as_str(), row.binding, row.verb.as_str());
        *rows.entry(of).or_default() += 1;
    }
    for ((instance, binding, verb), count) in &rows {
        let mut most = may
            .get(&(*instance, *binding, *verb))
            .map_or(0, |(some, named)| some + named.len() as u64);
        if *verb == "unbind" {
            // A delete of the instance deletes its bindings too.
            most += rows
                .get(&(*instance, None, "deprovision"))
                .copied()
                .unwrap_or(0);
        }
        if *count > most {
            let lane = lane_of(instance, *binding);
            let sentence = format!("{lane}: {count} operations {verb}, asked for at most {most}");
            return Err(Violation::new(sentence));
        }
    }
    Ok(())
}

/// Live resources exist in the world, except those that a delete removed before it was given up; and everything in the
/// world is live or was left by a failed creation.
fn leftovers(left: &FinalState, world: &ExternalWorld) -> CheckResult<()> {
    let word = |lane: &str| left.lifecycle.get(lane).map_or("absent", String::as_str);
    let live = left.lifecycle.iter().filter(|(_, word)| *word == "live");
    for (lane, _) in live {
        if !world.resources.contains(lane) {
            removed_by_given_up(lane, left, world)?;
        }
    }
    let orphan = |lane: &&String| !["live", "create_failed"].contains(&word(lane));
    match world.resources.iter().find(orphan) {
        Some(lane) => Err(Violation::new(format!(
            "{lane} was made and not removed, and the broker says that it is {}",
            word(lane)
        ))),
        None => Ok(()),
    }
}

/// The resource of a live lane was created, and only operations that were given up have removed it since: a delete that
/// failed leaves the resource live, and can be repeated.
fn removed_by_given_up(lane: &str, left: &FinalState, world: &ExternalWorld) -> CheckResult<()> {
    let Some(removers) = world.removed_by.get(lane) else {
        return Err(Violation::new(format!("{lane} is live and was never made")));
    };
    for remover in removers {
        let row = left.rows.iter().find(|row| row.id == *remover);
        if !row.is_some_and(EndedOperation::is_given_up) {
            let outcome = row.and_then(|row| row.outcome);
            return Err(Violation::new(format!(
                "{lane} is live, although {remover} removed it and ended as {outcome:?}"
            )));
        }
    }
    Ok(())
}
