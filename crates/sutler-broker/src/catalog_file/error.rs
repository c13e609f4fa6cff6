//! Errors of loading a catalog file: all diagnostics at once, each with its location.

use std::fmt;
use std::path::PathBuf;
use sutler_yaml::{Location, one_line};

/// Error of loading a catalog file.
#[derive(Debug, thiserror::Error)]
pub enum CatalogFileError {
    /// The file cannot be read.
    #[error("the catalog file {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The text is not YAML, or larger than allowed.
    #[error("the catalog{}: {reason}", at(*.place))]
    Yaml {
        /// Location of the error.
        place: Option<Location>,
        /// Description of the error.
        reason: String,
    },
    /// The YAML is not a valid catalog.
    #[error("{}", listed(.0))]
    Faulty(Vec<FileDiagnostic>),
    /// An error in this file.
    #[error("{}: {fault}", .path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// The error.
        fault: Box<CatalogFileError>,
    },
}

/// One diagnostic of a catalog file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiagnostic {
    /// Location in the file; of a missing key, the start of its mapping.
    pub place: Option<Location>,
    /// Path in the catalog, e.g. `services[0].plans[2].id`, or the key of a setting.
    pub path: String,
    /// Description, e.g. `must not be empty`.
    pub reason: String,
    /// Violated line of the checklist, e.g. `B-068`, if any.
    pub rule: Option<&'static str>,
}

impl fmt::Display for FileDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{} {}", one_line(&self.path), one_line(&self.reason))?;
        match self.rule {
            Some(rule) => write!(f, " ({rule})"),
            None => Ok(()),
        }
    }
}

fn at(place: Option<Location>) -> String {
    place.map_or_else(String::new, |place| format!(" has a fault at {place}"))
}

/// One line for each diagnostic.
fn listed(faults: &[FileDiagnostic]) -> String {
    let plural = if faults.len() == 1 { "fault" } else { "faults" };
    let head = format!("the catalog file has {} {plural}:", faults.len());
    let lines = faults.iter().map(|fault| format!("\n  {fault}"));
    std::iter::once(head).chain(lines).collect()
}
