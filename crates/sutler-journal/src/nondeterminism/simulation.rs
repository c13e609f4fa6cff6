//! Sources of a simulated process, for the thread of the simulation (`tools/simulate`). Compiled for tests only;
//! `nondeterminism.rs` asks here first.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use uuid::Uuid;

/// Replaces the sources of processes in a simulation.
pub trait NondeterminismSource {
    /// The next id; grows with time.
    fn fresh_id(&self) -> Uuid;

    /// Time of day.
    fn wall_clock(&self) -> Duration;

    /// Delay before a woken task is polled; `None`: at once.
    fn poll_delay(&self) -> Option<Duration>;
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<dyn NondeterminismSource>>> = const { RefCell::new(None) };
}

/// Sets the sources of this thread; `None` restores the system's.
pub fn simulate(source: Option<Rc<dyn NondeterminismSource>>) {
    CURRENT.set(source);
}

fn current<T>(read: impl FnOnce(&dyn NondeterminismSource) -> T) -> Option<T> {
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
pub struct DelayedTask<F> {
    task: Pin<Box<F>>,
    delay: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> DelayedTask<F> {
    /// Delays the polls of this task.
    pub fn new(task: F) -> Self {
        Self {
            task: Box::pin(task),
            delay: None,
        }
    }
}

impl<F: Future> Future for DelayedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if self.delay.is_none() {
            let delay = current(|it| it.poll_delay()).flatten();
            self.delay = delay.map(until_passed);
        }
        if let Some(delay) = &mut self.delay {
            ready!(delay.as_mut().poll(cx));
            self.delay = None;
        }
        self.task.as_mut().poll(cx)
    }
}

/// Ends when this time has passed on the simulated clock.
fn until_passed(delay: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(delay))
}
