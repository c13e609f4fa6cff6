//! All faults of a catalog, collected in one pass.
//!
//! The rules that find faults are in `load.rs` and `schema.rs`.

use std::fmt;

/// One fault: path, reason, and the line of the checklist that it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogFault {
    /// Where, e.g. `services[0].plans[2].id`.
    pub path: String,
    /// Reason, e.g. `must not be empty`.
    pub reason: String,
    /// The checklist's line, e.g. `B-068`.
    pub rule: &'static str,
}

impl fmt::Display for CatalogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.path, self.reason, self.rule)
    }
}

/// Why a catalog did not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogFaults {
    /// Each breaks a rule; at least one.
    pub faults: Vec<CatalogFault>,
    /// Broken recommendations; alone they do not make a catalog invalid.
    pub warnings: Vec<CatalogFault>,
}

impl CatalogFaults {
    pub(super) fn no_services() -> Self {
        let fault = CatalogFault {
            path: "services".to_owned(),
            reason: "is required, though it may be an empty list".to_owned(),
            rule: "B-050",
        };
        Self {
            faults: vec![fault],
            warnings: Vec::new(),
        }
    }
}

/// One line for each fault.
impl fmt::Display for CatalogFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.faults.len() == 1 {
            "fault"
        } else {
            "faults"
        };
        write!(f, "the catalog has {} {plural}:", self.faults.len())?;
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for CatalogFaults {}

/// Collects faults and warnings while a catalog is checked.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<CatalogFault>,
    pub(super) warnings: Vec<CatalogFault>,
}

impl Findings {
    /// Records that a rule is broken.
    pub(super) fn fault(&mut self, path: String, reason: impl Into<String>, rule: &'static str) {
        self.faults.push(CatalogFault {
            path,
            reason: reason.into(),
            rule,
        });
    }

    /// Records that a recommendation is not followed.
    pub(super) fn warn(&mut self, path: String, reason: impl Into<String>, rule: &'static str) {
        self.warnings.push(CatalogFault {
            path,
            reason: reason.into(),
            rule,
        });
    }
}
