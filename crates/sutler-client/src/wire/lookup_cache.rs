//! Answers of look-ups of the last seconds, bounded in number. Failures are not kept.
//!
//! Rules about addresses are checked after each use, so an answer that is used again allows nothing more.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer is used: so short that a host that moves is found at once.
const USED_FOR: Duration = Duration::from_secs(5);
/// Most answers; if there are more, those of this moment are not kept.
const ANSWERS_MAX: usize = 1_000;
/// Most addresses of one host: the server of its domain may list thousands.
const ADDRESSES_MAX: usize = 64;

/// Addresses of hosts, and until when they are used.
#[derive(Default)]
pub(super) struct LookupCache(Mutex<BTreeMap<String, (Instant, Vec<SocketAddr>)>>);

impl LookupCache {
    /// The addresses of a host, if they were found lately.
    pub(super) fn get(&self, host: &str, now: Instant) -> Option<Vec<SocketAddr>> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, found) = answers.get(host)?;
        (now < *until).then(|| found.clone())
    }

    /// Keeps the first addresses of a host, and returns them.
    pub(super) fn keep(
        &self,
        host: String,
        mut found: Vec<SocketAddr>,
        now: Instant,
    ) -> Vec<SocketAddr> {
        found.truncate(ADDRESSES_MAX);
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS_MAX {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() < ANSWERS_MAX {
            answers.insert(host, (now + USED_FOR, found.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES_MAX, ANSWERS_MAX, LookupCache, USED_FOR};
    use std::net::SocketAddr;
    use tokio::time::Instant;

    fn addresses(count: usize) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([192, 0, 2, 1], 0)); count]
    }

    #[test]
    fn an_answer_is_used_for_some_seconds() {
        let (cache, now) = (LookupCache::default(), Instant::now());
        cache.keep("host".to_owned(), addresses(1), now);
        assert_eq!(cache.get("host", now), Some(addresses(1)));
        assert_eq!(cache.get("other", now), None);
        assert_eq!(cache.get("host", now + USED_FOR), None);
    }

    #[test]
    fn answers_and_their_addresses_are_bounded() {
        let (cache, now) = (LookupCache::default(), Instant::now());
        let found = cache.keep("many".to_owned(), addresses(1_000), now);
        assert_eq!(found.len(), ADDRESSES_MAX);
        for number in 0..2 * ANSWERS_MAX {
            cache.keep(number.to_string(), addresses(1), now);
        }
        assert_eq!(cache.0.lock().expect("it is whole").len(), ANSWERS_MAX);
        let later = now + USED_FOR;
        cache.keep("late".to_owned(), addresses(1), later);
        assert_eq!(cache.get("late", later), Some(addresses(1)));
    }
}
