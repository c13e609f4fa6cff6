//! Look-ups of host names by the system's resolver, bounded in number.
//!
//! Knows no rules about addresses; `egress.rs` has them.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Most look-ups of this process at the same time. Each occupies a thread until the system's resolver gives up, however
/// long its caller waits.
const LOOKUPS_MAX: usize = 32;

/// One permit for each look-up of the process.
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// The addresses of a host, with port 0. Waits if there are too many look-ups.
pub(super) async fn look_up(
    host: &str,
) -> io::Result<impl Iterator<Item = SocketAddr> + Send + use<>> {
    let host = host.to_owned();
    run_with_permit(&LOOKUPS, move || (host.as_str(), 0).to_socket_addrs()).await?
}

/// Runs a blocking function. The function itself holds the permit: it cannot be stopped, so a caller that no longer
/// waits for it must not free its place.
async fn run_with_permit<T: Send + 'static>(
    permits: &'static Semaphore,
    blocking: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let permit = permits.acquire().await.map_err(io::Error::other)?;
    let run = move || {
        let result = blocking();
        drop(permit);
        result
    };
    spawn_blocking(run).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::{look_up, run_with_permit};
    use std::sync::mpsc;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn a_host_is_looked_up() {
        let mut found = look_up("localhost").await.expect("addresses");
        assert!(found.all(|it| it.ip().is_loopback() && it.port() == 0));
    }

    #[tokio::test]
    async fn a_lookup_keeps_its_permit_after_its_caller_is_gone() {
        static PERMITS: Semaphore = Semaphore::const_new(1);
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let first = tokio::spawn(run_with_permit(&PERMITS, move || {
            let _ = started.send(());
            let _ = released.recv();
        }));
        tokio::task::spawn_blocking(move || starts.recv())
            .await
            .expect("a thread")
            .expect("the look-up runs");
        first.abort();
        assert!(first.await.expect_err("aborted").is_cancelled());
        assert_eq!(PERMITS.available_permits(), 0);
        let second = tokio::spawn(run_with_permit(&PERMITS, || 7));
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(release);
        assert_eq!(second.await.expect("it ends").expect("a result"), 7);
    }
}
