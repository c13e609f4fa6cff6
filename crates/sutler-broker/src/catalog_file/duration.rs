//! Durations as Spring reads them: `10d`, `500ms`, `P10D`, `PT2H`, or a plain number of milliseconds.
//!
//! Not read by `sutler_yaml::parse_amount`: Spring accepts signs, any case, nanoseconds and ISO 8601.

use jiff::{Span, SpanRelativeTo};
use std::time::Duration;

/// Maximum duration: a hundred years.
const DAYS_MAX: u64 = 36_500;

/// Parses a duration, or returns the reason.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let is_iso = text.trim_start_matches(['+', '-']).starts_with(['P', 'p']);
    let duration = if is_iso { iso(text) } else { simple(text) };
    let duration =
        duration.ok_or("must be a duration such as `10d`, `2h`, `30m`, `1s`, `500ms` or `PT2H`")?;
    if duration > Duration::from_secs(DAYS_MAX * 24 * 60 * 60) {
        return Err(format!("must not be longer than {DAYS_MAX} days"));
    }
    Ok(duration)
}

fn simple(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (count, unit) = text.split_at(unit_at);
    let count: u64 = count.parse().ok()?;
    let seconds = |seconds: u64| count.checked_mul(seconds).map(Duration::from_secs);
    match unit.to_ascii_lowercase().as_str() {
        "ns" => Some(Duration::from_nanos(count)),
        "us" => Some(Duration::from_micros(count)),
        "" | "ms" => Some(Duration::from_millis(count)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(60 * 60),
        "d" => seconds(24 * 60 * 60),
        _ => None,
    }
}

/// `java.time.Duration` knows days and smaller units; a month has no fixed length.
fn iso(text: &str) -> Option<Duration> {
    let span: Span = text.to_ascii_uppercase().parse().ok()?;
    if span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0 {
        return None;
    }
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}
