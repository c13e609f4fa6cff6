//! When an issuer's keys are fetched: pure, the times are given.

use std::time::Duration;
use tokio::time::Instant;

/// The choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rhythm {
    /// Keys older than this are fetched again, while they go on working.
    pub refresh: Duration,
    /// Least time between two fetches, whatever tokens name.
    pub pause: Duration,
    /// How long keys work while the issuer cannot be reached.
    pub trusted: Duration,
}

/// What is known of earlier fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// When the keys were fetched that are there.
    pub fetched: Option<Instant>,
    /// When it was last tried.
    pub tried: Option<Instant>,
    /// Whether the last try failed.
    pub failed: bool,
}

/// What to do about a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Check it with the keys that are there.
    Use,
    /// The same, and fetch in the background.
    UseAndRefresh,
    /// Fetch, then look again.
    Fetch,
    /// Nobody knows its key: refuse it.
    Unknown,
    /// Keys cannot be had now: it is not the token's fault.
    Unavailable,
}

/// What to do about a token whose key is known, or not.
pub(super) fn step(known: bool, times: Times, rhythm: Rhythm, now: Instant) -> Step {
    let age = |since: Option<Instant>| since.map(|it| now.saturating_duration_since(it));
    let may_fetch = age(times.tried).is_none_or(|it| it >= rhythm.pause);
    let (trusted, due) = match age(times.fetched) {
        Some(age) => (age < rhythm.trusted, age >= rhythm.refresh),
        None => (false, true),
    };
    match (trusted, known) {
        (true, true) if due && may_fetch => Step::UseAndRefresh,
        (true, true) => Step::Use,
        (false, _) | (true, false) if may_fetch => Step::Fetch,
        (true, false) if !times.failed => Step::Unknown,
        (false, _) | (true, false) => Step::Unavailable,
    }
}

/// What to do after a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The keys that are there decide.
    Decide,
    /// They are none that could.
    Unavailable,
}

/// What to do about a token that waited for a fetch. If it failed, only a known key that is still
/// trusted decides.
pub(super) fn after_fetch(known: bool, times: Times, rhythm: Rhythm, now: Instant) -> Fetched {
    let age = times.fetched.map(|it| now.saturating_duration_since(it));
    let trusted = age.is_some_and(|it| it < rhythm.trusted);
    if !times.failed || (trusted && known) {
        Fetched::Decide
    } else {
        Fetched::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::{Fetched, Rhythm, Step, Times, after_fetch, step};
    use std::time::Duration;
    use tokio::time::Instant;

    const RHYTHM: Rhythm = Rhythm {
        refresh: Duration::from_secs(600),
        pause: Duration::from_secs(10),
        trusted: Duration::from_secs(86_400),
    };

    /// The step for keys fetched and tried so many seconds ago.
    fn after(known: bool, fetched: Option<u64>, tried: Option<u64>, failed: bool) -> Step {
        let now = Instant::now() + Duration::from_secs(1_000_000);
        let ago = |seconds: u64| now - Duration::from_secs(seconds);
        let times = Times {
            fetched: fetched.map(ago),
            tried: tried.map(ago),
            failed,
        };
        step(known, times, RHYTHM, now)
    }

    #[test]
    fn known_keys_work_and_are_refreshed_beside_it() {
        assert_eq!(after(true, Some(0), Some(0), false), Step::Use);
        assert_eq!(after(true, Some(599), Some(599), false), Step::Use);
        assert_eq!(
            after(true, Some(600), Some(600), false),
            Step::UseAndRefresh
        );
        assert_eq!(after(true, Some(600), Some(9), true), Step::Use);
        assert_eq!(
            after(true, Some(86_399), Some(10), true),
            Step::UseAndRefresh
        );
    }

    #[test]
    fn known_keys_work_for_a_bounded_time_without_their_issuer() {
        assert_eq!(after(true, Some(86_399), Some(1), true), Step::Use);
        assert_eq!(after(true, Some(86_400), Some(10), true), Step::Fetch);
        assert_eq!(after(true, Some(86_400), Some(1), true), Step::Unavailable);
    }

    #[test]
    fn after_a_failed_fetch_only_known_and_trusted_keys_decide() {
        let now = Instant::now() + Duration::from_secs(1_000_000);
        let verdict = |known, fetched: Option<u64>, failed| {
            let fetched = fetched.map(|seconds| now - Duration::from_secs(seconds));
            let tried = Some(now);
            let times = Times {
                fetched,
                tried,
                failed,
            };
            after_fetch(known, times, RHYTHM, now)
        };
        assert_eq!(verdict(true, Some(0), false), Fetched::Decide);
        assert_eq!(verdict(false, Some(0), false), Fetched::Decide);
        assert_eq!(verdict(true, Some(86_399), true), Fetched::Decide);
        assert_eq!(verdict(true, Some(86_400), true), Fetched::Unavailable);
        assert_eq!(verdict(false, Some(1), true), Fetched::Unavailable);
        assert_eq!(verdict(true, None, true), Fetched::Unavailable);
    }

    #[test]
    fn unknown_keys_are_fetched_but_not_too_often() {
        assert_eq!(after(false, None, None, false), Step::Fetch);
        assert_eq!(after(false, None, Some(1), true), Step::Unavailable);
        assert_eq!(after(false, None, Some(10), true), Step::Fetch);
        assert_eq!(after(false, Some(5), Some(5), false), Step::Unknown);
        assert_eq!(after(false, Some(10), Some(10), false), Step::Fetch);
        assert_eq!(after(false, Some(100), Some(1), true), Step::Unavailable);
    }
}
