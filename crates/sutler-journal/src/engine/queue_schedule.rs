//! When the engine looks at each of its queues, and which of them one claim asks. Pure: no I/O, no clock.
//!
//! A queue is due at the earliest of three times: `look_every` after the claim that asked it last; a planned time, at
//! which an operation of it becomes claimable; and a hint of the store, which names no queue. The one that is due for
//! longest is asked first, so queues that always have work starve no other. If all queues fit into one claim, each claim
//! asks all of them. Not here: how many operations of a queue may run (`queue_slots.rs`), and the claims (`claim_loop.rs`).

#[cfg(test)]
mod tests;

use crate::operation::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Most queues in one claim: a store visits each of them, and some stores write nothing else meanwhile.
const QUEUES_PER_CLAIM: usize = 64;

/// Least time after a claim that asked neither all queues nor as many as it can: the next one asks more at once. Also,
/// for each claim of a round over all queues, the least time between two rounds that only hints cause: every operation
/// that is accepted anywhere causes one.
const CLAIM_SPACING: Duration = Duration::from_millis(10);

/// Most planned looks at one queue; of more, the last are left to the regular looks.
const PLANS_MAX: usize = 64;

/// A planned look that is not the first is put off by at most this part of `look_every`, to share a claim with others.
const PLAN_DISTANCE: u32 = 8;

/// When a queue was asked, and when it is to be asked.
struct QueueTimes {
    /// Number of the claim that asked it last, or the last one before it was served.
    asked_in: u64,
    asked_at: Instant,
    /// Operations become claimable then. In order.
    plans: Vec<Instant>,
}

impl QueueTimes {
    /// Plans a look at this time if it is the first one, else at most `distance` later.
    fn plan(&mut self, at: Instant, distance: Duration) {
        let index = self.plans.partition_point(|plan| *plan <= at);
        let (before, after) = self.plans.split_at(index);
        let at = match (before.last(), after.first()) {
            (Some(before), _) if *before == at => return,
            (Some(_), Some(after)) if *after <= at + distance => return,
            (Some(before), _) => at.max(*before + distance),
            (None, _) => at,
        };
        self.plans.insert(index, at);
        self.plans.truncate(PLANS_MAX);
    }
}

/// Any queue that no later claim has asked may have work.
#[derive(Clone, Copy)]
struct Hint {
    /// Number of the last claim before it.
    after: u64,
    at: Instant,
}

/// A queue, and since when or from when on it is due. Sorted by the order in which queues are asked.
type DueQueue<'a> = (Instant, u64, &'a Queue);

/// Times of all queues that are served. A call takes logarithmic time for each queue that it changes or asks.
pub(super) struct QueueSchedule {
    look_every: Duration,
    /// Number of claims so far.
    claims: u64,
    times: BTreeMap<Queue, QueueTimes>,
    /// Time and number of the claim that asked a queue last.
    by_asked: BTreeSet<(Instant, u64, Queue)>,
    /// First planned time, and number of the claim that asked a queue last.
    by_planned: BTreeSet<(Instant, u64, Queue)>,
    /// No claim before this time.
    apart_until: Option<Instant>,
    /// The last hint. Its time is that of an earlier one that has not reached every queue yet.
    hint: Option<Hint>,
}

impl QueueSchedule {
    /// A schedule without queues.
    pub(super) fn new(look_every: Duration) -> Self {
        Self {
            look_every,
            claims: 0,
            times: BTreeMap::new(),
            by_asked: BTreeSet::new(),
            by_planned: BTreeSet::new(),
            apart_until: None,
            hint: None,
        }
    }

    /// Adds a queue, which is due now. A no-op if it is served already.
    pub(super) fn serve(&mut self, queue: &Queue, now: Instant) {
        if self.times.contains_key(queue) {
            return;
        }
        let times = QueueTimes {
            asked_in: self.claims,
            asked_at: now,
            plans: vec![now],
        };
        self.insert(queue.clone(), times);
    }

    /// Removes a queue: it is not asked any more.
    pub(super) fn leave(&mut self, queue: &Queue) {
        self.remove(queue);
    }

    /// Plans a look at a queue: at this time if there is none before, else a little later, and at most `look_every` later.
    /// Returns whether the next look at any queue is earlier now.
    pub(super) fn plan(&mut self, queue: &Queue, at: Instant) -> bool {
        let before = self.next_look();
        let distance = self.look_every / PLAN_DISTANCE;
        if let Some(mut times) = self.remove(queue) {
            times.plan(at, distance);
            self.insert(queue.clone(), times);
        }
        self.next_look() < before
    }

    /// Asks a queue now. Returns whether the next look at any queue is earlier now.
    pub(super) fn plan_now(&mut self, queue: &Queue, now: Instant) -> bool {
        let first = self.times.get(queue).map(|times| times.plans.first());
        match first {
            Some(first) if first.is_none_or(|first| *first > now) => self.plan(queue, now),
            // It is due already, or not served.
            Some(_) | None => false,
        }
    }

    /// Any queue may have work now. If a claim does not ask all queues, a round of claims that only hints cause begins no
    /// earlier than [`CLAIM_SPACING`] for each of its claims after the last round.
    pub(super) fn hint(&mut self, now: Instant) {
        let has_left = |hint: &Hint| {
            let oldest = self.by_asked.first();
            oldest.is_some_and(|(_, asked_in, _)| *asked_in <= hint.after)
        };
        let at = self.hint.filter(has_left).map_or(now, |hint| hint.at);
        let after = self.claims;
        self.hint = Some(Hint { after, at });
    }

    /// When the next claim is made; may be past. `None`: no queue is served.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let (due, ..) = self.first_due()?;
        Some(self.apart_until.map_or(due, |apart| apart.max(due)))
    }

    /// The queues of a claim that is made now, which asks at most `room` of them; empty if none is due. They count as
    /// asked. So do queues without a free slot, which are not returned: plan a look at them as soon as there is one.
    pub(super) fn next_claim(
        &mut self,
        now: Instant,
        room: usize,
        has_slot: impl Fn(&Queue) -> bool,
    ) -> Vec<Queue> {
        let mut chosen = Vec::new();
        if room == 0 || self.next_look().is_none_or(|at| at > now) {
            return chosen;
        }
        self.claims += 1;
        let mut passed_over = 0;
        while chosen.len() < room.min(QUEUES_PER_CLAIM) {
            let Some(queue) = self.next_queue(now) else {
                break;
            };
            self.was_asked(&queue, now);
            if has_slot(&queue) {
                chosen.push(queue);
            } else {
                passed_over += 1;
            }
        }
        let is_whole =
            chosen.len() == QUEUES_PER_CLAIM || chosen.len() + passed_over == self.times.len();
        self.apart_until = (!is_whole).then(|| now + CLAIM_SPACING);
        chosen
    }

    /// Asks one queue alone, if it is due: there is no room for others, which stay due.
    pub(super) fn claim_alone(&mut self, queue: &Queue, now: Instant) -> bool {
        let is_due = self.next_look_at(queue).is_some_and(|at| at <= now);
        if is_due {
            self.claims += 1;
            self.was_asked(queue, now);
        }
        is_due
    }

    /// When a queue is due; may be past. `None`: it is not served.
    pub(super) fn next_look_at(&self, queue: &Queue) -> Option<Instant> {
        let times = self.times.get(queue)?;
        let regular = self.due_without_plan(times.asked_at, times.asked_in);
        Some(
            times
                .plans
                .first()
                .map_or(regular, |plan| regular.min(*plan)),
        )
    }

    /// The next queue of this claim.
    fn next_queue(&self, now: Instant) -> Option<Queue> {
        let is_new = |(_, asked_in, _): &DueQueue<'_>| *asked_in < self.claims;
        let due = self.first_due().filter(|(at, ..)| *at <= now);
        let any = || {
            self.least_recent()
                .filter(|_| self.times.len() <= QUEUES_PER_CLAIM)
        };
        let next = due.filter(is_new).or_else(|| any().filter(is_new));
        next.map(|(.., queue)| queue.clone())
    }

    fn first_due(&self) -> Option<DueQueue<'_>> {
        let planned = self.by_planned.first();
        let planned = planned.map(|(at, asked_in, queue)| (*at, *asked_in, queue));
        [self.least_recent(), planned].into_iter().flatten().min()
    }

    /// The queue that was asked least recently: no other is due earlier without a plan.
    fn least_recent(&self) -> Option<DueQueue<'_>> {
        let (asked_at, asked_in, queue) = self.by_asked.first()?;
        let due = self.due_without_plan(*asked_at, *asked_in);
        Some((due, *asked_in, queue))
    }

    fn due_without_plan(&self, asked_at: Instant, asked_in: u64) -> Instant {
        let regular = asked_at + self.look_every;
        let hinted = self.hint.filter(|hint| asked_in <= hint.after);
        hinted.map_or(regular, |hint| {
            regular.min(hint.at.max(asked_at + self.hint_spacing()))
        })
    }

    /// Least time between two looks at a queue because of hints.
    fn hint_spacing(&self) -> Duration {
        let claims = self.times.len().div_ceil(QUEUES_PER_CLAIM);
        match u32::try_from(claims) {
            Ok(0 | 1) => Duration::ZERO,
            Ok(claims) => CLAIM_SPACING.saturating_mul(claims),
            Err(_) => self.look_every,
        }
    }

    fn was_asked(&mut self, queue: &Queue, now: Instant) {
        if let Some(mut times) = self.remove(queue) {
            times.plans.retain(|plan| *plan > now);
            times.asked_in = self.claims;
            times.asked_at = now;
            self.insert(queue.clone(), times);
        }
    }

    fn insert(&mut self, queue: Queue, times: QueueTimes) {
        let asked_in = times.asked_in;
        if let Some(plan) = times.plans.first() {
            self.by_planned.insert((*plan, asked_in, queue.clone()));
        }
        self.by_asked
            .insert((times.asked_at, asked_in, queue.clone()));
        self.times.insert(queue, times);
    }

    fn remove(&mut self, queue: &Queue) -> Option<QueueTimes> {
        let (queue, times) = self.times.remove_entry(queue)?;
        let mut key = (times.asked_at, times.asked_in, queue);
        self.by_asked.remove(&key);
        if let Some(plan) = times.plans.first() {
            key.0 = *plan;
            self.by_planned.remove(&key);
        }
        Some(times)
    }
}
