//! The queues that an engine serves: their slots and their schedule under one lock, and the signal that wakes the loop
//! that claims.
//!
//! Queues and limits change while the engine runs. The decisions are in `queue_slots.rs` and `queue_schedule.rs`, the
//! loop is in `claim_loop.rs`.

use super::EngineSettings;
use super::queue_schedule::QueueSchedule;
use super::queue_slots::QueueSlots;
use crate::operation::{Operation, Queue};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Permission to start one operation of a queue in this process now.
pub struct Permit {
    queues: Arc<ServedQueues>,
    queue: Queue,
    is_held: bool,
}

impl Permit {
    /// Gives the slot back without waking the loop. Returns whether to wake it: an operation may have been left
    /// unclaimed for lack of the slot.
    pub(super) fn give_back(mut self) -> bool {
        self.is_held = false;
        self.queues.give_back(&self.queue)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_held && self.queues.give_back(&self.queue) {
            self.queues.wake();
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Permit");
        shown.field("queue", &self.queue).finish_non_exhaustive()
    }
}

struct QueueState {
    schedule: QueueSchedule,
    slots: QueueSlots,
}

/// Queues of one engine.
pub(super) struct ServedQueues {
    state: Mutex<QueueState>,
    look_every: Duration,
    /// A queue may be due earlier than the loop knows.
    look: Notify,
}

impl ServedQueues {
    pub(super) fn new(settings: &EngineSettings) -> Arc<Self> {
        let state = QueueState {
            schedule: QueueSchedule::new(settings.look_every),
            slots: QueueSlots::new(settings.total_limit, settings.reserved.clone()),
        };
        let queues = Self {
            state: Mutex::new(state),
            look_every: settings.look_every,
            look: Notify::new(),
        };
        for it in &settings.queues {
            queues.set(&it.queue, it.limit);
        }
        Arc::new(queues)
    }

    /// Serves a queue, or changes its limit. With a limit of zero nothing of it is claimed.
    pub(super) fn set(&self, queue: &Queue, limit: usize) {
        let now = Instant::now();
        let mut state = self.state();
        let free = state.slots.free(queue);
        state.slots.set_limit(queue, limit);
        let has_freed = free == 0 && state.slots.free(queue) > 0;
        if limit == 0 {
            state.schedule.leave(queue);
        } else {
            state.schedule.serve(queue, now);
        }
        if has_freed {
            state.schedule.plan_now(queue, now);
            self.wake();
        }
    }

    /// Serves a queue no more. Its runs go on.
    pub(super) fn forget(&self, queue: &Queue) {
        let mut state = self.state();
        state.slots.forget(queue);
        state.schedule.leave(queue);
    }

    /// A slot, if one is free.
    pub(super) fn permit(self: &Arc<Self>, queue: &Queue) -> Option<Permit> {
        self.state().slots.try_take(queue).then(|| Permit {
            queues: Arc::clone(self),
            queue: queue.clone(),
            is_held: true,
        })
    }

    /// The slot of an operation that is claimed, also over the limits.
    pub(super) fn permit_of_claimed(self: &Arc<Self>, queue: &Queue) -> Permit {
        self.state().slots.take(queue);
        Permit {
            queues: Arc::clone(self),
            queue: queue.clone(),
            is_held: true,
        }
    }

    /// Looks at a queue after this time at the latest.
    pub(super) fn look_within(&self, queue: &Queue, wait: Duration) {
        let now = Instant::now();
        let is_earlier = match now.checked_add(wait) {
            Some(at) if at > now => self.state().schedule.plan(queue, at),
            Some(_) => self.state().schedule.plan_now(queue, now),
            // No clock reaches this time.
            None => false,
        };
        if is_earlier {
            self.wake();
        }
    }

    /// Any queue may have work.
    pub(super) fn hint(&self) {
        self.state().schedule.hint(Instant::now());
    }

    /// Looks at all queues now.
    pub(super) fn look_at_all(&self) {
        self.hint();
        self.wake();
    }

    /// What to claim now: queues that are due, and how many operations of each. Empty if nothing may start, or no queue
    /// is due.
    pub(super) fn next_claim(&self, now: Instant) -> Vec<(Queue, usize)> {
        let mut state = self.state();
        let QueueState { schedule, slots } = &mut *state;
        if slots.room() == 0 {
            let reserved = slots.reserved_with_slot();
            let due = reserved.filter(|queue| schedule.claim_alone(queue, now));
            return slots.shares(due.cloned().into_iter().collect());
        }
        let has_slot = |queue: &Queue| slots.free(queue) > 0;
        let queues = schedule.next_claim(now, slots.room(), has_slot);
        slots.shares(queues)
    }

    /// A claim was answered, and what it claimed has its slots: a queue that gave all that it was asked for may have more.
    pub(super) fn claimed(&self, asked: &[(Queue, usize)], claimed: &BTreeMap<Queue, usize>) {
        let now = Instant::now();
        let mut state = self.state();
        for (queue, number) in asked {
            let is_full = claimed.get(queue).is_some_and(|claimed| claimed >= number);
            if is_full && state.slots.free(queue) > 0 {
                state.schedule.plan_now(queue, now);
            }
        }
    }

    /// How long the loop waits for its next claim, if nothing wakes it.
    pub(super) fn until_next_claim(&self, now: Instant) -> Duration {
        let state = self.state();
        let QueueState { schedule, slots } = &*state;
        let next = match slots.room() {
            // A slot that is given back wakes the loop.
            0 => slots
                .reserved_with_slot()
                .and_then(|it| schedule.next_look_at(it)),
            _ => schedule.next_look(),
        };
        next.map_or(self.look_every, |next| {
            next.saturating_duration_since(now).min(self.look_every)
        })
    }

    /// Wakes the loop.
    pub(super) fn wake(&self) {
        self.look.notify_one();
    }

    /// Waits until the loop is woken.
    pub(super) async fn woken(&self) {
        self.look.notified().await;
    }

    fn give_back(&self, queue: &Queue) -> bool {
        let mut state = self.state();
        let freed = state.slots.give_back(queue);
        if freed.of_queue {
            state.schedule.plan_now(queue, Instant::now());
        }
        freed.of_queue || freed.of_all
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of these operations are of each queue.
pub(super) fn count_by_queue(operations: &[Operation]) -> BTreeMap<Queue, usize> {
    let mut counts = BTreeMap::new();
    for operation in operations {
        *counts.entry(operation.row.queue.clone()).or_default() += 1;
    }
    counts
}
