//! The `application.yaml` of a Spring broker as a configuration file.
//!
//! Its catalog and the settings of its framework are read by `sutler-broker` (`catalog_file`). Other keys of
//! Spring are ignored with a warning. Keys of Sutler are allowed in every document without a profile.

use super::sources::{ConfigDiagnostic, at};
use sutler_yaml::{Kind, Node, plain, values_at};

/// Roots whose contents are read: the catalog, and the settings of the framework.
const READ: [&str; 2] = ["spring", "com"];

/// Roots that only Spring uses.
const IGNORED: [&str; 8] = [
    "server",
    "management",
    "logging",
    "info",
    "eureka",
    "springdoc",
    "debug",
    "trace",
];

/// Keys of documents that apply to one profile only.
const PROFILES: [&[&str]; 2] = [
    &["spring", "config", "activate", "on-profile"],
    &["spring", "profiles"],
];

/// Paths of a catalog in a configuration file.
const CATALOGS: [&[&str]; 3] = [
    &[
        "spring",
        "cloud",
        "openservicebroker",
        "catalog",
        "services",
    ],
    &["spring", "cloud", "openservicebroker", "services"],
    &["catalog", "services"],
];

/// The sections of a file.
#[derive(Debug)]
pub(super) struct FileSections {
    /// Keys of Sutler, of all documents.
    pub(super) own: Node,
    /// Whether there is a catalog in the file.
    pub(super) catalog: bool,
    /// Whether the file has sections of Spring.
    pub(super) spring: bool,
    pub(super) warnings: Vec<String>,
    pub(super) faults: Vec<ConfigDiagnostic>,
}

/// Splits the documents of a file into sections.
pub(super) fn split_documents(documents: Vec<Node>, name: &str) -> FileSections {
    let conditional = |document: &Node| {
        let mut profiles = PROFILES.iter().flat_map(|path| values_at(document, path));
        profiles.any(|profile| profile.entries().is_none())
    };
    let documents: Vec<Node> = documents
        .into_iter()
        .filter(|it| !conditional(it))
        .collect();
    let is_catalog = |it: &Node| CATALOGS.iter().any(|path| !values_at(it, path).is_empty());
    let roots = documents
        .iter()
        .flat_map(|it| it.entries().unwrap_or_default());
    let spring = roots
        .into_iter()
        .any(|(key, _)| READ.contains(&root(key).as_str()));
    let mut parts = FileSections {
        own: Node::from_elsewhere(Kind::Mapping(Vec::new())),
        catalog: documents.iter().any(is_catalog),
        spring,
        warnings: Vec::new(),
        faults: Vec::new(),
    };
    let mut own: Vec<(String, Node)> = Vec::new();
    for document in documents {
        let place = document.place;
        let entries = match document.kind {
            Kind::Mapping(entries) => entries,
            Kind::Null => continue,
            kind @ (Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::List(_)) => {
                parts.own = Node {
                    place,
                    key: None,
                    kind,
                };
                return parts;
            }
        };
        if parts.own.place.line == 0 {
            parts.own.place = place;
        }
        for (key, value) in entries {
            parts.add_entry(key, value, name, &mut own);
        }
    }
    parts.own.kind = Kind::Mapping(own);
    parts
}

impl FileSections {
    fn add_entry(&mut self, key: String, value: Node, name: &str, own: &mut Vec<(String, Node)>) {
        let first = root(&key);
        if READ.contains(&first.as_str()) {
            return;
        }
        let place = at(name, Some(value.begins()));
        if self.spring && IGNORED.contains(&first.as_str()) {
            self.warnings.push(format!(
                "{place}: {key} is a setting of Spring, and is ignored"
            ));
        } else if own.iter().any(|(known, _)| *known == key) {
            self.faults.push(ConfigDiagnostic {
                at: place,
                path: key,
                reason: "is in two documents of the file; remove one of them".to_owned(),
            });
        } else {
            own.push((key, value));
        }
    }
}

/// The first part of a key that may be dotted.
fn root(key: &str) -> String {
    plain(key.split('.').next().unwrap_or_default())
}
