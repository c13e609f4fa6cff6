//! Printed figures of the platform with their targets, and which counts missed theirs.

use crate::report::{median, print_line};

/// What was compared so far.
#[derive(Default)]
pub(super) struct Verdicts {
    missed_counts: Vec<String>,
}

/// Measurements of two sides, pair by pair.
#[derive(Default)]
pub(super) struct Pairs {
    ours: Vec<f64>,
    baseline: Vec<f64>,
}

impl Pairs {
    /// Adds a pair.
    pub(super) fn add(&mut self, ours: f64, baseline: f64) {
        self.ours.push(ours);
        self.baseline.push(baseline);
    }

    fn ratios(&self) -> Vec<f64> {
        let both = self.ours.iter().zip(&self.baseline);
        both.map(|(ours, baseline)| ours / baseline).collect()
    }

    fn line(&self, what: &str, target: &str, is_met: bool, unit: &str) -> String {
        let ratios = self.ratios();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let (ours, baseline) = (median(&self.ours), median(&self.baseline));
        let verdict = if is_met { "met" } else { "MISSED" };
        format!(
            "{what:<44} {:>6.2} ×  ({low:.2} … {high:.2})  {ours:.1} against {baseline:.1} {unit}  target {target}  {verdict}",
            median(&ratios)
        )
    }
}

impl Verdicts {
    /// A ratio that must not be larger.
    pub(super) fn at_most(&mut self, what: &str, pairs: &Pairs, most: f64, unit: &str) {
        let is_met = median(&pairs.ratios()) <= most;
        print_line(&pairs.line(what, &format!("≤ {most:.2}"), is_met, unit));
    }

    /// A ratio that must not be smaller.
    pub(super) fn at_least(&mut self, what: &str, pairs: &Pairs, least: f64, unit: &str) {
        let is_met = median(&pairs.ratios()) >= least;
        print_line(&pairs.line(what, &format!("≥ {least:.2}"), is_met, unit));
    }

    /// A number that must not be larger and depends on the clock.
    pub(super) fn value(&mut self, what: &str, value: f64, most: f64, unit: &str) {
        let verdict = if value <= most { "met" } else { "MISSED" };
        print_line(&format!(
            "{what:<44} {value:>8.3} {unit}  target ≤ {most}  {verdict}"
        ));
    }

    /// The same of a number that does not depend on the clock: the small size fails if it is missed.
    pub(super) fn count(&mut self, what: &str, value: f64, most: f64, unit: &str) {
        self.value(what, value, most, unit);
        // Also if it is not a number.
        if value.is_nan() || value > most {
            self.missed_counts.push(what.to_owned());
        }
    }

    /// The counts that missed their targets.
    pub(super) fn missed_counts(&self) -> &[String] {
        &self.missed_counts
    }
}
