//! The part of the engine that brokers need: how many operations of a queue run here.

use sutler_journal::{Engine, Queue};

/// Chooses which queues this process serves.
pub trait QueueControl: Send + Sync + 'static {
    /// Serves a queue from now on, or changes how many of its operations run at once. 0: nothing of it is claimed;
    /// what runs goes on.
    fn set_queue(&self, queue: &Queue, limit: usize);

    /// Does not serve a queue any more.
    fn forget_queue(&self, queue: &Queue);
}

impl QueueControl for Engine {
    fn set_queue(&self, queue: &Queue, limit: usize) {
        Engine::set_queue(self, queue, limit);
    }

    fn forget_queue(&self, queue: &Queue) {
        Engine::forget_queue(self, queue);
    }
}
