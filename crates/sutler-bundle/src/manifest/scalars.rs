//! Parses durations, sizes and numbers as people write them, and compares numbers exactly.
//!
//! Fields that hold them are read by `fields.rs`.

use serde_json::Number;
use std::cmp::Ordering;
use std::time::Duration;
use sutler_yaml::{Kind, Node};

/// Longest duration, in milliseconds: thirty days.
const DURATION_MS_MAX: u64 = 30 * 86_400_000;

/// Largest size, in bytes: a tebibyte.
const SIZE_MAX: u64 = 1 << 40;

/// `500ms`, `30s`, `5m`, `2h`, `1d`; a number alone is seconds. Never none at all.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (count, unit) = split(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let all = count.checked_mul(milliseconds)?;
    (1..=DURATION_MS_MAX)
        .contains(&all)
        .then(|| Duration::from_millis(all))
}

/// A duration as a manifest has it, in the largest unit that fits.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let fits = |size: u128| milliseconds > 0 && milliseconds.is_multiple_of(size);
    let unit = units.into_iter().find(|(_, size)| fits(*size));
    let (unit, size) = unit.unwrap_or(("ms", 1));
    format!("{}{unit}", milliseconds / size)
}

/// `512MiB`, `64KiB`, `1GiB`, or a number of bytes. Never none at all.
pub(crate) fn size(text: &str) -> Option<u64> {
    let (count, unit) = split(text)?;
    let bytes = match unit {
        "" | "B" => 1,
        "KiB" | "Ki" => 1 << 10,
        "MiB" | "Mi" => 1 << 20,
        "GiB" | "Gi" => 1 << 30,
        "kB" | "k" => 1_000,
        "MB" | "M" => 1_000_000,
        "GB" | "G" => 1_000_000_000,
        _ => return None,
    };
    let all = count.checked_mul(bytes)?;
    (1..=SIZE_MAX).contains(&all).then_some(all)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit());
    let (count, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    Some((count.parse().ok()?, unit.trim_start()))
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
