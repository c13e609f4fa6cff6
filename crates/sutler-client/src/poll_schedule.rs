//! Wait before the next poll, and the deadline of polling. Pure: time is passed as numbers.

use std::time::Duration;

/// First wait without `Retry-After`.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait, whether by back-off or by `Retry-After`.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// Shortest wait, even if the broker requests none: it must not keep a platform busy.
const SHORTEST: Duration = Duration::from_millis(100);
/// Default time limit of an operation: the same as Cloud Foundry's.
const WITHIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Waits and deadline of polling one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSchedule {
    /// Wait before the second poll without `Retry-After`; doubles with each poll.
    pub first: Duration,
    /// Shortest wait, whatever the broker requests.
    pub shortest: Duration,
    /// Longest wait, whatever the broker requests.
    pub longest: Duration,
    /// Time limit of the operation.
    pub within: Duration,
}

/// Next step after a poll that did not end the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPoll {
    /// Poll again after this time.
    Wait(Duration),
    /// Time limit reached: stop (P-058).
    Stop,
}

impl Default for PollSchedule {
    fn default() -> Self {
        Self {
            first: FIRST,
            shortest: SHORTEST,
            longest: LONGEST,
            within: WITHIN,
        }
    }
}

impl PollSchedule {
    /// With the plan's `maximum_polling_duration`, in seconds: the smaller of both counts (P-058).
    #[must_use]
    pub fn of_plan(mut self, maximum_polling_duration: Option<u64>) -> Self {
        if let Some(seconds) = maximum_polling_duration {
            self.within = self.within.min(Duration::from_secs(seconds));
        }
        self
    }

    /// Next step after `polls` polls and `elapsed` time; `retry_after` is the wait that the broker requests.
    ///
    /// The last wait is cut so that the last poll is made when the time is over, not before.
    pub fn next(&self, polls: u32, elapsed: Duration, retry_after: Option<Duration>) -> NextPoll {
        let left = self.within.saturating_sub(elapsed);
        if left.is_zero() {
            return NextPoll::Stop;
        }
        let doubled = 2_u32.saturating_pow(polls.saturating_sub(1));
        let wished = retry_after.unwrap_or_else(|| self.first.saturating_mul(doubled));
        let bounded = wished.min(self.longest).max(self.shortest);
        NextPoll::Wait(bounded.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::{NextPoll, PollSchedule};
    use proptest::prelude::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest() {
        let schedule = PollSchedule::default();
        let waits: Vec<NextPoll> = [1, 2, 3, 9, 10, 40, u32::MAX]
            .map(|polls| schedule.next(polls, SECOND, None))
            .to_vec();
        let expected = [1, 2, 4, 256, 300, 300, 300];
        assert_eq!(
            waits,
            expected.map(|it| NextPoll::Wait(Duration::from_secs(it)))
        );
    }

    /// Holds: P-057.
    #[test]
    fn the_wait_of_the_broker_counts_within_bounds() {
        let schedule = PollSchedule::default();
        let retry_after = |seconds| schedule.next(1, SECOND, Some(Duration::from_secs(seconds)));
        assert_eq!(retry_after(7), NextPoll::Wait(7 * SECOND));
        assert_eq!(retry_after(u64::MAX), NextPoll::Wait(schedule.longest));
        assert_eq!(retry_after(0), NextPoll::Wait(schedule.shortest));
    }

    /// Holds: P-058.
    #[test]
    fn the_smaller_of_both_limits_counts() {
        let own = PollSchedule {
            within: 60 * SECOND,
            ..PollSchedule::default()
        };
        assert_eq!(own.of_plan(None).within, 60 * SECOND);
        assert_eq!(own.of_plan(Some(10)).within, 10 * SECOND);
        assert_eq!(own.of_plan(Some(3600)).within, 60 * SECOND);
    }

    #[test]
    fn the_last_poll_is_made_when_the_time_is_over() {
        let schedule = PollSchedule::default().of_plan(Some(10));
        let late = Some(60 * SECOND);
        assert_eq!(
            schedule.next(3, 8 * SECOND, late),
            NextPoll::Wait(2 * SECOND)
        );
        assert_eq!(schedule.next(4, 10 * SECOND, late), NextPoll::Stop);
    }

    proptest! {
        #[test]
        fn every_wait_is_bounded_and_polling_ends(
            polls: u32,
            elapsed in 0_u64..2_000_000,
            retry_after in proptest::option::of(0_u64..u64::MAX),
            plan in proptest::option::of(0_u64..1_000_000),
        ) {
            let schedule = PollSchedule::default().of_plan(plan);
            let elapsed = Duration::from_secs(elapsed);
            match schedule.next(polls, elapsed, retry_after.map(Duration::from_secs)) {
                NextPoll::Wait(wait) => {
                    prop_assert!(!wait.is_zero() && wait <= schedule.longest);
                    prop_assert!(elapsed + wait <= schedule.within);
                }
                NextPoll::Stop => prop_assert!(elapsed >= schedule.within),
            }
        }
    }
}
