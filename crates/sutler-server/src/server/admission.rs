//! Admission of requests: the limits of their caller first, then a slot to run in.
//!
//! Reads and changes have slots of their own, so that reads are answered while changes queue. Long requests hold
//! neither. A slot is taken after the body was read, so that a slow sender holds none. Statuses are chosen in
//! `error_response.rs`.

use super::bounded_queue::{BoundedQueue, QueueFull, Slot};
use super::caller_limits::{CallerLimitExceeded, CallerLimits, CallerPermit, LongCallerPermit};
use super::limits::Limits;
use crate::metrics::{self, LimitKind};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// Maximum refusals delayed at a time; further ones are sent at once.
const PAUSED_MAX: usize = 4_096;
/// Number of callers needed to fill the memory for all bodies.
const CALLERS_AT_LEAST: usize = 4;

/// Limits shared by all admissions of a server, with what is in use of each.
pub struct SharedLimits {
    limits: Limits,
    reads: BoundedQueue,
    changes: BoundedQueue,
    body_bytes: AtomicUsize,
    paused: AtomicUsize,
    long: AtomicUsize,
    draining: CancellationToken,
}

impl SharedLimits {
    /// Shared state for these limits. `draining` is cancelled when the server begins to drain.
    #[must_use]
    pub fn new(limits: Limits, draining: CancellationToken) -> Arc<Self> {
        let queue = |inside| BoundedQueue::new(inside, limits.queue_max, limits.queue_within);
        Arc::new(Self {
            reads: queue(limits.reads_at_once),
            changes: queue(limits.changes_at_once),
            body_bytes: AtomicUsize::new(0),
            paused: AtomicUsize::new(0),
            long: AtomicUsize::new(0),
            draining,
            limits,
        })
    }
}

/// Admission of requests to one API, such as that of one platform: has its own callers.
pub struct Admission {
    shared: Arc<SharedLimits>,
    callers: CallerLimits,
}

/// Class of a request. Each has its own slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Only reads.
    Read,
    /// May change something.
    Change,
}

impl Admission {
    /// Admission within shared limits.
    #[must_use]
    pub fn new(shared: Arc<SharedLimits>) -> Self {
        Self {
            shared,
            callers: CallerLimits::new(),
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Counts a request of a caller. A refusal is delayed by `refusal_pause`.
    ///
    /// # Errors
    /// The caller has too many requests at a time, or exceeds its rate.
    pub async fn admit_caller(&self, caller: &str) -> Result<CallerPermit, CallerLimitExceeded> {
        let admitted = self.callers.admit(caller, &self.shared.limits);
        if let Err(much) = &admitted {
            metrics::limited(match much {
                CallerLimitExceeded::Concurrency => LimitKind::CallerConcurrency,
                CallerLimitExceeded::Rate(_) => LimitKind::Rate,
            });
            self.hold_back().await;
        }
        admitted
    }

    async fn hold_back(&self) {
        let paused = &self.shared.paused;
        if super::bounded_queue::take_one(paused, PAUSED_MAX) {
            let _one = CounterShare(paused, 1);
            tokio::time::sleep(self.shared.limits.refusal_pause).await;
        }
    }

    /// Waits for a slot to run in.
    ///
    /// # Errors
    /// No slot came free in time.
    pub async fn acquire_slot(&self, sort: RequestClass) -> Result<Slot<'_>, QueueFull> {
        let entered = match sort {
            RequestClass::Read => self.shared.reads.acquire().await,
            RequestClass::Change => self.shared.changes.acquire().await,
        };
        entered.inspect_err(|_| metrics::limited(LimitKind::Concurrency))
    }

    /// Exchanges the caller's permit for an ordinary request for the slot of a long request. The refusal of a caller
    /// with too many is delayed by `refusal_pause`.
    ///
    /// # Errors
    /// The server drains, or there are too many long requests.
    pub async fn acquire_long_slot(
        &self,
        caller: CallerPermit,
    ) -> Result<LongRequestPermit, LongRequestError> {
        if self.shared.draining.is_cancelled() {
            metrics::limited(LimitKind::Draining);
            return Err(LongRequestError::Draining);
        }
        let caller = match caller.into_long(&self.shared.limits) {
            Ok(caller) => caller,
            Err(much) => {
                metrics::limited(LimitKind::CallerConcurrency);
                self.hold_back().await;
                return Err(LongRequestError::Caller(much));
            }
        };
        let most = self.shared.limits.long_requests_at_once;
        if !super::bounded_queue::take_one(&self.shared.long, most) {
            metrics::limited(LimitKind::Concurrency);
            return Err(LongRequestError::QueueFull(QueueFull));
        }
        Ok(LongRequestPermit {
            _caller: caller,
            shared: self.shared.clone(),
        })
    }

    /// Memory budget for the body of a request. It grows with the bytes that arrive.
    #[must_use]
    pub fn body_budget<'a>(&'a self, caller: &'a CallerPermit) -> BodyBudget<'a> {
        let most = self.shared.limits.body_bytes_at_once;
        BodyBudget {
            all: CounterShare(&self.shared.body_bytes, 0),
            all_max: most,
            own: CounterShare(caller.body_bytes(), 0),
            own_max: most / CALLERS_AT_LEAST,
        }
    }
}

/// Why a long request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongRequestError {
    /// The server drains.
    Draining,
    /// There are too many long requests.
    QueueFull(QueueFull),
    /// The caller has too many long requests.
    Caller(CallerLimitExceeded),
}

/// Slot of a long request: an event stream, or a read that waits. Released when dropped. Long requests end when
/// the server drains.
pub struct LongRequestPermit {
    _caller: LongCallerPermit,
    shared: Arc<SharedLimits>,
}

impl LongRequestPermit {
    /// Waits for `work`. Returns `None` if the server drains first.
    pub async fn until_drain<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.shared.draining.run_until_cancelled(work).await
    }

    /// Token that is cancelled when the server drains.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.shared.draining.clone()
    }
}

impl Drop for LongRequestPermit {
    fn drop(&mut self) {
        self.shared.long.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Memory that a body takes, released when dropped.
pub struct BodyBudget<'a> {
    all: CounterShare<'a>,
    all_max: usize,
    own: CounterShare<'a>,
    own_max: usize,
}

impl BodyBudget<'_> {
    /// Takes more bytes.
    ///
    /// # Errors
    /// The memory for bodies is used up.
    pub fn grow(&mut self, bytes: usize) -> Result<(), QueueFull> {
        let all = self.all.add(bytes);
        let own = self.own.add(bytes);
        if all > self.all_max || own > self.own_max {
            metrics::limited(LimitKind::Overload);
            return Err(QueueFull);
        }
        Ok(())
    }

    /// Bytes taken.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.own.1
    }
}

/// Amount added to a counter, subtracted when dropped.
struct CounterShare<'a>(&'a AtomicUsize, usize);

impl CounterShare<'_> {
    fn add(&mut self, more: usize) -> usize {
        self.1 += more;
        self.0.fetch_add(more, Ordering::Relaxed) + more
    }
}

impl Drop for CounterShare<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Admission, CallerLimitExceeded, LongRequestError, QueueFull, RequestClass, SharedLimits,
    };
    use crate::server::limits::Limits;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn admission(change: impl FnOnce(&mut Limits)) -> Admission {
        let mut limits = Limits::default();
        change(&mut limits);
        Admission::new(SharedLimits::new(limits, CancellationToken::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_queue_leave_reads_alone() {
        let admission = admission(|limits| {
            limits.changes_at_once = 1;
            limits.queue_max = 0;
        });
        let _change = admission.acquire_slot(RequestClass::Change).await;
        assert!(admission.acquire_slot(RequestClass::Change).await.is_err());
        assert!(admission.acquire_slot(RequestClass::Read).await.is_ok());
    }

    #[tokio::test]
    async fn bodies_together_have_a_bound_and_those_of_one_caller_a_smaller_one() {
        let admission = admission(|limits| limits.body_bytes_at_once = 100);
        let mut callers = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            callers.push(admission.admit_caller(name).await.expect("a first request"));
        }
        let mut first = admission.body_budget(&callers[0]);
        assert!(first.grow(20).is_ok());
        assert!(admission.body_budget(&callers[0]).grow(20).is_err());
        let mut others: Vec<_> = callers[1..]
            .iter()
            .map(|it| admission.body_budget(it))
            .collect();
        let grown: Vec<bool> = others.iter_mut().map(|it| it.grow(25).is_ok()).collect();
        assert_eq!(grown, [true, true, true, false]);
        drop(others);
        assert!(first.grow(5).is_ok());
        assert_eq!(first.bytes(), 25);
    }

    #[tokio::test]
    async fn long_requests_have_places_of_their_own_and_leave_the_ordinary_ones() {
        let admission = admission(|limits| {
            limits.requests_per_caller = 1;
            limits.reads_at_once = 1;
            limits.queue_max = 0;
            limits.long_requests_per_caller = 2;
            limits.long_requests_at_once = 3;
        });
        let mut held = Vec::new();
        for caller in ["a", "a", "b"] {
            // Each is counted as an ordinary request first, with a limit of one.
            let caller = admission.admit_caller(caller).await.expect("a place");
            held.push(
                admission
                    .acquire_long_slot(caller)
                    .await
                    .expect("a long place"),
            );
        }
        let third = admission.admit_caller("a").await.expect("a place");
        let refused = admission.acquire_long_slot(third).await.err();
        assert_eq!(
            refused,
            Some(LongRequestError::Caller(CallerLimitExceeded::Concurrency))
        );
        let fourth = admission.admit_caller("b").await.expect("a place");
        let refused = admission.acquire_long_slot(fourth).await.err();
        assert_eq!(refused, Some(LongRequestError::QueueFull(QueueFull)));
        assert!(admission.acquire_slot(RequestClass::Read).await.is_ok());
        held.pop();
        let again = admission.admit_caller("b").await.expect("a place");
        assert!(admission.acquire_long_slot(again).await.is_ok());
    }

    #[tokio::test]
    async fn long_requests_end_when_the_server_drains_and_no_new_ones_begin() {
        let draining = CancellationToken::new();
        let places = SharedLimits::new(Limits::default(), draining.clone());
        let admission = Admission::new(places);
        let caller = admission.admit_caller("a").await.expect("a place");
        let long = admission
            .acquire_long_slot(caller)
            .await
            .expect("a long place");
        assert_eq!(long.until_drain(std::future::ready(7)).await, Some(7));
        let waits = long.until_drain(std::future::pending::<()>());
        draining.cancel();
        assert_eq!(waits.await, None);
        let caller = admission.admit_caller("a").await.expect("a place");
        let refused = admission.acquire_long_slot(caller).await.err();
        assert_eq!(refused, Some(LongRequestError::Draining));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_delayed() {
        let admission = admission(|limits| {
            limits.requests_per_caller = 0;
            limits.refusal_pause = Duration::from_secs(3);
        });
        let began = tokio::time::Instant::now();
        assert!(admission.admit_caller("greedy").await.is_err());
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_too_many_long_requests_waits_for_the_refusal() {
        let admission = admission(|limits| {
            limits.long_requests_per_caller = 0;
            limits.refusal_pause = Duration::from_secs(3);
        });
        let caller = admission.admit_caller("greedy").await.expect("a place");
        let began = tokio::time::Instant::now();
        assert!(admission.acquire_long_slot(caller).await.is_err());
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
