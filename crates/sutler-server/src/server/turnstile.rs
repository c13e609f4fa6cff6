//! What a request passes before it is worked on: its caller's share, then a place.
//!
//! Reads and changes have places of their own, so that polls are answered while changes queue. A
//! place is taken after the body was read: a slow sender holds none. Statuses are chosen in
//! `http/error.rs`.

use super::callers::{AtWork, Callers, LongAtWork, TooMuch};
use super::gate::{Full, Gate, Inside};
use super::limits::Limits;
use crate::metrics::{self, Limited};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// Most refusals that are held back at one time; beyond that they leave at once.
const PAUSED_MAX: usize = 4_096;
/// So many callers at least it takes to fill all memory there is for bodies.
const CALLERS_AT_LEAST: usize = 4;

/// What all platforms share.
pub struct Places {
    limits: Limits,
    reads: Gate,
    changes: Gate,
    body_bytes: AtomicUsize,
    paused: AtomicUsize,
    long: AtomicUsize,
    draining: CancellationToken,
}

impl Places {
    /// Places within these limits. `draining`: cancelled when the server begins to drain.
    #[must_use]
    pub fn new(limits: Limits, draining: CancellationToken) -> Arc<Self> {
        let gate = |inside| Gate::new(inside, limits.queue_max, limits.queue_within);
        Arc::new(Self {
            reads: gate(limits.reads_at_once),
            changes: gate(limits.changes_at_once),
            body_bytes: AtomicUsize::new(0),
            paused: AtomicUsize::new(0),
            long: AtomicUsize::new(0),
            draining,
            limits,
        })
    }
}

/// The turnstile of one platform.
pub struct Turnstile {
    places: Arc<Places>,
    callers: Callers,
}

/// What a request does, as far as places are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It only reads.
    Read,
    /// It may change something.
    Change,
}

impl Turnstile {
    /// A turnstile in front of shared places.
    #[must_use]
    pub fn new(places: Arc<Places>) -> Self {
        Self {
            places,
            callers: Callers::new(),
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.places.limits
    }

    /// Counts a request of a caller. A refusal is held back a little.
    ///
    /// # Errors
    /// The caller has too many requests at a time, or sends too many.
    pub async fn count(&self, caller: &str) -> Result<AtWork, TooMuch> {
        let admitted = self.callers.admit(caller, &self.places.limits);
        if let Err(much) = &admitted {
            metrics::limited(match much {
                TooMuch::AtATime => Limited::CallerConcurrency,
                TooMuch::ASecond(_) => Limited::Rate,
            });
            self.hold_back().await;
        }
        admitted
    }

    async fn hold_back(&self) {
        let paused = &self.places.paused;
        if super::gate::take_one(paused, PAUSED_MAX) {
            let _one = Counted(paused, 1);
            tokio::time::sleep(self.places.limits.refusal_pause).await;
        }
    }

    /// A place to work in.
    ///
    /// # Errors
    /// There is none, and none came free in time.
    pub async fn enter(&self, sort: Sort) -> Result<Inside<'_>, Full> {
        let entered = match sort {
            Sort::Read => self.places.reads.enter().await,
            Sort::Change => self.places.changes.enter().await,
        };
        entered.inspect_err(|_| metrics::limited(Limited::Concurrency))
    }

    /// A place for a long request, in exchange for the caller's place among ordinary ones.
    ///
    /// # Errors
    /// The server drains, or there are too many already.
    pub fn enter_long(&self, caller: AtWork) -> Result<LongRequest, LongRequestError> {
        if self.places.draining.is_cancelled() {
            metrics::limited(Limited::Draining);
            return Err(LongRequestError::Draining);
        }
        let caller = caller.into_long(&self.places.limits).map_err(|much| {
            metrics::limited(Limited::CallerConcurrency);
            LongRequestError::Caller(much)
        })?;
        let most = self.places.limits.long_requests_at_once;
        if !super::gate::take_one(&self.places.long, most) {
            metrics::limited(Limited::Concurrency);
            return Err(LongRequestError::Full(Full));
        }
        Ok(LongRequest {
            _caller: caller,
            places: self.places.clone(),
        })
    }

    /// Room for the body of a request; it grows with what arrives.
    #[must_use]
    pub fn room<'a>(&'a self, caller: &'a AtWork) -> Room<'a> {
        let most = self.places.limits.body_bytes_at_once;
        Room {
            all: Counted(&self.places.body_bytes, 0),
            all_max: most,
            own: Counted(caller.body_bytes(), 0),
            own_max: most / CALLERS_AT_LEAST,
        }
    }
}

/// Why a long request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongRequestError {
    /// The server drains.
    Draining,
    /// There are too many.
    Full(Full),
    /// Its caller has too many.
    Caller(TooMuch),
}

/// The place of a long request: an event stream, or a read that waits. Dropping it gives it back. Ends when
/// the server drains.
pub struct LongRequest {
    _caller: LongAtWork,
    places: Arc<Places>,
}

impl LongRequest {
    /// Waits for `work`, but not longer than until the server drains: then `None`.
    pub async fn until_drain<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.places.draining.run_until_cancelled(work).await
    }

    /// Cancelled when the server drains.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.places.draining.clone()
    }
}

impl Drop for LongRequest {
    fn drop(&mut self) {
        self.places.long.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Memory that a body takes, until it is dropped.
pub struct Room<'a> {
    all: Counted<'a>,
    all_max: usize,
    own: Counted<'a>,
    own_max: usize,
}

impl Room<'_> {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        let all = self.all.add(bytes);
        let own = self.own.add(bytes);
        if all > self.all_max || own > self.own_max {
            metrics::limited(Limited::Overload);
            return Err(Full);
        }
        Ok(())
    }

    /// How many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.own.1
    }
}

/// Something that was counted; dropping it takes it off again.
struct Counted<'a>(&'a AtomicUsize, usize);

impl Counted<'_> {
    fn add(&mut self, more: usize) -> usize {
        self.1 += more;
        self.0.fetch_add(more, Ordering::Relaxed) + more
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, LongRequestError, Places, Sort, TooMuch, Turnstile};
    use crate::server::limits::Limits;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn turnstile(change: impl FnOnce(&mut Limits)) -> Turnstile {
        let mut limits = Limits::default();
        change(&mut limits);
        Turnstile::new(Places::new(limits, CancellationToken::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_queue_leave_reads_alone() {
        let turnstile = turnstile(|limits| {
            limits.changes_at_once = 1;
            limits.queue_max = 0;
        });
        let _change = turnstile.enter(Sort::Change).await;
        assert!(turnstile.enter(Sort::Change).await.is_err());
        assert!(turnstile.enter(Sort::Read).await.is_ok());
    }

    #[tokio::test]
    async fn bodies_together_have_a_bound_and_those_of_one_caller_a_smaller_one() {
        let turnstile = turnstile(|limits| limits.body_bytes_at_once = 100);
        let mut callers = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            callers.push(turnstile.count(name).await.expect("a first request"));
        }
        let mut first = turnstile.room(&callers[0]);
        assert!(first.grow(20).is_ok());
        assert!(turnstile.room(&callers[0]).grow(20).is_err());
        let mut others: Vec<_> = callers[1..].iter().map(|it| turnstile.room(it)).collect();
        let grown: Vec<bool> = others.iter_mut().map(|it| it.grow(25).is_ok()).collect();
        assert_eq!(grown, [true, true, true, false]);
        drop(others);
        assert!(first.grow(5).is_ok());
        assert_eq!(first.bytes(), 25);
    }

    #[tokio::test]
    async fn long_requests_have_places_of_their_own_and_leave_the_ordinary_ones() {
        let turnstile = turnstile(|limits| {
            limits.requests_per_caller = 1;
            limits.reads_at_once = 1;
            limits.queue_max = 0;
            limits.long_requests_per_caller = 2;
            limits.long_requests_at_once = 3;
        });
        let mut held = Vec::new();
        for caller in ["a", "a", "b"] {
            // Each was counted as an ordinary request first, of which there may be one.
            let caller = turnstile.count(caller).await.expect("a place");
            held.push(turnstile.enter_long(caller).expect("a long place"));
        }
        let third = turnstile.count("a").await.expect("a place");
        let refused = turnstile.enter_long(third).err();
        assert_eq!(refused, Some(LongRequestError::Caller(TooMuch::AtATime)));
        let fourth = turnstile.count("b").await.expect("a place");
        let refused = turnstile.enter_long(fourth).err();
        assert_eq!(refused, Some(LongRequestError::Full(Full)));
        assert!(turnstile.enter(Sort::Read).await.is_ok());
        held.pop();
        let again = turnstile.count("b").await.expect("a place");
        assert!(turnstile.enter_long(again).is_ok());
    }

    #[tokio::test]
    async fn long_requests_end_when_the_server_drains_and_no_new_ones_begin() {
        let draining = CancellationToken::new();
        let places = Places::new(Limits::default(), draining.clone());
        let turnstile = Turnstile::new(places);
        let caller = turnstile.count("a").await.expect("a place");
        let long = turnstile.enter_long(caller).expect("a long place");
        assert_eq!(long.until_drain(std::future::ready(7)).await, Some(7));
        let waits = long.until_drain(std::future::pending::<()>());
        draining.cancel();
        assert_eq!(waits.await, None);
        let caller = turnstile.count("a").await.expect("a place");
        let refused = turnstile.enter_long(caller).err();
        assert_eq!(refused, Some(LongRequestError::Draining));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_too_much_waits_for_the_refusal() {
        let turnstile = turnstile(|limits| {
            limits.requests_per_caller = 0;
            limits.refusal_pause = Duration::from_secs(3);
        });
        let began = tokio::time::Instant::now();
        assert!(turnstile.count("greedy").await.is_err());
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
