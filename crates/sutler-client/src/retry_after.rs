//! The `Retry-After` header: seconds, or a date (B-107, P-057).
//!
//! Only parsed here; `poll_schedule.rs` computes the wait and bounds it.

use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::Offset;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest header that is parsed, in bytes: the longest form of a date has 33.
const HEADER_BYTES_MAX: usize = 64;
/// A date format that is obsolete but must be accepted (RFC 9110).
const RFC_850: &str = "%A, %d-%b-%y %H:%M:%S GMT";
/// The format of C's `asctime`, which must be accepted too.
const ASCTIME: &str = "%a %b %e %H:%M:%S %Y";

/// When a broker expects the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// After this time.
    Wait(Duration),
    /// At this time, in seconds since 1970.
    At(i64),
}

impl RetryAfter {
    /// Parses the header; a value that is neither a number of seconds nor a date counts as absent.
    pub fn parse(header: &str) -> Option<Self> {
        let text = header.trim();
        if text.is_empty() || text.len() > HEADER_BYTES_MAX {
            return None;
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            // An overflow is longer than any wait.
            let seconds = text.parse().unwrap_or(u64::MAX);
            return Some(Self::Wait(Duration::from_secs(seconds)));
        }
        moment(text).map(Self::At)
    }

    /// The wait from now; zero if the time has passed.
    pub fn from_now(self, now: SystemTime) -> Duration {
        match self {
            Self::Wait(time) => time,
            Self::At(seconds) => {
                let moment = u64::try_from(seconds).unwrap_or(0);
                let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
                Duration::from_secs(moment).saturating_sub(since)
            }
        }
    }
}

fn moment(text: &str) -> Option<i64> {
    if let Ok(timestamp) = rfc2822::DateTimeParser::new().parse_timestamp(text) {
        return Some(timestamp.as_second());
    }
    [RFC_850, ASCTIME].iter().find_map(|form| {
        let civil = DateTime::strptime(form, text).ok()?;
        let timestamp = Offset::UTC.to_timestamp(civil).ok()?;
        Some(timestamp.as_second())
    })
}

#[cfg(test)]
mod tests {
    use super::RetryAfter;
    use std::time::{Duration, UNIX_EPOCH};

    const MOMENT: i64 = 784_111_777;

    #[test]
    fn seconds_and_all_three_forms_of_a_date_are_read() {
        assert_eq!(
            RetryAfter::parse(" 120 "),
            Some(RetryAfter::Wait(Duration::from_secs(120)))
        );
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(
                RetryAfter::parse(date),
                Some(RetryAfter::At(MOMENT)),
                "{date}"
            );
        }
    }

    #[test]
    fn an_invalid_retry_after_counts_as_absent() {
        for header in ["", "soon", "-1", "1.5", "0x10", "1e9", "Sun, 06 Nov 1994"] {
            assert_eq!(RetryAfter::parse(header), None, "{header}");
        }
        let long = "1".repeat(65);
        assert_eq!(RetryAfter::parse(&long), None);
    }

    #[test]
    fn an_overflowing_number_of_seconds_is_the_maximum() {
        let endless = RetryAfter::parse("99999999999999999999999").expect("a number");
        assert_eq!(endless.from_now(UNIX_EPOCH), Duration::from_secs(u64::MAX));
    }

    #[test]
    fn a_date_is_a_wait_until_then_and_no_wait_once_it_has_passed() {
        let at = RetryAfter::At(MOMENT);
        let before = UNIX_EPOCH + Duration::from_secs(784_111_700);
        let after = UNIX_EPOCH + Duration::from_secs(784_111_800);
        assert_eq!(at.from_now(before), Duration::from_secs(77));
        assert_eq!(at.from_now(after), Duration::ZERO);
        assert_eq!(RetryAfter::At(-5).from_now(before), Duration::ZERO);
    }
}
