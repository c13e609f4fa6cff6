//! Usage of each caller: requests at a time, requests per second, bytes of bodies.
//!
//! The table is bounded. Idle callers are removed when it is full; if it stays full, further callers share one entry.
//! The arithmetic of rates is in `server/token_bucket.rs`.

use super::bounded_queue::take_one;
use super::limits::Limits;
use super::token_bucket;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Maximum callers with an entry of their own.
const CALLERS_MAX: usize = 10_000;

/// The callers of one API.
pub(super) struct CallerLimits {
    since: Instant,
    known: RwLock<HashMap<Arc<str>, Arc<CallerUsage>>>,
    others: Arc<CallerUsage>,
}

/// Present usage of one caller.
#[derive(Default)]
struct CallerUsage {
    /// When its token bucket will be full.
    full_at: AtomicU64,
    /// Ordinary requests in progress.
    in_progress: AtomicUsize,
    /// Long requests in progress.
    long: AtomicUsize,
    /// Bytes of bodies held for it.
    body_bytes: AtomicUsize,
}

/// Why a caller's request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerLimitExceeded {
    /// Too many requests at a time.
    Concurrency,
    /// Too many requests per second; how long to wait.
    Rate(Duration),
}

/// One request of a caller, ended when dropped.
pub struct CallerPermit(Arc<CallerUsage>);

impl CallerPermit {
    /// Bytes of bodies held for the caller.
    pub(super) fn body_bytes(&self) -> &AtomicUsize {
        &self.0.body_bytes
    }
}

/// One long request of a caller, ended when dropped.
pub(super) struct LongCallerPermit(Arc<CallerUsage>);

impl CallerPermit {
    /// Turns the request into a long one, which no longer counts as an ordinary one.
    pub(super) fn into_long(
        self,
        limits: &Limits,
    ) -> Result<LongCallerPermit, CallerLimitExceeded> {
        if take_one(&self.0.long, limits.long_requests_per_caller) {
            return Ok(LongCallerPermit(self.0.clone()));
        }
        Err(CallerLimitExceeded::Concurrency)
    }
}

impl Drop for LongCallerPermit {
    fn drop(&mut self) {
        self.0.long.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CallerLimits {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            known: RwLock::default(),
            others: Arc::default(),
        }
    }

    /// Counts a request of a caller.
    pub(super) fn admit(
        &self,
        name: &str,
        limits: &Limits,
    ) -> Result<CallerPermit, CallerLimitExceeded> {
        let now = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.admit_at(name, limits, now)
    }

    fn admit_at(
        &self,
        name: &str,
        limits: &Limits,
        now: u64,
    ) -> Result<CallerPermit, CallerLimitExceeded> {
        let usage = self.usage(name, now);
        if !take_one(&usage.in_progress, limits.requests_per_caller) {
            return Err(CallerLimitExceeded::Concurrency);
        }
        let in_progress = CallerPermit(usage);
        let Some(rate) = limits.rate_per_caller else {
            return Ok(in_progress);
        };
        let full_at = &in_progress.0.full_at;
        let mut known = full_at.load(Ordering::Relaxed);
        loop {
            let next = token_bucket::take(known, now, rate).map_err(CallerLimitExceeded::Rate)?;
            let swap =
                full_at.compare_exchange_weak(known, next, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return Ok(in_progress),
                Err(newer) => known = newer,
            }
        }
    }

    fn usage(&self, name: &str, now: u64) -> Arc<CallerUsage> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = known.get(name) {
            return usage.clone();
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CALLERS_MAX {
            known.retain(|_, usage| usage.is_of_interest(now));
        }
        if known.len() >= CALLERS_MAX {
            return self.others.clone();
        }
        known.entry(name.into()).or_default().clone()
    }
}

impl CallerUsage {
    fn is_of_interest(&self, now: u64) -> bool {
        self.in_progress.load(Ordering::SeqCst) > 0
            || self.long.load(Ordering::SeqCst) > 0
            || self.full_at.load(Ordering::Relaxed) > now
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLERS_MAX, CallerLimitExceeded, CallerLimits};
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
    fn limits_are_counted_per_caller() {
        let (callers, limits) = (CallerLimits::new(), limits(1, 2, 10));
        for _ in 0..2 {
            assert!(callers.admit_at("greedy", &limits, 0).is_ok());
        }
        let refused = callers.admit_at("greedy", &limits, 0).err();
        assert!(matches!(refused, Some(CallerLimitExceeded::Rate(_))));
        assert!(callers.admit_at("modest", &limits, 0).is_ok());
    }

    #[test]
    fn requests_at_a_time_come_free_when_they_end() {
        let (callers, limits) = (CallerLimits::new(), limits(1_000, 1_000, 2));
        let first = callers.admit_at("one", &limits, 0);
        let second = callers.admit_at("one", &limits, 0);
        assert!(first.is_ok() && second.is_ok());
        let third = callers.admit_at("one", &limits, 0).err();
        assert_eq!(third, Some(CallerLimitExceeded::Concurrency));
        drop(first);
        assert!(callers.admit_at("one", &limits, 0).is_ok());
    }

    #[test]
    fn the_table_of_callers_does_not_grow_without_end() {
        let (callers, limits) = (CallerLimits::new(), limits(1, 1, 10));
        for n in 0..CALLERS_MAX + 50 {
            let _ = callers.admit_at(&n.to_string(), &limits, 0);
        }
        let len = || callers.known.read().unwrap().len();
        assert_eq!(len(), CALLERS_MAX);
        // Later all idle callers are removed, and a new caller gets its own entry again.
        assert!(callers.admit_at("new", &limits, 5_000_000_000).is_ok());
        assert_eq!(len(), 1);
    }
}
