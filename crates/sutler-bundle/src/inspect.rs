//! Inspects a bundle: manifest, scripts and folder, all findings at once, with hints.
//!
//! [`inspect`] backs `sutler bundle check`. Checks that need only names and the manifest are `inspect/checks.rs`,
//! which reads no files.

mod checks;

use crate::folder::{self, EntryKind, FolderEntry, FolderError};
use crate::manifest::{Manifest, ManifestFinding};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use sutler_yaml::Location;

/// Bytes of an executable file that are read: enough for its first line.
const HEAD_BYTES: u64 = 256;

/// Bytes of an entry point that are read: more than a script has.
const ENTRY_BYTES: u64 = 256 * 1024;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The bundle will not work.
    Error,
    /// Probably a mistake.
    Warning,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A finding about a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectionFinding {
    /// Its severity.
    pub severity: Severity,
    /// The file, below the bundle's folder.
    pub file: String,
    /// Where in the file.
    pub place: Option<Location>,
    /// A sentence that also says what to do.
    pub message: String,
}

impl InspectionFinding {
    /// `bundle.yml:3:5: error: …`, the form that editors and build logs recognise.
    #[must_use]
    pub fn line(&self) -> String {
        let place = self.place;
        let place = place.map_or_else(String::new, |it| format!(":{}:{}", it.line, it.column));
        let word = self.severity.as_str();
        format!("{}{place}: {word}: {}", self.file, self.message)
    }
}

/// Result of an inspection.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The manifest's file.
    pub file: &'static str,
    /// The manifest, if it can be read.
    pub manifest: Option<Manifest>,
    /// Findings by file and location.
    pub findings: Vec<InspectionFinding>,
}

impl Inspection {
    /// Number of findings of this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let alike = self.findings.iter().filter(|it| it.severity == severity);
        alike.count()
    }
}

/// Inspects a bundle's folder.
///
/// # Errors
/// The folder holds no bundle.
pub fn inspect(folder: &Path) -> Result<Inspection, FolderError> {
    let found = folder::find_manifest(folder)?;
    let entries = folder::entries(folder)?;
    let mut findings = checks::names(&entries, found.file);
    let in_manifest = |severity: Severity| {
        move |it: ManifestFinding| InspectionFinding {
            severity,
            file: found.file.to_owned(),
            place: it.place,
            message: it.sentence(),
        }
    };
    let manifest = match Manifest::load(&found.bytes, found.file) {
        Ok(manifest) => {
            let warnings = manifest.warnings.iter().cloned();
            findings.extend(warnings.map(in_manifest(Severity::Warning)));
            let heads = heads(folder, &entries, &checks::entry_paths(&manifest));
            findings.extend(checks::actions(&manifest, found.file, &entries, &heads));
            findings.extend(checks::advice(&manifest, found.file));
            Some(manifest)
        }
        Err(faults) => {
            let warnings = faults.warnings.into_iter();
            findings.extend(faults.faults.into_iter().map(in_manifest(Severity::Error)));
            findings.extend(warnings.map(in_manifest(Severity::Warning)));
            None
        }
    };
    findings.sort_by(|one, other| {
        let key = |it: &InspectionFinding| {
            (
                it.file != found.file,
                it.file.clone(),
                it.place,
                it.severity,
            )
        };
        key(one).cmp(&key(other))
    });
    Ok(Inspection {
        file: found.file,
        manifest,
        findings,
    })
}

/// First bytes of the executable files and of those that the manifest has started, by path. Files that cannot be read
/// are left out.
fn heads(folder: &Path, entries: &[FolderEntry], started: &[String]) -> BTreeMap<String, Vec<u8>> {
    let mut heads = BTreeMap::new();
    for entry in entries {
        let EntryKind::File { executable, .. } = entry.kind else {
            continue;
        };
        let limit = match (started.contains(&entry.path), executable) {
            (true, _) => ENTRY_BYTES,
            (false, true) => HEAD_BYTES,
            (false, false) => continue,
        };
        if let Ok(file) = File::open(folder.join(&entry.path)) {
            let mut head = Vec::new();
            if file.take(limit).read_to_end(&mut head).is_ok() {
                heads.insert(entry.path.clone(), head);
            }
        }
    }
    heads
}

#[cfg(test)]
mod tests;
