//! Decides when an issuer's keys are fetched. Pure; the caller passes the times.

use std::time::Duration;
use tokio::time::Instant;

/// Intervals of fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefreshSchedule {
    /// Age at which keys are fetched again, while they stay in use.
    pub refresh: Duration,
    /// Minimum time between two fetches.
    pub pause: Duration,
    /// How long keys stay trusted while the issuer is unreachable.
    pub trusted: Duration,
}

/// Times of earlier fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FetchTimes {
    /// Last successful fetch.
    pub fetched: Option<Instant>,
    /// Last attempt.
    pub tried: Option<Instant>,
    /// Whether the last attempt failed.
    pub failed: bool,
}

/// How to proceed with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyDecision {
    /// Verify it with the present keys.
    Use,
    /// The same, and fetch in the background.
    UseAndRefresh,
    /// Fetch, then verify.
    Fetch,
    /// The key is unknown: refuse the token.
    Unknown,
    /// Keys are unavailable now: not the token's fault.
    Unavailable,
}

/// How to proceed with a token whose key is known, or not.
pub(super) fn step(
    known: bool,
    times: FetchTimes,
    schedule: RefreshSchedule,
    now: Instant,
) -> KeyDecision {
    let age = |since: Option<Instant>| since.map(|it| now.saturating_duration_since(it));
    let may_fetch = age(times.tried).is_none_or(|it| it >= schedule.pause);
    let (trusted, due) = match age(times.fetched) {
        Some(age) => (age < schedule.trusted, age >= schedule.refresh),
        None => (false, true),
    };
    match (trusted, known) {
        (true, true) if due && may_fetch => KeyDecision::UseAndRefresh,
        (true, true) => KeyDecision::Use,
        (false, _) | (true, false) if may_fetch => KeyDecision::Fetch,
        (true, false) if !times.failed => KeyDecision::Unknown,
        (false, _) | (true, false) => KeyDecision::Unavailable,
    }
}

/// How to proceed after a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchVerdict {
    /// The present keys decide.
    Decide,
    /// There are no usable keys.
    Unavailable,
}

/// How to proceed with a token that waited for a fetch. If the fetch failed, only a known key that is still trusted
/// decides.
pub(super) fn after_fetch(
    known: bool,
    times: FetchTimes,
    schedule: RefreshSchedule,
    now: Instant,
) -> FetchVerdict {
    let age = times.fetched.map(|it| now.saturating_duration_since(it));
    let trusted = age.is_some_and(|it| it < schedule.trusted);
    if !times.failed || (trusted && known) {
        FetchVerdict::Decide
    } else {
        FetchVerdict::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchTimes, FetchVerdict, KeyDecision, RefreshSchedule, after_fetch, step};
    use std::time::Duration;
    use tokio::time::Instant;

    const RHYTHM: RefreshSchedule = RefreshSchedule {
        refresh: Duration::from_secs(600),
        pause: Duration::from_secs(10),
        trusted: Duration::from_secs(86_400),
    };

    /// The step for keys fetched and tried this number of seconds ago.
    fn after(known: bool, fetched: Option<u64>, tried: Option<u64>, failed: bool) -> KeyDecision {
        let now = Instant::now() + Duration::from_secs(1_000_000);
        let ago = |seconds: u64| now - Duration::from_secs(seconds);
        let times = FetchTimes {
            fetched: fetched.map(ago),
            tried: tried.map(ago),
            failed,
        };
        step(known, times, RHYTHM, now)
    }

    #[test]
    fn known_keys_are_used_while_they_are_refreshed() {
        assert_eq!(after(true, Some(0), Some(0), false), KeyDecision::Use);
        assert_eq!(after(true, Some(599), Some(599), false), KeyDecision::Use);
        assert_eq!(
            after(true, Some(600), Some(600), false),
            KeyDecision::UseAndRefresh
        );
        assert_eq!(after(true, Some(600), Some(9), true), KeyDecision::Use);
        assert_eq!(
            after(true, Some(86_399), Some(10), true),
            KeyDecision::UseAndRefresh
        );
    }

    #[test]
    fn known_keys_work_for_a_bounded_time_without_their_issuer() {
        assert_eq!(after(true, Some(86_399), Some(1), true), KeyDecision::Use);
        assert_eq!(
            after(true, Some(86_400), Some(10), true),
            KeyDecision::Fetch
        );
        assert_eq!(
            after(true, Some(86_400), Some(1), true),
            KeyDecision::Unavailable
        );
    }

    #[test]
    fn after_a_failed_fetch_only_known_and_trusted_keys_decide() {
        let now = Instant::now() + Duration::from_secs(1_000_000);
        let verdict = |known, fetched: Option<u64>, failed| {
            let fetched = fetched.map(|seconds| now - Duration::from_secs(seconds));
            let tried = Some(now);
            let times = FetchTimes {
                fetched,
                tried,
                failed,
            };
            after_fetch(known, times, RHYTHM, now)
        };
        assert_eq!(verdict(true, Some(0), false), FetchVerdict::Decide);
        assert_eq!(verdict(false, Some(0), false), FetchVerdict::Decide);
        assert_eq!(verdict(true, Some(86_399), true), FetchVerdict::Decide);
        assert_eq!(verdict(true, Some(86_400), true), FetchVerdict::Unavailable);
        assert_eq!(verdict(false, Some(1), true), FetchVerdict::Unavailable);
        assert_eq!(verdict(true, None, true), FetchVerdict::Unavailable);
    }

    #[test]
    fn unknown_keys_are_fetched_but_not_too_often() {
        assert_eq!(after(false, None, None, false), KeyDecision::Fetch);
        assert_eq!(after(false, None, Some(1), true), KeyDecision::Unavailable);
        assert_eq!(after(false, None, Some(10), true), KeyDecision::Fetch);
        assert_eq!(after(false, Some(5), Some(5), false), KeyDecision::Unknown);
        assert_eq!(after(false, Some(10), Some(10), false), KeyDecision::Fetch);
        assert_eq!(
            after(false, Some(100), Some(1), true),
            KeyDecision::Unavailable
        );
    }
}
