//! The part of the engine that brokers need: how many operations of a queue run here, and when one may be claimed.

use std::time::Duration;
use sutler_journal::{Engine, Queue};

/// Chooses which queues this process serves.
pub trait QueueControl: Send + Sync + 'static {
    /// Serves a queue from now on, or changes how many of its operations run at once. 0: nothing of it is claimed;
    /// what runs goes on.
    fn set_queue(&self, queue: &Queue, limit: usize);

    /// Does not serve a queue any more.
    fn forget_queue(&self, queue: &Queue);

    /// Looks at a queue now: this process committed an operation of it that may be claimed. A hint of the store names no
    /// queue, so all queues are asked in turn before that one.
    fn look_now(&self, queue: &Queue);
}

impl QueueControl for Engine {
    fn set_queue(&self, queue: &Queue, limit: usize) {
        Engine::set_queue(self, queue, limit);
    }

    fn forget_queue(&self, queue: &Queue) {
        Engine::forget_queue(self, queue);
    }

    fn look_now(&self, queue: &Queue) {
        self.look_within(queue, Duration::ZERO);
    }
}
