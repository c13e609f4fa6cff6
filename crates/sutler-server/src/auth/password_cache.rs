//! Cache of user and password pairs that were verified, so that no slow hash is computed twice.
//!
//! Pairs are stored as a digest under a key of this process, for some minutes after their last use, in a bounded table.
//! Replacing the users empties it.

use super::Caller;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// How long a pair stays after its last use.
const UNUSED_MAX: Duration = Duration::from_secs(15 * 60);
/// Maximum pairs.
const PAIRS_MAX: usize = 1024;

struct CachedPair {
    caller: Caller,
    /// Seconds since `began`.
    used: AtomicU64,
}

pub(super) struct PasswordCache {
    began: Instant,
    pairs: RwLock<HashMap<[u8; 32], CachedPair>>,
}

impl PasswordCache {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            pairs: RwLock::default(),
        }
    }

    pub(super) fn find(&self, pair: &[u8; 32], now: Instant) -> Option<Caller> {
        let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
        let entry = pairs.get(pair)?;
        let seconds = self.seconds(now);
        if is_forgotten(entry.used.load(Ordering::Relaxed), seconds) {
            return None;
        }
        entry.used.store(seconds, Ordering::Relaxed);
        Some(entry.caller.clone())
    }

    pub(super) fn keep(&self, pair: [u8; 32], caller: Caller, now: Instant) {
        let seconds = self.seconds(now);
        let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
        if pairs.len() >= PAIRS_MAX {
            pairs.retain(|_, it| !is_forgotten(it.used.load(Ordering::Relaxed), seconds));
        }
        if pairs.len() >= PAIRS_MAX {
            let oldest = pairs
                .iter()
                .min_by_key(|(_, it)| it.used.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(pair, _)| *pair) {
                pairs.remove(&oldest);
            }
        }
        let used = AtomicU64::new(seconds);
        pairs.insert(pair, CachedPair { caller, used });
    }

    fn seconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_secs()
    }
}

fn is_forgotten(used: u64, now: u64) -> bool {
    now.saturating_sub(used) >= UNUSED_MAX.as_secs()
}

#[cfg(test)]
mod tests {
    use super::{PAIRS_MAX, PasswordCache, UNUSED_MAX};
    use crate::auth::{AuthMethod, Caller};
    use std::time::Duration;
    use tokio::time::Instant;

    fn pair(n: usize) -> [u8; 32] {
        let mut pair = [0; 32];
        pair[..8].copy_from_slice(&n.to_be_bytes());
        pair
    }

    #[test]
    fn a_pair_is_forgotten_some_minutes_after_its_last_use() {
        let began = Instant::now();
        let cache = PasswordCache::new(began);
        let caller = Caller::new("u", AuthMethod::Basic);
        cache.keep(pair(1), caller.clone(), began);
        let nearly = began + UNUSED_MAX - Duration::from_secs(1);
        assert_eq!(cache.find(&pair(1), nearly), Some(caller.clone()));
        assert_eq!(cache.find(&pair(2), nearly), None);
        let again = nearly + UNUSED_MAX - Duration::from_secs(1);
        assert_eq!(cache.find(&pair(1), again), Some(caller));
        assert_eq!(cache.find(&pair(1), again + UNUSED_MAX), None);
    }

    #[test]
    fn the_least_recently_used_pair_is_evicted() {
        let began = Instant::now();
        let cache = PasswordCache::new(began);
        for n in 0..=PAIRS_MAX {
            let now = began + Duration::from_millis(n as u64 * 500);
            cache.keep(pair(n), Caller::new("u", AuthMethod::Basic), now);
        }
        let now = began + Duration::from_secs(PAIRS_MAX as u64 / 2 + 1);
        let kept = |n| cache.find(&pair(n), now).is_some();
        let gone = (0..=PAIRS_MAX).filter(|n| !kept(*n)).count();
        assert_eq!(gone, 1);
        assert!(!kept(0) || !kept(1), "one of the oldest two went");
        assert!(kept(PAIRS_MAX));
    }
}
