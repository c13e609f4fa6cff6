//! Token bucket stored as one number: when it will be full again. Pure; the caller passes the time.
//!
//! Times are nanoseconds since any fixed moment. One bucket per caller is kept in `server/caller_limits.rs`.

use super::limits::Rate;
use std::time::Duration;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Takes one token. `full_at`: when the bucket will be full, as the last call returned; 0 at first.
///
/// # Errors
/// The bucket is empty: how long until there is a token.
pub(super) fn take(full_at: u64, now: u64, rate: Rate) -> Result<u64, Duration> {
    let per_token = (NANOS_PER_SECOND / u64::from(rate.per_second.get())).max(1);
    let whole = per_token.saturating_mul(u64::from(rate.burst.get()));
    let next = full_at.max(now).saturating_add(per_token);
    let ahead = next - now;
    if ahead > whole {
        return Err(Duration::from_nanos(ahead - whole));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::{NANOS_PER_SECOND, take};
    use crate::server::limits::Rate;
    use proptest::prelude::{prop_assert, proptest};
    use std::num::NonZeroU32;
    use std::time::Duration;

    fn rate(per_second: u32, burst: u32) -> Rate {
        let some = |n| NonZeroU32::new(n).unwrap();
        Rate::new(some(per_second), some(burst))
    }

    #[test]
    fn a_full_bucket_allows_its_burst_and_then_returns_the_wait() {
        let (rate, now) = (rate(10, 3), 5 * NANOS_PER_SECOND);
        let mut full_at = 0;
        for _ in 0..3 {
            full_at = take(full_at, now, rate).unwrap();
        }
        assert_eq!(take(full_at, now, rate), Err(Duration::from_millis(100)));
        let later = now + NANOS_PER_SECOND / 10;
        full_at = take(full_at, later, rate).unwrap();
        assert_eq!(take(full_at, later, rate), Err(Duration::from_millis(100)));
    }

    #[test]
    fn a_refusal_costs_nothing() {
        let rate = rate(1, 1);
        let full_at = take(0, 0, rate).unwrap();
        for now in 0..100 {
            assert!(take(full_at, now, rate).is_err());
        }
        assert!(take(full_at, NANOS_PER_SECOND, rate).is_ok());
    }

    proptest! {
        #[test]
        fn at_any_times_no_more_than_burst_and_rate_are_admitted(
            per_second in 1u32..2_000, burst in 1u32..50,
            mut steps in proptest::collection::vec(0u64..20_000_000, 1..300),
        ) {
            let rate = rate(per_second, burst);
            let (mut now, mut full_at, mut through) = (0u64, 0u64, 0u64);
            let all: u64 = steps.iter().sum();
            for step in steps.drain(..) {
                now += step;
                if let Ok(next) = take(full_at, now, rate) {
                    full_at = next;
                    through += 1;
                }
            }
            // One more for the nanoseconds that a division loses.
            let most = u64::from(burst) + all * u64::from(per_second) / NANOS_PER_SECOND + 1;
            prop_assert!(through <= most, "{through} of at most {most}");
        }
    }
}
