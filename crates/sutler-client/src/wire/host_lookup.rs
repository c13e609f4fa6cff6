//! Look-ups of host names by the system's resolver, bounded in number and in time.
//!
//! Each occupies a thread until the system's resolver gives up, which it does late if the name servers of a domain are
//! silent. So the look-ups of one host and of one domain have limits of their own below that of the process, callers wait
//! for a place for a short time only, and answers are used again for some seconds.
//! Knows no rules about addresses; `egress.rs` has them.

use super::lookup_cache::LookupCache;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Most look-ups at the same time, however long their callers wait.
#[derive(Clone, Copy)]
struct LookupLimits {
    of_process: usize,
    /// The last two labels of a name: whoever has a domain has any number of names in it.
    of_domain: usize,
    of_host: usize,
    /// Longest wait for a place.
    wait: Duration,
}

const LIMITS: LookupLimits = LookupLimits {
    of_process: 32,
    of_domain: 8,
    of_host: 2,
    wait: Duration::from_secs(5),
};

/// The look-ups of the process.
static LOOKUPS: LazyLock<HostLookups> = LazyLock::new(|| HostLookups::new(LIMITS));

/// No place for a look-up in this process: nothing was asked, so this says nothing of the host.
#[derive(Debug, thiserror::Error)]
#[error("too many host names are being looked up; it is tried again")]
pub(super) struct LookupLimitError;

/// The addresses of a host, with port 0, at most some.
pub(super) async fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    LOOKUPS
        .look_up(host, |host| (host, 0).to_socket_addrs().map(Vec::from_iter))
        .await
}

/// Places for look-ups, and answers of the last seconds.
struct HostLookups {
    limits: LookupLimits,
    of_process: Arc<Semaphore>,
    /// Places of each host and domain that somebody waits for or uses.
    of_names: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    cache: LookupCache,
}

/// The places of one look-up. The look-up itself holds them: it cannot be stopped, so a caller that no longer waits for it
/// must not free them.
struct LookupPlaces {
    _places: Vec<OwnedSemaphorePermit>,
}

impl HostLookups {
    fn new(limits: LookupLimits) -> Self {
        Self {
            limits,
            of_process: Arc::new(Semaphore::new(limits.of_process)),
            of_names: Mutex::default(),
            cache: LookupCache::default(),
        }
    }

    async fn look_up(
        &self,
        host: &str,
        resolve: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let host = host.to_ascii_lowercase();
        if let Some(known) = self.cache.get(&host, Instant::now()) {
            return Ok(known);
        }
        let places = tokio::time::timeout(self.limits.wait, self.places(&host)).await;
        let places = places.map_err(|_| io::Error::other(LookupLimitError))?;
        // Another caller may have had the answer meanwhile.
        if let Some(known) = self.cache.get(&host, Instant::now()) {
            return Ok(known);
        }
        let asked = host.clone();
        let run = move || {
            let result = resolve(&asked);
            drop(places);
            result
        };
        let found = spawn_blocking(run).await.map_err(io::Error::other)??;
        Ok(self.cache.keep(host, found, Instant::now()))
    }

    /// Waits for all places, that of the process last, so that who waits for another place occupies none of it.
    async fn places(&self, host: &str) -> LookupPlaces {
        let domain = format!("*.{}", domain_of(host));
        let of_names = [
            (host, self.limits.of_host),
            (&domain, self.limits.of_domain),
        ];
        let mut places = Vec::new();
        for (name, limit) in of_names {
            let semaphore = self.semaphore(name, limit);
            places.extend(semaphore.acquire_owned().await);
        }
        places.extend(self.of_process.clone().acquire_owned().await);
        LookupPlaces { _places: places }
    }

    /// The places of a name. Those that nobody uses are forgotten.
    fn semaphore(&self, name: &str, limit: usize) -> Arc<Semaphore> {
        let mut names = self.names();
        names.retain(|_, it| Arc::strong_count(it) > 1);
        let entry = names.entry(name.to_owned());
        let found = entry.or_insert_with(|| Arc::new(Semaphore::new(limit)));
        found.clone()
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Semaphore>>> {
        self.of_names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last two labels of a name.
fn domain_of(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    let mut dots = host.rmatch_indices('.');
    match dots.nth(1) {
        Some((dot, _)) => &host[dot + 1..],
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::{HostLookups, LookupLimitError, LookupLimits, domain_of, look_up};
    use std::io;
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;
    use tokio::task::JoinHandle;

    type Found = io::Result<Vec<SocketAddr>>;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 0))
    }

    fn lookups(of_host: usize, of_domain: usize) -> Arc<HostLookups> {
        Arc::new(HostLookups::new(LookupLimits {
            of_process: 4,
            of_domain,
            of_host,
            wait: Duration::from_millis(50),
        }))
    }

    /// Looks a host up whose name servers answer when the sender is dropped. Returns when the look-up runs.
    async fn hang(lookups: &Arc<HostLookups>, host: &str) -> (mpsc::Sender<()>, JoinHandle<Found>) {
        let (started, starts) = tokio::sync::oneshot::channel();
        let (release, released) = mpsc::channel::<()>();
        let (lookups, host) = (lookups.clone(), host.to_owned());
        let task = tokio::spawn(async move {
            let resolve = move |_: &str| {
                let _ = started.send(());
                let _ = released.recv();
                Ok(vec![address(9)])
            };
            lookups.look_up(&host, resolve).await
        });
        starts.await.expect("it runs");
        (release, task)
    }

    async fn quick(lookups: &HostLookups, host: &str) -> Result<Vec<SocketAddr>, String> {
        let found = lookups.look_up(host, |_| Ok(vec![address(1)])).await;
        found.map_err(|error| {
            let inner = error.get_ref().expect("an inner error");
            assert!(inner.is::<LookupLimitError>(), "{inner}");
            inner.to_string()
        })
    }

    #[tokio::test]
    async fn a_host_is_looked_up() {
        let found = look_up("localhost").await.expect("addresses");
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 0)
        );
    }

    #[tokio::test]
    async fn a_domain_with_silent_name_servers_leaves_places_for_others() {
        let lookups = lookups(1, 2);
        let (_first, _a) = hang(&lookups, "a.evil.example").await;
        let (_second, _b) = hang(&lookups, "b.evil.example").await;
        let refused = quick(&lookups, "c.evil.example").await;
        assert!(refused.expect_err("no place").contains("tried again"));
        let found = quick(&lookups, "broker.example").await;
        assert_eq!(found.expect("a place"), [address(1)]);
        assert_eq!(lookups.of_process.available_permits(), 2);
    }

    #[tokio::test]
    async fn a_host_waits_for_its_own_places_for_a_bounded_time() {
        let lookups = lookups(1, 4);
        let (release, hanging) = hang(&lookups, "evil.example").await;
        quick(&lookups, "evil.example").await.expect_err("no place");
        quick(&lookups, "good.example").await.expect("a place");
        drop(release);
        hanging.await.expect("it ends").expect("addresses");
        // The answer of the other caller.
        let found = quick(&lookups, "EVIL.example").await;
        assert_eq!(found.expect("addresses"), [address(9)]);
    }

    #[tokio::test]
    async fn a_lookup_keeps_its_places_after_its_caller_is_gone() {
        let lookups = lookups(1, 4);
        let (release, hanging) = hang(&lookups, "evil.example").await;
        hanging.abort();
        assert!(hanging.await.expect_err("aborted").is_cancelled());
        assert_eq!(lookups.of_process.available_permits(), 3);
        quick(&lookups, "evil.example").await.expect_err("no place");
        drop(release);
        while lookups.of_process.available_permits() < 4 {
            tokio::task::yield_now().await;
        }
        quick(&lookups, "evil.example").await.expect("a place");
    }

    #[tokio::test]
    async fn an_answer_is_used_again_and_a_failure_is_not() {
        let lookups = lookups(1, 4);
        let count = Arc::new(Mutex::new(0));
        let look = async |host: &str, answer: fn() -> Found| {
            let count = count.clone();
            let resolve = move |_: &str| {
                *count.lock().expect("it is whole") += 1;
                answer()
            };
            lookups.look_up(host, resolve).await.is_ok()
        };
        for _ in 0..3 {
            assert!(look("one.example", || Ok(vec![address(1)])).await);
        }
        assert_eq!(*count.lock().expect("it is whole"), 1);
        for _ in 0..3 {
            assert!(!look("no.example", || Err(io::ErrorKind::NotFound.into())).await);
        }
        assert_eq!(*count.lock().expect("it is whole"), 4);
        let names = lookups.names().len();
        assert!(names <= 4, "names are forgotten: {names}");
    }

    #[test]
    fn a_domain_is_the_last_two_labels() {
        for (host, domain) in [
            ("a.b.example.com", "example.com"),
            ("example.com.", "example.com"),
            ("example.com", "example.com"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(domain_of(host), domain);
        }
    }
}
