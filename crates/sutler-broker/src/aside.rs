//! Work that takes a processor for a while, done where nobody's request waits for it.
//!
//! One thread does all of it, one piece after the other, and chores (`chore.rs`), too: requests have all other
//! processors, and what is allocated for a while is allocated in one place over and over again. It steps back
//! where there are too few processors for everybody. Not for what waits for a disk or for somebody.

use std::sync::LazyLock;
use std::thread;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tracing::Instrument as _;

/// What the thread is called.
const NAME: &str = "sutler-aside";
/// How far it steps back: a tenth of what others have, where all want the same processor.
const NICE: i32 = 10;
/// Most threads that wait for disks and for names on its behalf.
const WAITING_MAX: usize = 4;

/// The thread. There is none if the system has none left: then work is done where it comes up.
static CLERK: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITING_MAX)
        .build()
        .ok()?;
    let handle = runtime.handle().clone();
    let clerk = thread::Builder::new().name(NAME.to_owned());
    let work = move || {
        // Where that is not allowed it is a thread like others.
        let _ = rustix::process::setpriority_process(None, NICE);
        runtime.block_on(std::future::pending::<()>());
    };
    clerk.spawn(work).ok().map(|_| handle)
});

/// The thread, for itself and for whoever has others. Any other runtime of one thread is a test, whose clock may
/// stand still: it must know of everything that is done.
fn clerk() -> Option<&'static Handle> {
    let alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let itself = || thread::current().name() == Some(NAME);
    match alone && !itself() {
        true => None,
        false => CLERK.as_ref(),
    }
}

/// Does some work aside, and waits for it.
///
/// # Errors
/// The process ends, or the work panics.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match clerk() {
        Some(clerk) => clerk.spawn(async { work() }).await,
        None => spawn_blocking(work).await,
    }
}

/// Lives a future aside. It ends when nobody waits for it any more.
///
/// # Errors
/// The process ends, or the future panics.
pub async fn live_aside<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    match clerk() {
        Some(clerk) => {
            let mut task = Awaited(clerk.spawn(future.in_current_span()));
            (&mut task.0).await
        }
        None => Ok(future.await),
    }
}

/// A task that ends when nobody waits for it any more.
struct Awaited<T>(JoinHandle<T>);

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::{aside, live_aside};
    use std::future::pending;
    use std::sync::Arc;
    use std::thread;
    use tokio::sync::oneshot;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everything_is_done_by_one_thread() {
        let first = aside(|| thread::current().id()).await;
        let second = live_aside(async { thread::current().id() }).await;
        let first = first.expect("it is done");
        assert_eq!(first, second.expect("it is done"));
        assert_ne!(first, thread::current().id());
        let within = live_aside(async { aside(|| thread::current().id()).await });
        let within = within.await.expect("it is done");
        assert_eq!(within.expect("it is done"), first);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_panics_harms_no_other() {
        let failed = aside(|| assert_eq!(1, 2, "a panic that a test wants")).await;
        assert!(failed.expect_err("it panics").is_panic());
        assert_eq!(aside(|| 7).await.expect("it is done"), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_nobody_waits_for_any_more_ends() {
        let held = Arc::new(());
        let (begun, begins) = oneshot::channel();
        let (ends, over) = oneshot::channel::<()>();
        let own = held.clone();
        let lives = tokio::spawn(live_aside(async move {
            let _both = (own, ends);
            let _ = begun.send(());
            pending::<()>().await;
        }));
        begins.await.expect("it begins");
        lives.abort();
        assert!(over.await.is_err(), "it is let go");
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
