//! Semaphore with a bounded queue: a fixed number of slots, a short queue for them, refusal beyond that.
//!
//! Taking a free slot is one atomic operation; the queue is used only when all slots are taken.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Hands out a fixed number of slots.
pub(super) struct BoundedQueue {
    taken: AtomicUsize,
    slots_max: usize,
    queue: AtomicUsize,
    queue_max: usize,
    queue_within: Duration,
    left: Notify,
}

/// All slots are taken, and none came free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// A slot, released when dropped.
pub struct Slot<'a>(&'a BoundedQueue);

/// A place in the queue, released when dropped.
struct QueueTicket<'a>(&'a BoundedQueue);

impl BoundedQueue {
    pub(super) fn new(slots_max: usize, queue_max: usize, queue_within: Duration) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            slots_max,
            queue: AtomicUsize::new(0),
            queue_max,
            queue_within,
            left: Notify::new(),
        }
    }

    /// Takes a slot, waiting in the queue if all are taken.
    pub(super) async fn acquire(&self) -> Result<Slot<'_>, QueueFull> {
        if let Some(slot) = self.try_acquire() {
            return Ok(slot);
        }
        let _queued = self.try_queue().ok_or(QueueFull)?;
        let deadline = Instant::now() + self.queue_within;
        loop {
            let left = self.left.notified();
            // A slot released from here on notifies this waiter, so no waiter misses a free slot.
            if let Some(slot) = self.try_acquire() {
                return Ok(slot);
            }
            timeout_at(deadline, left).await.map_err(|_| QueueFull)?;
        }
    }

    fn try_acquire(&self) -> Option<Slot<'_>> {
        take_one(&self.taken, self.slots_max).then(|| Slot(self))
    }

    fn try_queue(&self) -> Option<QueueTicket<'_>> {
        take_one(&self.queue, self.queue_max).then(|| QueueTicket(self))
    }
}

/// Increments a counter unless it has reached `max`.
pub(super) fn take_one(count: &AtomicUsize, max: usize) -> bool {
    if count.fetch_add(1, Ordering::SeqCst) < max {
        return true;
    }
    count.fetch_sub(1, Ordering::SeqCst);
    false
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        if self.0.queue.load(Ordering::SeqCst) > 0 {
            self.0.left.notify_one();
        }
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        self.0.queue.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedQueue;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_and_waiting_in_it_is_bounded() {
        let queue = Arc::new(BoundedQueue::new(1, 1, Duration::from_secs(1)));
        let slot = queue.acquire().await.expect("a place");
        let queued = tokio::spawn({
            let queue = queue.clone();
            async move { queue.acquire().await.is_ok() }
        });
        while queue.try_queue().is_some() {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            assert!(queue.acquire().await.is_err());
        }
        assert!(!queued.await.expect("no panic"));
        drop(slot);
        assert!(queue.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn every_queued_request_gets_a_slot_when_slots_come_free() {
        let queue = Arc::new(BoundedQueue::new(2, 1_000, Duration::from_secs(60)));
        let visits = (0..500).map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let slot = queue.acquire().await;
                tokio::task::yield_now().await;
                slot.is_ok()
            })
        });
        for visit in visits.collect::<Vec<_>>() {
            assert!(visit.await.expect("no panic"));
        }
        assert!(queue.try_acquire().is_some());
    }
}
