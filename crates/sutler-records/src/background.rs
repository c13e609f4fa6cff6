//! One background thread for work that uses the processor for long, so that requests do not wait.
//!
//! The thread runs one job at a time, and the periodic tasks (`periodic.rs`): all other processors are left
//! to requests, and only one thread allocates memory for such work. The thread has a lower priority. Not for
//! work that waits for a disk or a network.

use std::sync::LazyLock;
use std::thread;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tracing::Instrument as _;

/// Name of the thread.
const NAME: &str = "sutler-background";
/// Niceness of the thread: a tenth of the share of other threads on the same processor.
const NICE: i32 = 10;
/// Most threads that its runtime uses for blocking calls.
const WAITING_MAX: usize = 4;

/// Runtime of the thread. `None` if no thread could be started: callers then do the work themselves.
static BACKGROUND: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITING_MAX)
        .build()
        .ok()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name(NAME.to_owned());
    let work = move || {
        // Without the permission it keeps the normal priority.
        let _ = rustix::process::setpriority_process(None, NICE);
        runtime.block_on(std::future::pending::<()>());
    };
    thread.spawn(work).ok().map(|_| handle)
});

/// The runtime of the background thread. `None` inside another single-threaded runtime: that is a test,
/// whose paused clock must control all work.
fn background() -> Option<&'static Handle> {
    let alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let is_background = || thread::current().name() == Some(NAME);
    match alone && !is_background() {
        true => None,
        false => BACKGROUND.as_ref(),
    }
}

/// Runs a function on the background thread, and waits for it.
///
/// # Errors
/// The process ends, or the work panics.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match background() {
        Some(handle) => handle.spawn(async { work() }).await,
        None => spawn_blocking(work).await,
    }
}

/// Runs a future on the background thread, and waits for it. It is aborted when the caller is dropped.
///
/// # Errors
/// The process ends, or the future panics.
pub async fn run_in_background<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    match background() {
        Some(handle) => {
            let mut task = AbortOnDrop(handle.spawn(future.in_current_span()));
            (&mut task.0).await
        }
        None => Ok(future.await),
    }
}

/// A task that is aborted when its handle is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::{run_blocking, run_in_background};
    use std::future::pending;
    use std::sync::Arc;
    use std::thread;
    use tokio::sync::oneshot;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_work_runs_on_one_thread() {
        let first = run_blocking(|| thread::current().id()).await;
        let second = run_in_background(async { thread::current().id() }).await;
        let first = first.expect("it is done");
        assert_eq!(first, second.expect("it is done"));
        assert_ne!(first, thread::current().id());
        let within = run_in_background(async { run_blocking(|| thread::current().id()).await });
        let within = within.await.expect("it is done");
        assert_eq!(within.expect("it is done"), first);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_in_one_job_does_not_affect_the_next() {
        let failed = run_blocking(|| assert_eq!(1, 2, "a panic that a test wants")).await;
        assert!(failed.expect_err("it panics").is_panic());
        assert_eq!(run_blocking(|| 7).await.expect("it is done"), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_is_aborted_when_its_caller_is_dropped() {
        let held = Arc::new(());
        let (begun, begins) = oneshot::channel();
        let (ends, over) = oneshot::channel::<()>();
        let own = held.clone();
        let task = tokio::spawn(run_in_background(async move {
            let _both = (own, ends);
            let _ = begun.send(());
            pending::<()>().await;
        }));
        begins.await.expect("it begins");
        task.abort();
        assert!(over.await.is_err(), "it is let go");
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
