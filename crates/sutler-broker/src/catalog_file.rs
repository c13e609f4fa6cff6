//! A catalog from a YAML file, in the format of Spring Cloud Open Service Broker.
//!
//! [`CatalogFile::parse`] is the entry point: text to tree (`sutler-yaml`), tree to offerings (`offering.rs`,
//! `metadata.rs`, `icon.rs`), offerings to a checked catalog (`sutler_osb`), and a test compilation of the
//! schemas (`plan_schemas.rs`). Settings of the framework in the same file: `settings.rs`.

mod duration;
mod error;
mod fields;
mod icon;
mod metadata;
mod offering;
mod settings;
#[cfg(test)]
mod tests;

pub use error::{CatalogFileError, FileDiagnostic};
pub use settings::{CleanupSettings, FileSettings, KindSettings};
pub use sutler_yaml::Location;

use crate::plan_schemas::plan_schemas;
use fields::Findings;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use sutler_osb::{Catalog, CatalogFault, ServiceSpec};
use sutler_yaml::{Kind, Node, ParseError, YAML_BYTES_MAX};

/// Paths of the offerings. Without a root the file contains only a catalog.
const SERVICES: [&[&str]; 4] = [
    &[
        "spring",
        "cloud",
        "openservicebroker",
        "catalog",
        "services",
    ],
    &["spring", "cloud", "openservicebroker", "services"],
    &["catalog", "services"],
    &["services"],
];

/// A document with one of these keys applies to a Spring profile only, so it is ignored.
const PROFILES: [&[&str]; 2] = [
    &["spring", "config", "activate", "on-profile"],
    &["spring", "profiles"],
];

/// Content of a catalog file.
#[derive(Clone, Debug)]
pub struct CatalogFile {
    /// The offerings and plans.
    pub catalog: Catalog,
    /// The framework's settings.
    pub settings: FileSettings,
    /// Warnings: unknown keys, recommendations not followed.
    pub warnings: Vec<String>,
}

impl CatalogFile {
    /// Reads a file. Icons are read from its directory.
    ///
    /// # Errors
    /// The file cannot be read, or as for [`CatalogFile::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, CatalogFileError> {
        let path = path.as_ref();
        let unreadable = |source| CatalogFileError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        // One byte more than allowed is enough for `parse` to refuse the file.
        file.take(YAML_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        Self::parse(&text, Some(directory)).map_err(|fault| CatalogFileError::In {
            path: path.to_owned(),
            fault: Box::new(fault),
        })
    }

    /// Parses YAML. Icons are read from `base_dir`; without one they are left out, with a warning.
    ///
    /// # Errors
    /// The text is not YAML; otherwise all diagnostics, each with location and path.
    pub fn parse(yaml: &str, base_dir: Option<&Path>) -> Result<Self, CatalogFileError> {
        let documents = documents(yaml)?;
        let mut findings = Findings::default();
        let documents = unconditional(&documents, &mut findings);
        let settings = settings::read(&documents, &mut findings);
        let Some(services) = services(&documents, &mut findings) else {
            return Err(CatalogFileError::Faulty(findings.faults));
        };
        let specs: Vec<ServiceSpec> = services
            .items
            .iter()
            .enumerate()
            .map(|(nth, node)| {
                offering::offering(node, format!("services[{nth}]"), base_dir, &mut findings)
            })
            .collect();
        let uncompilable = uncompilable(&specs, &services);
        let loaded = Catalog::load(specs);
        if let Err(faults) = &loaded {
            let found = faults.faults.iter().map(|fault| services.located(fault));
            // A value of the wrong type was read as absent: that it is required was reported already.
            add_new_paths(found.collect(), &mut findings);
        }
        add_new_paths(uncompilable, &mut findings);
        findings.faults.sort_by_key(|fault| fault.place);
        let Findings {
            faults,
            mut warnings,
        } = findings;
        match loaded {
            Ok(catalog) if faults.is_empty() => {
                let advice = catalog.warnings().iter();
                warnings.extend(advice.map(|fault| services.located(fault).to_string()));
                Ok(Self {
                    catalog,
                    settings,
                    warnings: warnings
                        .iter()
                        .map(|it| sutler_yaml::one_line(it))
                        .collect(),
                })
            }
            Ok(_) | Err(_) => Err(CatalogFileError::Faulty(faults)),
        }
    }
}

impl FileSettings {
    /// Reads only the settings, of a file that may have no catalog. Returns warnings too.
    ///
    /// # Errors
    /// The text is not YAML; otherwise all diagnostics.
    pub fn parse(yaml: &str) -> Result<(Self, Vec<String>), CatalogFileError> {
        let documents = documents(yaml)?;
        let mut findings = Findings::default();
        let documents = unconditional(&documents, &mut findings);
        let settings = settings::read(&documents, &mut findings);
        match findings.faults.is_empty() {
            true => Ok((settings, findings.warnings)),
            false => Err(CatalogFileError::Faulty(findings.faults)),
        }
    }
}

fn documents(yaml: &str) -> Result<Vec<Node>, CatalogFileError> {
    sutler_yaml::parse(yaml)
        .map_err(|ParseError { place, reason }| CatalogFileError::Yaml { place, reason })
}

/// A catalog built in code, with default settings.
impl From<Catalog> for CatalogFile {
    fn from(catalog: Catalog) -> Self {
        Self {
            catalog,
            settings: FileSettings::default(),
            warnings: Vec::new(),
        }
    }
}

/// The documents that apply under any profile.
fn unconditional<'a>(documents: &'a [Node], findings: &mut Findings) -> Vec<&'a Node> {
    let mut kept = Vec::new();
    for document in documents {
        let profiles = PROFILES
            .iter()
            .flat_map(|path| sutler_yaml::values_at(document, path));
        match profiles.into_iter().next() {
            // `spring.profiles` is a mapping in a document that names the active profiles.
            Some(profile) if profile.entries().is_none() => findings.warnings.push(format!(
                "{}: this document is for a Spring profile, and is ignored",
                profile.place
            )),
            Some(_) | None => kept.push(document),
        }
    }
    kept
}

/// The list of offerings, with its location in the file.
struct Services<'a> {
    node: &'a Node,
    items: &'a [Node],
}

fn services<'a>(documents: &[&'a Node], findings: &mut Findings) -> Option<Services<'a>> {
    let mut found = Vec::new();
    for path in SERVICES {
        for document in documents {
            found.extend(sutler_yaml::values_at(document, path));
        }
    }
    let rule = Some("B-050");
    let path = || "services".to_owned();
    let [node] = found[..] else {
        let (place, reason) = match found.get(1) {
            Some(second) => (Some(second.place), "is given twice"),
            None => {
                let wanted = "is required, at the top, under `catalog`, or under \
                              `spring.cloud.openservicebroker.catalog`";
                (documents.first().map(|document| document.place), wanted)
            }
        };
        findings.faults.push(FileDiagnostic {
            place,
            path: path(),
            reason: reason.to_owned(),
            rule,
        });
        return None;
    };
    let Kind::List(items) = &node.kind else {
        let reason = format!("must be a list, but is {}", node.kind_name());
        findings.fault(node.place, path(), reason, rule);
        return None;
    };
    Some(Services { node, items })
}

impl Services<'_> {
    fn located(&self, fault: &CatalogFault) -> FileDiagnostic {
        FileDiagnostic {
            place: Some(self.place_of(&fault.path)),
            path: fault.path.clone(),
            reason: fault.reason.clone(),
            rule: Some(fault.rule),
        }
    }

    /// Location of `services[0].plans[1].id`, or of the nearest existing parent.
    fn place_of(&self, path: &str) -> Location {
        let mut node = self.node;
        let steps = path.strip_prefix("services").unwrap_or_default();
        for step in steps.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match (&node.kind, step.strip_suffix(']')) {
                (Kind::List(items), Some(nth)) => {
                    nth.parse().ok().and_then(|nth: usize| items.get(nth))
                }
                (Kind::Mapping(entries), None) => {
                    let plain = sutler_yaml::plain(step);
                    let found = entries
                        .iter()
                        .find(|(key, _)| sutler_yaml::plain(key) == plain);
                    found.map(|(_, value)| value)
                }
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place
    }
}

/// Diagnostics of schemas that cannot be used.
fn uncompilable(specs: &[ServiceSpec], services: &Services<'_>) -> Vec<FileDiagnostic> {
    let mut faults = Vec::new();
    for (nth_service, service) in specs.iter().enumerate() {
        for (nth_plan, plan) in service.plans.iter().flatten().enumerate() {
            let Some(schemas) = &plan.schemas else {
                continue;
            };
            for fault in plan_schemas(schemas).errors() {
                faults.push(services.located(&CatalogFault {
                    path: format!("services[{nth_service}].plans[{nth_plan}].{}", fault.path),
                    reason: fault.reason,
                    rule: "B-079",
                }));
            }
        }
    }
    faults
}

/// Adds diagnostics for paths that have none yet.
fn add_new_paths(faults: Vec<FileDiagnostic>, findings: &mut Findings) {
    let known: HashSet<String> = findings.faults.iter().map(|it| it.path.clone()).collect();
    let new_faults = faults.into_iter().filter(|it| !known.contains(&it.path));
    findings.faults.extend(new_faults);
}
