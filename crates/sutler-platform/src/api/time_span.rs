//! Durations in bodies and queries: a number and a unit, e.g. `500ms`, `30s`, `5m`, `2h`, `10d`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Units with their milliseconds, from the longest.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
/// Longest duration: a hundred years.
const SPAN_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct TimeSpan(pub Duration);

/// A text that is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a duration such as `500ms`, `30s`, `5m`, `2h` or `10d`, of at most a hundred years"
)]
pub(crate) struct TimeSpanError;

impl TryFrom<&str> for TimeSpan {
    type Error = TimeSpanError;

    fn try_from(text: &str) -> Result<Self, TimeSpanError> {
        let end = text.find(|c: char| !c.is_ascii_digit());
        let (digits, unit) = text.split_at(end.ok_or(TimeSpanError)?);
        let known = UNITS.iter().find(|(known, _)| *known == unit);
        let amount: Option<u64> = digits.parse().ok();
        let milliseconds = known
            .zip(amount)
            .and_then(|((_, unit), amount)| amount.checked_mul(*unit));
        let span = milliseconds.map(Duration::from_millis);
        span.filter(|span| *span <= SPAN_MAX)
            .map(Self)
            .ok_or(TimeSpanError)
    }
}

impl TryFrom<String> for TimeSpan {
    type Error = TimeSpanError;

    fn try_from(text: String) -> Result<Self, TimeSpanError> {
        Self::try_from(text.as_str())
    }
}

impl From<TimeSpan> for String {
    fn from(span: TimeSpan) -> Self {
        span.to_string()
    }
}

/// With the longest unit that needs no fraction.
impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        let fits = |(_, unit): &&(&str, u64)| milliseconds.is_multiple_of(u128::from(*unit));
        let unit = UNITS.iter().find(fits).filter(|_| milliseconds > 0);
        match unit {
            Some((name, unit)) => write!(f, "{}{name}", milliseconds / u128::from(*unit)),
            None => f.write_str("0s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TimeSpan;
    use std::time::Duration;

    #[test]
    fn a_duration_is_read_as_it_is_written() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("2h", 7_200), ("10d", 864_000)] {
            let span = TimeSpan::try_from(text).expect("a duration");
            assert_eq!(span.0, Duration::from_secs(seconds));
            assert_eq!(span.to_string(), text);
        }
        assert_eq!(TimeSpan(Duration::from_millis(1_500)).to_string(), "1500ms");
        assert_eq!(TimeSpan(Duration::ZERO).to_string(), "0s");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "1.5h",
            "5 s",
            "5y",
            "36501d",
            "99999999999999999999s",
        ] {
            assert!(TimeSpan::try_from(text).is_err(), "{text}");
        }
    }
}
