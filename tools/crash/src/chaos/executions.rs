//! Checks the executions of replicas: every step once per attempt, every claim with one holder, every operation
//! ended once, no write after a lost lease.
//!
//! Pure. The rules rely on the numbers of claims, which the store assigns in order, and not on the
//! positions of lines, which a replica may write long after the event. The resulting external state
//! is in `external_world.rs`; tests are in `executions/tests.rs`.

#[cfg(test)]
mod tests;

use crate::victim::{ReplicaBoot, ReplicaEvent};
use crate::violation::{CheckResult, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// A pause of a replica; times as in its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Process.
    pub replica_boot: ReplicaBoot,
    /// Start.
    pub from: u64,
    /// End.
    pub until: u64,
}

/// Pauses from the view of a server that keeps leases during its own outage, and restarts their
/// lifetime when it is back.
pub(super) fn after_outages(pauses: &[Pause], outages: &[(u64, u64)]) -> Vec<Pause> {
    let shortened = |pause: &Pause| {
        let during = outages
            .iter()
            .filter(|(from, back)| *from < pause.until && *back > pause.from);
        let from = during.map(|(_, back)| *back).max().unwrap_or(pause.from);
        let from = from.clamp(pause.from, pause.until);
        Pause { from, ..*pause }
    };
    pauses.iter().map(shortened).collect()
}

/// Counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// Steps that ran.
    pub ran: u64,
    /// Steps that ran again under a later claim, because their memo was not stored.
    pub repeated: u64,
    /// Claims beyond the first of an operation.
    pub claimed_again: u64,
    /// Operations that ended.
    pub ended: BTreeSet<String>,
    /// What is known of the claims of each operation.
    pub known_claims: BTreeMap<String, KnownClaims>,
}

/// The claims of one operation of which it is known that the next claim was no takeover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownClaims {
    /// The last claim under which a memo was stored; zero if there is none.
    pub kept: u64,
    /// Claims that their holders released.
    pub released: BTreeSet<u64>,
}

impl KnownClaims {
    /// How often the operation can have been taken over since its last memo, if this is its last claim. A replica may
    /// have died before it logged a memo or a release, so it may have been less often.
    pub fn takeovers_max(&self, last: u64) -> u64 {
        let since = self.kept.max(1)..last;
        since.filter(|claim| !self.released.contains(claim)).count() as u64
    }
}

/// All events of one operation.
#[derive(Debug, Default)]
struct OperationHistory {
    /// Holder of each claim, and the time at which it knew.
    claims: BTreeMap<u64, (ReplicaBoot, Option<u64>)>,
    /// Steps by claim, in the order in which they ran.
    ran: BTreeMap<u64, Vec<(u32, u32)>>,
    /// The claim under which each step's memo was stored.
    kept: BTreeMap<u32, u64>,
    /// The commit that ended it, and its claim.
    ended: Option<(String, u64)>,
    /// Claims that were released before its end.
    released: BTreeSet<u64>,
    /// Writes: claim, first attempt, process.
    wrote: Vec<(u64, u64, ReplicaBoot)>,
}

/// Checks the events. `lease`: maximum lifetime of a lease without renewal, in microseconds.
///
/// # Errors
/// The first violation, with its operation.
pub fn check_executions(
    events: &[ReplicaEvent],
    pauses: &[Pause],
    lease: u64,
) -> CheckResult<Executions> {
    let mut stories: BTreeMap<&str, OperationHistory> = BTreeMap::new();
    let mut counted = Executions::default();
    for event in events {
        let (operation, taken) = take(event, &mut stories);
        taken.map_err(|violation| violation.at(operation))?;
    }
    for (operation, story) in &stories {
        story.check(&mut counted).map_err(|it| it.at(operation))?;
        let late = story.late_write(pauses, lease);
        late.map_err(|it| it.at(operation))?;
        if story.ended.is_some() {
            counted.ended.insert((*operation).to_owned());
        }
        let known = KnownClaims {
            kept: story.kept.values().copied().max().unwrap_or_default(),
            released: story.released.clone(),
        };
        counted.known_claims.insert((*operation).to_owned(), known);
    }
    Ok(counted)
}

/// Adds an event to its operation.
fn take<'d>(
    event: &'d ReplicaEvent,
    stories: &mut BTreeMap<&'d str, OperationHistory>,
) -> (&'d str, CheckResult<()>) {
    let (ReplicaEvent::Claimed { operation, .. }
    | ReplicaEvent::Ran { operation, .. }
    | ReplicaEvent::Kept { operation, .. }
    | ReplicaEvent::Wrote { operation, .. }
    | ReplicaEvent::Released { operation, .. }
    | ReplicaEvent::Ended { operation, .. }) = event;
    let story = stories.entry(operation).or_default();
    let taken = match event {
        ReplicaEvent::Claimed { fence, at, by, .. } => story.hold(*fence, *by, Some(*at)),
        ReplicaEvent::Ran {
            step,
            attempt,
            fence,
            by,
            ..
        } => {
            story.ran.entry(*fence).or_default().push((*step, *attempt));
            story.hold(*fence, *by, None)
        }
        ReplicaEvent::Kept {
            step, fence, by, ..
        } => match story.kept.insert(*step, *fence) {
            None => story.hold(*fence, *by, None),
            Some(before) => Err(Violation::new(format!(
                "step {step} was kept twice, under the claims {before} and {fence}"
            ))),
        },
        ReplicaEvent::Wrote {
            fence, began, by, ..
        } => {
            story.wrote.push((*fence, *began, *by));
            story.hold(*fence, *by, None)
        }
        ReplicaEvent::Released { fence, by, .. } => {
            story.released.insert(*fence);
            story.hold(*fence, *by, None)
        }
        ReplicaEvent::Ended {
            commit, fence, by, ..
        } => match &story.ended {
            Some((before, _)) if before != commit => Err(Violation::new("it ended twice")),
            _ => {
                story.ended = Some((commit.clone(), *fence));
                story.hold(*fence, *by, None)
            }
        },
    };
    (operation, taken)
}

impl OperationHistory {
    /// Checks that a claim has one holder.
    fn hold(&mut self, fence: u64, by: ReplicaBoot, at: Option<u64>) -> CheckResult<()> {
        let held = self.claims.entry(fence).or_insert((by, at));
        if held.0 != by {
            let sentence = format!("claim {fence} was held by {:?} and by {by:?}", held.0);
            return Err(Violation::new(sentence));
        }
        held.1 = held.1.or(at);
        Ok(())
    }

    fn check(&self, counted: &mut Executions) -> CheckResult<()> {
        let mut latest = BTreeMap::new();
        for (fence, steps) in &self.ran {
            for pair in steps.windows(2) {
                if pair[1].0 <= pair[0].0 {
                    let sentence = format!("step {} ran again under claim {fence}", pair[1].0);
                    return Err(Violation::new(sentence));
                }
            }
            for (step, attempt) in steps {
                counted.ran += 1;
                if latest.insert((*step, *attempt), *fence).is_some() {
                    counted.repeated += 1;
                }
                if let Some(kept) = self.kept.get(step).filter(|kept| *kept < fence) {
                    return Err(Violation::new(format!(
                        "step {step} ran under claim {fence} although its memo was kept under {kept}"
                    )));
                }
            }
        }
        let first_and_last = self.claims.keys().next().zip(self.claims.keys().last());
        if let Some((first, last)) = first_and_last {
            counted.claimed_again += last - first;
        }
        let Some((_, end)) = &self.ended else {
            return Ok(());
        };
        if let Some(later) = self.claims.keys().find(|fence| *fence > end) {
            let sentence = format!("it ended under claim {end}, and claim {later} came after it");
            return Err(Violation::new(sentence));
        }
        Ok(())
    }

    /// A process that was paused for longer than a lease has lost every earlier claim, and must not write
    /// under one: only a write that had already begun may have been in time.
    fn late_write(&self, pauses: &[Pause], lease: u64) -> CheckResult<()> {
        for (fence, began, by) in &self.wrote {
            let since = self.claims.get(fence).and_then(|(_, at)| *at);
            let late = pauses.iter().find(|pause| {
                pause.replica_boot == *by
                    && pause.until.saturating_sub(pause.from) > lease
                    && since.is_some_and(|at| at < pause.from)
                    && *began > pause.until
            });
            if let Some(pause) = late {
                return Err(Violation::new(format!(
                    "{by:?} stood still for {} ms and then wrote under claim {fence}, which it had \
                     lost",
                    (pause.until - pause.from) / 1000
                )));
            }
        }
        Ok(())
    }
}
