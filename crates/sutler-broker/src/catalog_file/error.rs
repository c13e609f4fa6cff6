//! Why a catalog file did not load: all of it at once, each fault with its place.

use std::fmt;
use std::path::PathBuf;
use sutler_yaml::{Location, one_line};

/// Why a catalog file did not load.
#[derive(Debug, thiserror::Error)]
pub enum CatalogFileError {
    /// The file cannot be read.
    #[error("the catalog file {} cannot be read", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not YAML, or more of it than a catalog can be.
    #[error("the catalog{}: {reason}", at(*.place))]
    Yaml {
        /// Where the reader stopped.
        place: Option<Location>,
        /// What it found there.
        reason: String,
    },
    /// It is YAML, and says something that cannot be.
    #[error("{}", listed(.0))]
    Faulty(Vec<FileDiagnostic>),
    /// Something is wrong with what stands in this file.
    #[error("{}: {fault}", .path.display())]
    In {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Box<CatalogFileError>,
    },
}

/// One fault of a catalog file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiagnostic {
    /// Where in the file; of something missing, where the thing begins that lacks it.
    pub place: Option<Location>,
    /// Where in the catalog, e.g. `services[0].plans[2].id`, or the key of a setting.
    pub path: String,
    /// What, e.g. `must not be empty`.
    pub reason: String,
    /// The checklist's line, e.g. `B-068`, if it breaks one.
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

/// One line for each fault.
fn listed(faults: &[FileDiagnostic]) -> String {
    let plural = if faults.len() == 1 { "fault" } else { "faults" };
    let head = format!("the catalog file has {} {plural}:", faults.len());
    let lines = faults.iter().map(|fault| format!("\n  {fault}"));
    std::iter::once(head).chain(lines).collect()
}
