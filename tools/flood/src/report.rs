//! The table, and the verdicts.

use crate::users::UserLatency;
use std::time::Duration;

/// Measurements of one attack.
pub(crate) struct Row {
    pub name: String,
    pub baseline: UserLatency,
    pub attacked: UserLatency,
}

impl Row {
    /// The users' p99 under attack, as a multiple of the one before.
    pub(crate) fn ratio(&self) -> f64 {
        let seconds = |it: &UserLatency| it.percentile(99).as_secs_f64();
        seconds(&self.attacked) / seconds(&self.baseline).max(f64::EPSILON)
    }

    pub(crate) fn line(&self) -> String {
        let ms = |it: Duration| it.as_secs_f64() * 1000.0;
        format!(
            "{:<34} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>7.2} {:>9} {:>6}",
            self.name,
            ms(self.baseline.percentile(50)),
            ms(self.baseline.percentile(99)),
            ms(self.attacked.percentile(50)),
            ms(self.attacked.percentile(99)),
            self.ratio(),
            self.attacked.count(),
            self.attacked.unanswered,
        )
    }
}

/// The head of the table. Times are in milliseconds.
pub(crate) fn head() -> String {
    format!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>6}",
        "attack", "calm p50", "calm p99", "p50", "p99", "ratio", "answers", "failed"
    )
}

/// One guarantee, and whether it held.
pub(crate) fn verdict(held: bool, what: &str) -> (bool, String) {
    let word = if held { "met   " } else { "MISSED" };
    (held, format!("{word} {what}"))
}
