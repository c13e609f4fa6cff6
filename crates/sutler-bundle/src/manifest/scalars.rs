//! Parses durations, sizes and numbers as people write them, and compares numbers exactly.
//!
//! Fields that hold them are read by `fields.rs`.

use serde_json::Number;
use std::cmp::Ordering;
use std::time::Duration;
use sutler_yaml::{DURATION_UNITS, Kind, Node, amount_text, parse_amount};

/// Longest duration, in milliseconds: thirty days.
const DURATION_MS_MAX: u64 = 30 * 86_400_000;

/// Largest size, in bytes: a tebibyte.
const SIZE_MAX: u64 = 1 << 40;

/// Units of sizes and their lengths in bytes.
const SIZE_UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("Ki", 1 << 10),
    ("MiB", 1 << 20),
    ("Mi", 1 << 20),
    ("GiB", 1 << 30),
    ("Gi", 1 << 30),
    ("kB", 1_000),
    ("k", 1_000),
    ("MB", 1_000_000),
    ("M", 1_000_000),
    ("GB", 1_000_000_000),
    ("G", 1_000_000_000),
];

/// `500ms`, `30s`, `5m`, `2h`, `1d`; a number alone is seconds. Never none at all.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let units = DURATION_UNITS.into_iter().chain([("", 1_000)]);
    let all = parse_amount(text, units).ok()?;
    (1..=DURATION_MS_MAX)
        .contains(&all)
        .then(|| Duration::from_millis(all))
}

/// A duration as a manifest has it, in the largest unit that fits.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    // Hours are the largest unit.
    amount_text(duration.as_millis(), &DURATION_UNITS[1..])
}

/// `512MiB`, `64KiB`, `1GiB`, or a number of bytes. Never none at all.
pub(crate) fn size(text: &str) -> Option<u64> {
    let all = parse_amount(text, SIZE_UNITS).ok()?;
    (1..=SIZE_MAX).contains(&all).then_some(all)
}

/// A number, perhaps in quotes.
pub(crate) fn number(node: &Node) -> Option<Number> {
    match &node.kind {
        Kind::Number(number, _) => Some(number.clone()),
        Kind::Text(text) => number_in(text),
        Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Mapping(_) => None,
    }
}

/// A number that is written as text.
pub(crate) fn number_in(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    Number::from_f64(text.parse().ok()?)
}

/// Which of two numbers is larger; whole ones are compared to the last digit.
pub(crate) fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (None, _) | (_, None) => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            let ordering = float(one).partial_cmp(&float(other));
            ordering.unwrap_or(Ordering::Equal)
        }
    }
}

/// The number, if it is whole and was written so.
pub(crate) fn whole(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use super::{duration, duration_text, size};
    use std::time::Duration;

    #[test]
    fn durations_and_sizes_have_units_and_bounds() {
        for (text, seconds) in [("90", Some(90)), ("30s", Some(30)), ("5 m", Some(300))] {
            assert_eq!(duration(text), seconds.map(Duration::from_secs), "{text}");
        }
        for text in ["", "0s", "31d", "-1s", "1y", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for (text, bytes) in [("512MiB", 512 << 20), ("1Gi", 1 << 30), ("7", 7)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["0", "2000GiB", "1TiB", "many"] {
            assert_eq!(size(text), None, "{text}");
        }
        for text in ["2h", "90m", "45s", "1500ms"] {
            let read = duration(text).expect("a duration");
            assert_eq!(duration_text(read), text);
        }
    }
}
