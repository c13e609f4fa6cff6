//! How long to wait before the next poll, and when to stop. Pure: time comes in as numbers.

use std::time::Duration;

/// First wait where the broker does not say.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait, whether by back-off or by `Retry-After`.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// Shortest wait, even if the broker says none: it must not keep a platform busy.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long an operation may take where neither side says: what Cloud Foundry waits.
const WITHIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The rhythm of polling one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The wait before the second poll where the broker does not say; it doubles from then on.
    pub first: Duration,
    /// The shortest wait, whatever the broker says.
    pub shortest: Duration,
    /// The longest wait, whatever the broker says.
    pub longest: Duration,
    /// How long the operation may take.
    pub within: Duration,
}

/// What to do after a poll that was not the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Poll again after so long.
    Wait(Duration),
    /// It has taken too long: stop (P-058).
    Stop,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: FIRST,
            shortest: SHORTEST,
            longest: LONGEST,
            within: WITHIN,
        }
    }
}

impl Pace {
    /// With the plan's `maximum_polling_duration`, in seconds: the smaller of both counts (P-058).
    #[must_use]
    pub fn of_plan(mut self, maximum_polling_duration: Option<u64>) -> Self {
        if let Some(seconds) = maximum_polling_duration {
            self.within = self.within.min(Duration::from_secs(seconds));
        }
        self
    }

    /// What to do after so many polls and so much time; `said` is what `Retry-After` asks for.
    ///
    /// The last wait is cut so that the last poll is made when the time is over, not before.
    pub fn next(&self, polls: u32, elapsed: Duration, said: Option<Duration>) -> Next {
        let left = self.within.saturating_sub(elapsed);
        if left.is_zero() {
            return Next::Stop;
        }
        let doubled = 2_u32.saturating_pow(polls.saturating_sub(1));
        let wished = said.unwrap_or_else(|| self.first.saturating_mul(doubled));
        let bounded = wished.min(self.longest).max(self.shortest);
        Next::Wait(bounded.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, Pace};
    use proptest::prelude::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest() {
        let pace = Pace::default();
        let waits: Vec<Next> = [1, 2, 3, 9, 10, 40, u32::MAX]
            .map(|polls| pace.next(polls, SECOND, None))
            .to_vec();
        let expected = [1, 2, 4, 256, 300, 300, 300];
        assert_eq!(
            waits,
            expected.map(|it| Next::Wait(Duration::from_secs(it)))
        );
    }

    /// P-057.
    #[test]
    fn what_the_broker_says_counts_within_bounds() {
        let pace = Pace::default();
        let said = |seconds| pace.next(1, SECOND, Some(Duration::from_secs(seconds)));
        assert_eq!(said(7), Next::Wait(7 * SECOND));
        assert_eq!(said(u64::MAX), Next::Wait(pace.longest));
        assert_eq!(said(0), Next::Wait(pace.shortest));
    }

    /// P-058.
    #[test]
    fn the_smaller_of_both_limits_counts() {
        let own = Pace {
            within: 60 * SECOND,
            ..Pace::default()
        };
        assert_eq!(own.of_plan(None).within, 60 * SECOND);
        assert_eq!(own.of_plan(Some(10)).within, 10 * SECOND);
        assert_eq!(own.of_plan(Some(3600)).within, 60 * SECOND);
    }

    #[test]
    fn the_last_poll_is_made_when_the_time_is_over() {
        let pace = Pace::default().of_plan(Some(10));
        let late = Some(60 * SECOND);
        assert_eq!(pace.next(3, 8 * SECOND, late), Next::Wait(2 * SECOND));
        assert_eq!(pace.next(4, 10 * SECOND, late), Next::Stop);
    }

    proptest! {
        #[test]
        fn every_wait_is_bounded_and_polling_ends(
            polls: u32,
            elapsed in 0_u64..2_000_000,
            said in proptest::option::of(0_u64..u64::MAX),
            plan in proptest::option::of(0_u64..1_000_000),
        ) {
            let pace = Pace::default().of_plan(plan);
            let elapsed = Duration::from_secs(elapsed);
            match pace.next(polls, elapsed, said.map(Duration::from_secs)) {
                Next::Wait(wait) => {
                    prop_assert!(!wait.is_zero() && wait <= pace.longest);
                    prop_assert!(elapsed + wait <= pace.within);
                }
                Next::Stop => prop_assert!(elapsed >= pace.within),
            }
        }
    }
}
