//! What a process takes from its surroundings besides its store: fresh ids, the time of day, and the
//! moment at which a task is polled.
//!
//! In production these are the system's. A simulation (feature `testing`) replaces them on its thread
//! with [`simulate`], so that a seed decides them all. The clock of leases is not here, see `clock.rs`;
//! waits use tokio's clock, which a simulation pauses.

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

#[cfg(any(test, feature = "testing"))]
pub use simulated::{Surroundings, simulate};

/// A fresh id that sorts by time.
pub(crate) fn fresh_id() -> Uuid {
    #[cfg(any(test, feature = "testing"))]
    if let Some(id) = simulated::fresh_id() {
        return id;
    }
    Uuid::now_v7()
}

/// Time of day, since 1970 in UTC. Processes disagree about it and it can jump: for logs, ages in
/// days, and schedules of operators.
pub fn wall_clock() -> Duration {
    #[cfg(any(test, feature = "testing"))]
    if let Some(now) = simulated::wall_clock() {
        return now;
    }
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Marks a task whose polls a simulation may delay, as a busy machine does.
pub(crate) fn scheduled<F: Future>(task: F) -> impl Future<Output = F::Output> {
    #[cfg(any(test, feature = "testing"))]
    let task = simulated::Scheduled::new(task);
    task
}

#[cfg(any(test, feature = "testing"))]
mod simulated {
    //! Surroundings of a simulated process, for the thread of the simulation.

    use std::cell::RefCell;
    use std::future::Future;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;
    use tokio::time::Sleep;
    use uuid::Uuid;

    /// Replaces the surroundings of processes in a simulation.
    pub trait Surroundings {
        /// The next id; grows with time.
        fn fresh_id(&self) -> Uuid;

        /// Time of day.
        fn wall_clock(&self) -> Duration;

        /// Delay before a woken task is polled; `None`: at once.
        fn poll_delay(&self) -> Option<Duration>;
    }

    thread_local! {
        static CURRENT: RefCell<Option<Rc<dyn Surroundings>>> = const { RefCell::new(None) };
    }

    /// Sets the surroundings of this thread; `None` restores the system's.
    pub fn simulate(surroundings: Option<Rc<dyn Surroundings>>) {
        CURRENT.set(surroundings);
    }

    fn current<T>(read: impl FnOnce(&dyn Surroundings) -> T) -> Option<T> {
        let current = CURRENT.with_borrow(Clone::clone);
        current.as_deref().map(read)
    }

    pub(super) fn fresh_id() -> Option<Uuid> {
        current(|it| it.fresh_id())
    }

    pub(super) fn wall_clock() -> Option<Duration> {
        current(|it| it.wall_clock())
    }

    /// A task whose polls are delayed at random.
    pub(super) struct Scheduled<F> {
        task: Pin<Box<F>>,
        delay: Option<Pin<Box<Sleep>>>,
    }

    impl<F: Future> Scheduled<F> {
        pub(super) fn new(task: F) -> Self {
            Self {
                task: Box::pin(task),
                delay: None,
            }
        }
    }

    impl<F: Future> Future for Scheduled<F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            if self.delay.is_none() {
                let delay = current(|it| it.poll_delay()).flatten();
                self.delay = delay.map(|delay| Box::pin(tokio::time::sleep(delay)));
            }
            if let Some(delay) = &mut self.delay {
                ready!(delay.as_mut().poll(cx));
                self.delay = None;
            }
            self.task.as_mut().poll(cx)
        }
    }
}
