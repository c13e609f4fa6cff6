//! What each caller takes: requests at a time, and requests a second.
//!
//! The table is bounded. Callers are forgotten while they ask for nothing; should the table still be
//! full, the newcomers share one entry. `server/bucket.rs` has the arithmetic.

use super::bucket;
use super::gate::take_one;
use super::limits::Limits;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Most callers that are told apart.
const CALLERS_MAX: usize = 10_000;

/// The callers of one platform.
pub(super) struct Callers {
    since: Instant,
    known: RwLock<HashMap<Arc<str>, Arc<Taken>>>,
    others: Arc<Taken>,
}

/// What one caller takes at present.
#[derive(Default)]
struct Taken {
    /// When its bucket will be full.
    full_at: AtomicU64,
    /// Requests at work.
    at_work: AtomicUsize,
    /// Long requests at work.
    long: AtomicUsize,
    /// Bytes of bodies that are held for it.
    body_bytes: AtomicUsize,
}

/// Why a caller's request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// Too many at a time.
    AtATime,
    /// Too many a second; when to come again.
    ASecond(Duration),
}

/// One request of a caller; dropping it ends it.
pub struct AtWork(Arc<Taken>);

impl AtWork {
    /// Bytes of bodies that are held for its caller.
    pub(super) fn body_bytes(&self) -> &AtomicUsize {
        &self.0.body_bytes
    }
}

/// One long request of a caller; dropping it ends it.
pub(super) struct LongAtWork(Arc<Taken>);

impl AtWork {
    /// Makes it a long request, which no longer counts as an ordinary one.
    pub(super) fn into_long(self, limits: &Limits) -> Result<LongAtWork, TooMuch> {
        if take_one(&self.0.long, limits.long_requests_per_caller) {
            return Ok(LongAtWork(self.0.clone()));
        }
        Err(TooMuch::AtATime)
    }
}

impl Drop for LongAtWork {
    fn drop(&mut self) {
        self.0.long.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Callers {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            known: RwLock::default(),
            others: Arc::default(),
        }
    }

    /// Counts a request of a caller, if it may have one more.
    pub(super) fn admit(&self, name: &str, limits: &Limits) -> Result<AtWork, TooMuch> {
        let now = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.admit_at(name, limits, now)
    }

    fn admit_at(&self, name: &str, limits: &Limits, now: u64) -> Result<AtWork, TooMuch> {
        let taken = self.taken(name, now);
        if !take_one(&taken.at_work, limits.requests_per_caller) {
            return Err(TooMuch::AtATime);
        }
        let at_work = AtWork(taken);
        let Some(rate) = limits.rate_per_caller else {
            return Ok(at_work);
        };
        let full_at = &at_work.0.full_at;
        let mut known = full_at.load(Ordering::Relaxed);
        loop {
            let next = bucket::take(known, now, rate).map_err(TooMuch::ASecond)?;
            let swap =
                full_at.compare_exchange_weak(known, next, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return Ok(at_work),
                Err(newer) => known = newer,
            }
        }
    }

    fn taken(&self, name: &str, now: u64) -> Arc<Taken> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = known.get(name) {
            return taken.clone();
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CALLERS_MAX {
            known.retain(|_, taken| taken.is_of_interest(now));
        }
        if known.len() >= CALLERS_MAX {
            return self.others.clone();
        }
        known.entry(name.into()).or_default().clone()
    }
}

impl Taken {
    fn is_of_interest(&self, now: u64) -> bool {
        self.at_work.load(Ordering::SeqCst) > 0
            || self.long.load(Ordering::SeqCst) > 0
            || self.full_at.load(Ordering::Relaxed) > now
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLERS_MAX, Callers, TooMuch};
    use crate::server::limits::{Limits, Rate};
    use std::num::NonZeroU32;

    fn limits(per_second: u32, burst: u32, at_a_time: usize) -> Limits {
        let some = |n| NonZeroU32::new(n).unwrap();
        Limits {
            rate_per_caller: Some(Rate::new(some(per_second), some(burst))),
            requests_per_caller: at_a_time,
            ..Limits::default()
        }
    }

    #[test]
    fn what_one_caller_takes_another_still_has() {
        let (callers, limits) = (Callers::new(), limits(1, 2, 10));
        for _ in 0..2 {
            assert!(callers.admit_at("greedy", &limits, 0).is_ok());
        }
        let refused = callers.admit_at("greedy", &limits, 0).err();
        assert!(matches!(refused, Some(TooMuch::ASecond(_))));
        assert!(callers.admit_at("modest", &limits, 0).is_ok());
    }

    #[test]
    fn requests_at_a_time_come_free_when_they_end() {
        let (callers, limits) = (Callers::new(), limits(1_000, 1_000, 2));
        let first = callers.admit_at("one", &limits, 0);
        let second = callers.admit_at("one", &limits, 0);
        assert!(first.is_ok() && second.is_ok());
        let third = callers.admit_at("one", &limits, 0).err();
        assert_eq!(third, Some(TooMuch::AtATime));
        drop(first);
        assert!(callers.admit_at("one", &limits, 0).is_ok());
    }

    #[test]
    fn the_table_of_callers_does_not_grow_without_end() {
        let (callers, limits) = (Callers::new(), limits(1, 1, 10));
        for n in 0..CALLERS_MAX + 50 {
            let _ = callers.admit_at(&n.to_string(), &limits, 0);
        }
        let len = || callers.known.read().unwrap().len();
        assert_eq!(len(), CALLERS_MAX);
        // Later they all are forgotten, and a newcomer is told apart again.
        assert!(callers.admit_at("new", &limits, 5_000_000_000).is_ok());
        assert_eq!(len(), 1);
    }
}
