//! How many operations run in each queue and in all queues, and the limits of both. Pure: no I/O, no locks.
//!
//! A limit stops only what is not claimed yet: an operation that is claimed takes a slot even if none is free, because
//! holding a claim without running it is worse. Not here: when a queue is asked (`queue_schedule.rs`).

#[cfg(test)]
mod tests;

use crate::operation::Queue;
use std::collections::BTreeMap;

/// Which limits were reached before a slot was given back, and are not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreedSlots {
    /// That of its queue: operations of the queue may have been left.
    pub(super) of_queue: bool,
    /// That of all queues: operations of any queue may have been left.
    pub(super) of_all: bool,
}

/// Slots of all queues.
pub(super) struct QueueSlots {
    limits: BTreeMap<Queue, usize>,
    /// Slots in use, also of queues that are served no more. No entry is zero.
    used: BTreeMap<Queue, usize>,
    total_limit: usize,
    total_used: usize,
    /// Its slots are part of all slots, and no other queue takes them.
    reserved: Option<Queue>,
}

impl QueueSlots {
    /// No queues. The slots of `reserved` are kept for that queue alone.
    pub(super) fn new(total_limit: usize, reserved: Option<Queue>) -> Self {
        Self {
            limits: BTreeMap::new(),
            used: BTreeMap::new(),
            total_limit,
            total_used: 0,
            reserved,
        }
    }

    /// Changes the limit of a queue, or adds it.
    pub(super) fn set_limit(&mut self, queue: &Queue, limit: usize) {
        self.limits.insert(queue.clone(), limit);
    }

    /// Removes a queue. Its slots stay in use until they are given back.
    pub(super) fn forget(&mut self, queue: &Queue) {
        self.limits.remove(queue);
    }

    /// Free slots of a queue, whatever runs in others.
    pub(super) fn free(&self, queue: &Queue) -> usize {
        let limit = self.limits.get(queue).copied().unwrap_or(0);
        let used = self.used.get(queue).copied().unwrap_or(0);
        limit.saturating_sub(used)
    }

    /// Operations that may start in all queues together, without those of the reserved queue.
    pub(super) fn room(&self) -> usize {
        let kept = self.reserved.as_ref().map_or(0, |it| self.free(it));
        self.total_limit.saturating_sub(self.total_used + kept)
    }

    /// The reserved queue, if it has a free slot.
    pub(super) fn reserved_with_slot(&self) -> Option<&Queue> {
        self.reserved.as_ref().filter(|it| self.free(it) > 0)
    }

    fn is_reserved(&self, queue: &Queue) -> bool {
        self.reserved.as_ref() == Some(queue)
    }

    /// Takes a slot if one is free.
    pub(super) fn try_take(&mut self, queue: &Queue) -> bool {
        let has_room = self.is_reserved(queue) || self.room() > 0;
        let is_free = has_room && self.free(queue) > 0;
        if is_free {
            self.take(queue);
        }
        is_free
    }

    /// Takes a slot, also over the limits.
    pub(super) fn take(&mut self, queue: &Queue) {
        *self.used.entry(queue.clone()).or_default() += 1;
        self.total_used += 1;
    }

    /// Gives a slot back that was taken.
    pub(super) fn give_back(&mut self, queue: &Queue) -> FreedSlots {
        let before = (self.free(queue), self.room());
        if let Some(used) = self.used.get_mut(queue) {
            *used -= 1;
            if *used == 0 {
                self.used.remove(queue);
            }
            self.total_used -= 1;
        }
        FreedSlots {
            of_queue: before.0 == 0 && self.free(queue) > 0,
            of_all: before.1 == 0 && self.room() > 0,
        }
    }

    /// How many operations to claim from each of these queues: its free slots, or an equal share of the room if there is
    /// less room than free slots. There must be room for one operation of each. The reserved queue needs no room.
    pub(super) fn shares(&self, queues: Vec<Queue>) -> Vec<(Queue, usize)> {
        let with_free = |queue: Queue| {
            let free = self.free(&queue);
            (queue, free)
        };
        let mut shares: Vec<(Queue, usize)> = queues.into_iter().map(with_free).collect();
        let sharing = shares.iter_mut().filter(|(it, _)| !self.is_reserved(it));
        let mut fewest_first: Vec<&mut usize> = sharing.map(|(_, n)| n).collect();
        fewest_first.sort_unstable();
        let (mut room, mut left) = (self.room(), fewest_first.len());
        for share in fewest_first {
            *share = (*share).min(room / left);
            room -= *share;
            left -= 1;
        }
        shares
    }
}
