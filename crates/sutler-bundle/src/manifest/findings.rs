//! Faults and warnings of a manifest, each with its location in the file.
//!
//! The readers in this folder add findings; most come from `fields.rs`.

use std::fmt;
use sutler_yaml::{Location, one_line};

/// A fault or a warning of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFinding {
    /// Location in the file; for a missing field, the start of the object that lacks it.
    pub place: Option<Location>,
    /// Path in the manifest, e.g. `plans[0].parameters[2].type`; empty at the top.
    pub path: String,
    /// The reason, as the rest of a sentence that begins with the path.
    pub reason: String,
}

impl ManifestFinding {
    /// `bundle.yml:3:5: plans[0].name is required`, the form that editors and build logs recognise.
    #[must_use]
    pub fn in_file(&self, file: &str) -> String {
        match self.place {
            Some(Location { line, column }) => {
                format!("{file}:{line}:{column}: {}", self.sentence())
            }
            None => format!("{file}: {}", self.sentence()),
        }
    }

    /// Path and reason, without the location.
    #[must_use]
    pub fn sentence(&self) -> String {
        let path = match self.path.as_str() {
            "" => "the manifest",
            path => path,
        };
        format!("{} {}", one_line(path), one_line(&self.reason))
    }
}

/// Why a manifest did not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The file's name.
    pub file: String,
    /// Faults that keep the manifest from loading; at least one, in the order of the file.
    pub faults: Vec<ManifestFinding>,
    /// Warnings, in the order of the file.
    pub warnings: Vec<ManifestFinding>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = match self.faults.len() {
            1 => "fault",
            _ => "faults",
        };
        let count = self.faults.len();
        write!(f, "the manifest {} has {count} {plural}:", self.file)?;
        let mut faults = self.faults.iter();
        faults.try_for_each(|fault| write!(f, "\n  {}", fault.in_file(&self.file)))
    }
}

impl std::error::Error for ManifestError {}

/// Form of a manifest file; it decides how strictly it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestForm {
    /// `bundle.yml`: an unknown key is a fault.
    Bundle,
    /// `apb.yml`: an unknown key is a warning, because Automation Broker ignored it.
    Apb,
}

/// Collects faults and warnings while a manifest is read.
pub(crate) struct ManifestFindings {
    pub(crate) form: ManifestForm,
    pub(crate) faults: Vec<ManifestFinding>,
    pub(crate) warnings: Vec<ManifestFinding>,
}

impl ManifestFindings {
    pub(crate) fn new(form: ManifestForm) -> Self {
        Self {
            form,
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a fault.
    pub(crate) fn fault(&mut self, place: Location, path: &str, reason: impl Into<String>) {
        self.faults.push(finding(place, path, reason));
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, place: Location, path: &str, reason: impl Into<String>) {
        self.warnings.push(finding(place, path, reason));
    }

    /// Adds a fault to a new manifest, or a warning to an old one; the warning ends with how the value is treated
    /// instead.
    pub(crate) fn doubt(&mut self, place: Location, path: &str, reason: &str, instead: &str) {
        match self.form {
            ManifestForm::Bundle => self.fault(place, path, reason),
            ManifestForm::Apb => self.warn(place, path, format!("{reason}; {instead}")),
        }
    }
}

fn finding(place: Location, path: &str, reason: impl Into<String>) -> ManifestFinding {
    ManifestFinding {
        // Line 0 means that the location is unknown.
        place: (place.line > 0).then_some(place),
        path: path.to_owned(),
        reason: reason.into(),
    }
}
