//! Stands in for a runner that is not configured any more, while there may be runs of it.
//!
//! It answers nothing: what was begun is neither found nor given up until there is a runner again, or
//! patience is at its end (`course.rs`).

use async_trait::async_trait;
use sutler_runner::{Given, Line, Order, RunFault, RunName, Runner, Seen};
use tokio::sync::mpsc;

/// No runner; the sentence says what to do about it.
pub(super) struct Absent(pub(super) String);

impl Absent {
    fn answer<T>(&self) -> Result<T, RunFault> {
        Err(RunFault::Unavailable(self.0.clone()))
    }
}

#[async_trait]
impl Runner for Absent {
    async fn look(&self, _: RunName) -> Result<Seen, RunFault> {
        self.answer()
    }

    async fn start(&self, _: &Order) -> Result<(), RunFault> {
        self.answer()
    }

    async fn watch(&self, _: RunName, _: mpsc::Sender<Line>) -> Result<Seen, RunFault> {
        self.answer()
    }

    async fn given(&self, _: RunName) -> Result<Given, RunFault> {
        self.answer()
    }

    async fn stop(&self, _: RunName) -> Result<(), RunFault> {
        self.answer()
    }

    async fn remove(&self, _: RunName) -> Result<(), RunFault> {
        self.answer()
    }

    async fn list(&self) -> Result<Vec<RunName>, RunFault> {
        self.answer()
    }
}
