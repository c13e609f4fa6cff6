//! The `Retry-After` header: seconds, or a date (B-107, P-057).
//!
//! Only read here; how long is waited in the end, and that it stays within bounds, is `schedule.rs`.

use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::Offset;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest header that is looked at, in bytes: the longest form of a date has 33.
const HEADER_BYTES_MAX: usize = 64;
/// The form of a date that RFC 9110 calls obsolete and still wants to be read.
const RFC_850: &str = "%A, %d-%b-%y %H:%M:%S GMT";
/// The form of C's `asctime`, which it wants to be read too.
const ASCTIME: &str = "%a %b %e %H:%M:%S %Y";

/// When a broker wants to be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// After so long.
    Wait(Duration),
    /// At a moment, in seconds since 1970.
    At(i64),
}

impl RetryAfter {
    /// Reads the header; what is neither a number of seconds nor a date counts as absent.
    pub fn parse(header: &str) -> Option<Self> {
        let text = header.trim();
        if text.is_empty() || text.len() > HEADER_BYTES_MAX {
            return None;
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More seconds than can be counted are more than anybody will wait.
            let seconds = text.parse().unwrap_or(u64::MAX);
            return Some(Self::Wait(Duration::from_secs(seconds)));
        }
        moment(text).map(Self::At)
    }

    /// How long that is from now; nothing if the moment is over.
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
    fn what_is_no_number_and_no_date_counts_as_absent() {
        for header in ["", "soon", "-1", "1.5", "0x10", "1e9", "Sun, 06 Nov 1994"] {
            assert_eq!(RetryAfter::parse(header), None, "{header}");
        }
        let long = "1".repeat(65);
        assert_eq!(RetryAfter::parse(&long), None);
    }

    #[test]
    fn more_seconds_than_can_be_counted_are_the_most_there_are() {
        let endless = RetryAfter::parse("99999999999999999999999").expect("a number");
        assert_eq!(endless.from_now(UNIX_EPOCH), Duration::from_secs(u64::MAX));
    }

    #[test]
    fn a_moment_is_a_wait_until_then_and_none_once_it_is_over() {
        let at = RetryAfter::At(MOMENT);
        let before = UNIX_EPOCH + Duration::from_secs(784_111_700);
        let after = UNIX_EPOCH + Duration::from_secs(784_111_800);
        assert_eq!(at.from_now(before), Duration::from_secs(77));
        assert_eq!(at.from_now(after), Duration::ZERO);
        assert_eq!(RetryAfter::At(-5).from_now(before), Duration::ZERO);
    }
}
