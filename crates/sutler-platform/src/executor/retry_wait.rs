//! How long an operation waits before its next attempt. Pure: chance comes from the id of the operation.

use std::time::{Duration, SystemTime};
use sutler_client::RetryAfter;
use sutler_journal::OperationId;

/// Wait after the first attempt; doubles with each one.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait, unless the broker asks for a longer one.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// Longest wait of an operation that nothing was sent for, because of something else that is in progress.
const LONGEST_TURN: Duration = Duration::from_secs(60);
/// Longest wait that a broker can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// Part of a wait that chance may cut off: a quarter, so that operations that failed together are not repeated together.
const JITTER_PARTS: u32 = 4;

/// The wait after so many attempts; a broker may ask for a longer one.
pub(crate) fn retry_wait(
    attempts: u32,
    after: Option<RetryAfter>,
    now: SystemTime,
    operation: OperationId,
) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    let wait = FIRST.saturating_mul(doubled).min(LONGEST);
    let share = f64::from(chance(operation, attempts)) / f64::from(u16::MAX);
    let cut = (wait / JITTER_PARTS).mul_f64(share);
    let asked = after.map_or(Duration::ZERO, |after| after.from_now(now));
    wait.saturating_sub(cut).max(asked.min(RETRY_AFTER_MAX))
}

/// The wait of an operation that could not be sent in the claim with this number: it doubles with each claim.
pub(crate) fn turn_wait(claim: u64) -> Duration {
    let exponent = u32::try_from(claim.saturating_sub(1)).unwrap_or(u32::MAX);
    let wait = FIRST.saturating_mul(2_u32.saturating_pow(exponent));
    wait.min(LONGEST_TURN)
}

/// A number by chance that is the same for the same attempt.
fn chance(operation: OperationId, attempts: u32) -> u16 {
    let (_, low) = operation.0.as_u64_pair();
    let mixed = (low ^ u64::from(attempts)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    u16::try_from(mixed >> 48).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, RETRY_AFTER_MAX, retry_wait, turn_wait};
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};
    use sutler_client::RetryAfter;
    use sutler_journal::OperationId;
    use uuid::Uuid;

    const SECOND: Duration = Duration::from_secs(1);

    fn wait(attempts: u32, after: Option<u64>, id: u128) -> Duration {
        let after = after.map(|seconds| RetryAfter::Wait(Duration::from_secs(seconds)));
        let id = OperationId(Uuid::from_u128(id));
        retry_wait(attempts, after, UNIX_EPOCH, id)
    }

    #[test]
    fn a_broker_can_ask_for_more_and_not_for_less() {
        assert_eq!(wait(1, Some(90), 7), 90 * SECOND);
        assert!(wait(11, Some(1), 7) > 700 * SECOND);
        assert_eq!(wait(1, Some(u64::MAX), 7), RETRY_AFTER_MAX);
    }

    /// Source: T-81.
    #[test]
    fn what_waits_for_something_else_looks_after_a_second_first_and_each_minute_at_last() {
        let waits = [0, 1, 2, 6, 7, u64::MAX].map(turn_wait);
        assert_eq!(waits, [1, 1, 2, 32, 60, 60].map(Duration::from_secs));
    }

    proptest! {
        #[test]
        fn waits_grow_to_twenty_minutes_and_chance_cuts_off_a_quarter(attempts: u32, id: u128) {
            let longest = SECOND.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1))).min(LONGEST);
            let wait = wait(attempts, None, id);
            prop_assert!(wait <= longest && wait >= longest - longest / 4);
        }
    }
}
