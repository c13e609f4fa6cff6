//! Results of checks: faults and warnings, each with the path of the value it is about. Pure.
//!
//! `sources.rs` adds the place where the value was written. The rules are in `check.rs` and `blocks/`.

/// Faults and warnings, by path.
#[derive(Debug, Default)]
pub(super) struct CheckFindings {
    pub(super) faults: Vec<(String, String)>,
    pub(super) warnings: Vec<(String, String)>,
}

impl CheckFindings {
    pub(super) fn fault(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.faults.push((path.into(), reason.into()));
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.warnings.push((path.into(), reason.into()));
    }
}
