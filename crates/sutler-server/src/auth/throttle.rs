//! Delay after wrong passwords, counted per user.
//!
//! Only passwords that are slow to check are counted (`password_verifier.rs`): the delay keeps guesses from using the
//! processor. A pair in the cache is never counted, so a caller that is authenticated is not locked out.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Wrong passwords without a delay.
const FREE: u32 = 5;
/// First delay; each further one is twice as long.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Maximum delay.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Time without a wrong password after which the count is reset.
const FORGIVEN: Duration = Duration::from_secs(15 * 60);
/// Maximum users counted at a time, whether they exist or not.
const USERS_MAX: usize = 10_000;

/// Wrong passwords of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailureCount {
    count: u32,
    last: Instant,
}

/// Delay after this number of wrong passwords.
fn wait_after(count: u32) -> Duration {
    match count.checked_sub(FREE) {
        None | Some(0) => Duration::ZERO,
        Some(n) => WAIT_MIN.saturating_mul(1 << (n - 1).min(16)).min(WAIT_MAX),
    }
}

/// Whether another password may be tried now: the new count, or how long to wait.
fn another(before: Option<FailureCount>, now: Instant) -> Result<FailureCount, Duration> {
    let count = match before {
        Some(failures) if now < failures.last + FORGIVEN => {
            let until = failures.last + wait_after(failures.count);
            if now < until {
                return Err(until - now);
            }
            failures.count
        }
        Some(_) | None => 0,
    };
    Ok(FailureCount {
        count: count.saturating_add(1),
        last: now,
    })
}

/// Counts of all users, by a digest of the user name.
#[derive(Debug, Default)]
pub(super) struct GuessThrottle(HashMap<[u8; 32], FailureCount>);

impl GuessThrottle {
    /// Counts an attempt before it is made, so that concurrent ones are counted too. `Err`: how long to wait.
    pub(super) fn begin(&mut self, user: [u8; 32], now: Instant) -> Result<(), Duration> {
        let next = another(self.0.get(&user).copied(), now)?;
        if self.0.len() >= USERS_MAX && !self.0.contains_key(&user) {
            self.make_room(now);
        }
        self.0.insert(user, next);
        Ok(())
    }

    /// Resets the count after a right password.
    pub(super) fn right(&mut self, user: [u8; 32]) {
        self.0.remove(&user);
    }

    /// Keeps users that still have to wait; if all do, resets all, so that the table stays bounded.
    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, it| now < it.last + wait_after(it.count));
        if self.0.len() >= USERS_MAX {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FORGIVEN, FREE, GuessThrottle, USERS_MAX, WAIT_MAX, wait_after};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = (0..15).map(|n| wait_after(n).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(wait_after(u32::MAX), WAIT_MAX);
    }

    #[test]
    fn after_a_few_wrong_passwords_the_next_one_waits() {
        let (mut throttle, now) = (GuessThrottle::default(), Instant::now());
        for _ in 0..=FREE {
            assert_eq!(throttle.begin([1; 32], now), Ok(()));
        }
        assert_eq!(throttle.begin([1; 32], now), Err(Duration::from_secs(1)));
        assert_eq!(throttle.begin([2; 32], now), Ok(()), "others do not wait");
        let later = now + Duration::from_secs(1);
        assert_eq!(throttle.begin([1; 32], later), Ok(()));
        assert_eq!(throttle.begin([1; 32], later), Err(Duration::from_secs(2)));
    }

    #[test]
    fn a_right_password_or_a_long_pause_resets_the_count() {
        let (mut throttle, now) = (GuessThrottle::default(), Instant::now());
        for _ in 0..=FREE {
            assert_eq!(throttle.begin([1; 32], now), Ok(()));
        }
        assert_eq!(throttle.begin([1; 32], now + FORGIVEN), Ok(()));
        assert_eq!(throttle.begin([1; 32], now + FORGIVEN), Ok(()));
        for _ in 0..=FREE {
            assert_eq!(throttle.begin([3; 32], now), Ok(()));
        }
        throttle.right([3; 32]);
        assert_eq!(throttle.begin([3; 32], now), Ok(()));
    }

    #[test]
    fn the_table_stays_bounded() {
        let (mut throttle, now) = (GuessThrottle::default(), Instant::now());
        for n in 0..3 * USERS_MAX {
            let mut user = [0; 32];
            user[..8].copy_from_slice(&n.to_be_bytes());
            assert_eq!(throttle.begin(user, now), Ok(()));
            assert!(throttle.0.len() <= USERS_MAX);
        }
    }
}
