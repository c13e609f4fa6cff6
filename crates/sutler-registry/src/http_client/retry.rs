//! Schedule of retries, and the `Retry-After` header. Pure.

use jiff::fmt::rfc2822::DateTimeParser;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum length of the header, in bytes.
const HEADER_BYTES_MAX: usize = 64;

/// Number and times of retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule {
    /// Maximum number of attempts.
    pub tries: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub first_wait: Duration,
    /// Maximum wait. If a server asks for a longer one, the request is not retried.
    pub wait_max: Duration,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self {
            tries: 3,
            first_wait: Duration::from_millis(250),
            wait_max: Duration::from_secs(20),
        }
    }
}

impl RetrySchedule {
    /// Wait before the next attempt after `tried` attempts; `None` if there is none.
    pub(super) fn wait(&self, tried: u32, asked_for: Option<Duration>) -> Option<Duration> {
        if tried >= self.tries {
            return None;
        }
        let doubled = 2_u32.saturating_pow(tried.saturating_sub(1));
        let own = self.first_wait.saturating_mul(doubled).min(self.wait_max);
        match asked_for {
            Some(wait) if wait > self.wait_max => None,
            Some(wait) => Some(wait.max(own)),
            None => Some(own),
        }
    }
}

/// Parses `Retry-After`: seconds or a date. Other values count as absent.
pub(crate) fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let text = header.trim();
    if text.is_empty() || text.len() > HEADER_BYTES_MAX {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // An overflow is longer than any accepted wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = DateTimeParser::new().parse_timestamp(text).ok()?;
    let moment = Duration::from_secs(u64::try_from(moment.as_second()).unwrap_or(0));
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(moment.saturating_sub(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let pace = RetrySchedule::default();
        let millis = |tried| pace.wait(tried, None).map(|it| it.as_millis());
        assert_eq!(
            [millis(1), millis(2), millis(3)],
            [Some(250), Some(500), None]
        );
    }

    #[test]
    fn a_server_is_given_the_time_it_wants_within_reason() {
        let pace = RetrySchedule::default();
        let after = |seconds| pace.wait(1, Some(Duration::from_secs(seconds)));
        assert_eq!(after(7), Some(Duration::from_secs(7)));
        assert_eq!(after(0), Some(pace.first_wait));
        assert_eq!(after(3600), None);
    }

    #[test]
    fn the_wish_of_a_server_is_seconds_or_a_moment() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let read = |text| retry_after(text, now).map(|it| it.as_secs());
        assert_eq!(read(" 12 "), Some(12));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(read("Sun, 06 Nov 1983 08:49:37 GMT"), Some(0));
        for none in ["", "soon", "-1", &"1".repeat(65)] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
