//! Printed lines: a ratio, its target, and whether it was met.

use std::io::Write as _;

/// Prints one line.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a ratio with its target.
pub(crate) fn ratio(what: &str, ratios: &[f64], target: f64) {
    let median = median(ratios);
    let verdict = if median >= target { "met" } else { "MISSED" };
    let (low, high) = (smallest(ratios), largest(ratios));
    print_line(&format!(
        "{what:<44} {median:>6.2} ×  ({low:.2} … {high:.2})  target ≥ {target:.2}  {verdict}"
    ));
}

/// Prints a value that must stay below a bound.
pub(crate) fn bound(what: &str, value: f64, most: f64, unit: &str) {
    let verdict = if value <= most { "met" } else { "MISSED" };
    print_line(&format!(
        "{what:<44} {value:>8.2} {unit}  target ≤ {most:.2}  {verdict}"
    ));
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
