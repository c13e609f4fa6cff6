//! A gate: so many at a time, a short queue in front, and no place beyond that.
//!
//! The way through an open gate is one atomic number; only a full one has a queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Lets so many in at a time.
pub(super) struct Gate {
    inside: AtomicUsize,
    inside_max: usize,
    queue: AtomicUsize,
    queue_max: usize,
    queue_within: Duration,
    left: Notify,
}

/// No place, and none came free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A place inside; dropping it gives it back.
pub struct Inside<'a>(&'a Gate);

/// A place in the queue.
struct Queued<'a>(&'a Gate);

impl Gate {
    pub(super) fn new(inside_max: usize, queue_max: usize, queue_within: Duration) -> Self {
        Self {
            inside: AtomicUsize::new(0),
            inside_max,
            queue: AtomicUsize::new(0),
            queue_max,
            queue_within,
            left: Notify::new(),
        }
    }

    /// Goes in, waiting a little for a place if need be.
    pub(super) async fn enter(&self) -> Result<Inside<'_>, Full> {
        if let Some(inside) = self.try_enter() {
            return Ok(inside);
        }
        let _queued = self.try_queue().ok_or(Full)?;
        let deadline = Instant::now() + self.queue_within;
        loop {
            let left = self.left.notified();
            // Whoever leaves from here on sees the queue, so nobody waits beside a free place.
            if let Some(inside) = self.try_enter() {
                return Ok(inside);
            }
            timeout_at(deadline, left).await.map_err(|_| Full)?;
        }
    }

    fn try_enter(&self) -> Option<Inside<'_>> {
        take_one(&self.inside, self.inside_max).then(|| Inside(self))
    }

    fn try_queue(&self) -> Option<Queued<'_>> {
        take_one(&self.queue, self.queue_max).then(|| Queued(self))
    }
}

/// Counts one more, unless there are as many as there may be.
pub(super) fn take_one(count: &AtomicUsize, max: usize) -> bool {
    if count.fetch_add(1, Ordering::SeqCst) < max {
        return true;
    }
    count.fetch_sub(1, Ordering::SeqCst);
    false
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        if self.0.queue.load(Ordering::SeqCst) > 0 {
            self.0.left.notify_one();
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queue.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn beyond_the_queue_nobody_waits_and_in_the_queue_nobody_waits_long() {
        let gate = Arc::new(Gate::new(1, 1, Duration::from_secs(1)));
        let inside = gate.enter().await.expect("a place");
        let queued = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter().await.is_ok() }
        });
        while gate.try_queue().is_some() {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            assert!(gate.enter().await.is_err());
        }
        assert!(!queued.await.expect("no panic"));
        drop(inside);
        assert!(gate.enter().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_in_the_queue_gets_in_when_places_come_free() {
        let gate = Arc::new(Gate::new(2, 1_000, Duration::from_secs(60)));
        let visits = (0..500).map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move {
                let inside = gate.enter().await;
                tokio::task::yield_now().await;
                inside.is_ok()
            })
        });
        for visit in visits.collect::<Vec<_>>() {
            assert!(visit.await.expect("no panic"));
        }
        assert!(gate.try_enter().is_some());
    }
}
