//! From a file, the environment and flags to a configuration: the pure half.
//!
//! [`draft`] merges the three into one tree, reads it into the types and checks what goes together;
//! every fault is told. Reading files, certificates and secrets is `settle.rs`.

use super::check;
use super::environment;
use super::model::{Config, Records};
use super::schema::schema;
use super::sources::{ConfigFault, ConfigFaults, Origin, Sources, at};
use super::spring::{self, Parts};
use super::tree::{Path, put};
use super::words::{Span, When};
use sutler_broker::{CatalogFileError, FileSettings, KindSettings};
use sutler_yaml::{Kind, Node, ParseError};

/// Where a configuration comes from.
#[derive(Debug, Default)]
pub struct Input {
    /// The name and the text of a file.
    pub file: Option<(String, String)>,
    /// The environment: names and values.
    pub variables: Vec<(String, String)>,
    /// What the command line says.
    pub flags: Vec<Flag>,
}

/// One flag of the command line, as a value of the configuration.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As it is written, e.g. `--listen`.
    pub name: &'static str,
    /// What it sets, e.g. `listen` or `log.level`.
    pub path: &'static str,
    /// To what.
    pub value: String,
}

/// A configuration whose files have not been looked at.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What is configured.
    pub config: Config,
    /// Where each value came from.
    pub sources: Sources,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// Whether the catalog stands in the configuration file.
    pub(super) catalog_inside: bool,
}

/// Merges and checks what can be checked without looking elsewhere.
///
/// # Errors
/// Every fault there is, each with its place.
pub fn draft(input: &Input) -> Result<Draft, ConfigFaults> {
    let name = input.file.as_ref().map(|(name, _)| name.clone());
    let (parts, text) = match &input.file {
        Some((name, text)) => (parsed(name, text)?, text.as_str()),
        None => (spring::take_apart(Vec::new(), ""), ""),
    };
    let (mut faults, mut warnings) = (parts.faults, parts.warnings);
    let mut sources = Sources {
        file: name,
        root: parts.own,
        changed: Vec::new(),
    };
    faults.extend(overlay(&mut sources, input));
    let read = sutler_yaml::read::<Config>(&sources.root);
    for fault in read.faults {
        let reason = match fault.path.as_str() {
            // What a catalog file begins with.
            "services" => "is no key here; put it below `catalog`".to_owned(),
            _ => fault.reason,
        };
        faults.push(sources.fault_at(&fault.path, fault.place, reason));
    }
    let mut config = read.value.unwrap_or_default();
    if parts.spring
        && let Some(name) = &sources.file
    {
        let told = settings_of_spring(&mut config, &sources, name, text);
        faults.extend(told.0);
        warnings.extend(told.1);
    }
    let found = check::check(&config);
    let told: Vec<String> = faults.iter().map(|fault| fault.path.clone()).collect();
    for (path, reason) in found.faults {
        if !told.iter().any(|known| explains(known, &path)) {
            faults.push(sources.fault(&path, reason));
        }
    }
    for (path, reason) in found.warnings {
        warnings.push(sources.fault(&path, reason).to_string());
    }
    match faults.is_empty() {
        true => Ok(Draft {
            config,
            sources,
            warnings,
            catalog_inside: parts.catalog,
        }),
        false => Err(ConfigFaults(faults)),
    }
}

/// Whether a fault that was told makes another one doubtful: what could not be read counts as not
/// there, so that something seems to be missing, or items of a list have other numbers.
fn explains(told: &str, path: &str) -> bool {
    let list = |path: &str| path.split('[').next().unwrap_or_default().to_owned();
    let access = ["users", "bearer", "platforms"];
    told.is_empty()
        || told.starts_with(path)
        || (path.contains('[') && list(told) == list(path))
        || (path == "auth" && access.iter().any(|it| told.starts_with(it)))
}

fn parsed(name: &str, text: &str) -> Result<Parts, ConfigFaults> {
    match sutler_yaml::parse(text) {
        Ok(documents) => Ok(spring::take_apart(documents, name)),
        Err(ParseError { place, reason }) => Err(ConfigFaults(vec![ConfigFault {
            at: at(name, place),
            path: String::new(),
            reason,
        }])),
    }
}

/// Puts variables and flags above what the file says.
fn overlay(sources: &mut Sources, input: &Input) -> Vec<ConfigFault> {
    let Sources { root, changed, .. } = sources;
    if !matches!(root.kind, Kind::Mapping(_)) {
        return Vec::new();
    }
    old_credentials(root, input, changed);
    let mut faults = environment::overlay(root, &input.variables, &schema(), changed);
    for flag in &input.flags {
        let node = Node::text_from_elsewhere(flag.value.clone());
        let path = Path::of_keys(flag.path);
        match put(root, &path.0, node) {
            Ok(()) => changed.push((path.to_string(), Origin::Flag(flag.name))),
            Err(reason) => faults.push(sources_fault(flag, reason)),
        }
    }
    faults
}

fn sources_fault(flag: &Flag, reason: String) -> ConfigFault {
    ConfigFault {
        at: flag.name.to_owned(),
        path: flag.path.to_owned(),
        reason,
    }
}

/// `BROKER_USERNAME` and `BROKER_PASSWORD` are a user where none is configured.
fn old_credentials(root: &mut Node, input: &Input, changed: &mut Vec<(String, Origin)>) {
    const NAME: &str = "BROKER_USERNAME";
    const PASSWORD: &str = "BROKER_PASSWORD";
    let find = |name| input.variables.iter().find(|(known, _)| known == name);
    let configured = ["auth", "users", "bearer", "platforms"];
    if configured.iter().any(|key| root.get(key).is_some()) {
        return;
    }
    let (Some((_, user)), Some(_)) = (find(NAME), find(PASSWORD)) else {
        return;
    };
    let text = Node::text_from_elsewhere;
    let user = Node::from_elsewhere(Kind::Mapping(vec![
        ("name".to_owned(), text(user.clone())),
        ("password".to_owned(), text(format!("${{env:{PASSWORD}}}"))),
    ]));
    let users = Node::from_elsewhere(Kind::List(vec![user]));
    if put(root, &Path::of_keys("users").0, users).is_ok() {
        changed.push(("users".to_owned(), Origin::Variable(NAME.to_owned())));
    }
}

/// The framework's settings of seed files, where ours say nothing.
fn settings_of_spring(
    config: &mut Config,
    sources: &Sources,
    name: &str,
    text: &str,
) -> (Vec<ConfigFault>, Vec<String>) {
    match FileSettings::parse(text) {
        Ok((settings, warnings)) => {
            if !sources.says("instances") {
                config.instances = records(&settings.instances);
            }
            if !sources.says("bindings") {
                config.bindings = records(&settings.bindings);
            }
            let named = warnings.iter().map(|warning| format!("{name}: {warning}"));
            (Vec::new(), named.collect())
        }
        Err(error) => (catalog_faults(&error, name), Vec::new()),
    }
}

pub(super) fn records(settings: &KindSettings) -> Records {
    let when = |schedule: &Option<_>| schedule.clone().map(|it| When(Some(it)));
    Records {
        force_delete_unknown: settings.force_delete_unknown,
        cleanup: super::model::CleanupTimes {
            age: Span(settings.cleanup.age),
            all: when(&settings.cleanup.all),
            succeeded: when(&settings.cleanup.succeeded),
            failed: when(&settings.cleanup.failed),
        },
    }
}

/// The faults of a catalog, told like those of the configuration.
pub(super) fn catalog_faults(error: &CatalogFileError, name: &str) -> Vec<ConfigFault> {
    match error {
        CatalogFileError::Faulty(faults) => faults
            .iter()
            .map(|fault| ConfigFault {
                at: at(name, fault.place),
                path: fault.path.clone(),
                reason: match fault.rule {
                    Some(rule) => format!("{} ({rule})", fault.reason),
                    None => fault.reason.clone(),
                },
            })
            .collect(),
        CatalogFileError::Yaml { place, reason } => vec![ConfigFault {
            at: at(name, *place),
            path: String::new(),
            reason: reason.clone(),
        }],
        CatalogFileError::Unreadable { source, .. } => vec![ConfigFault {
            at: name.to_owned(),
            path: String::new(),
            reason: format!("cannot be read: {source}"),
        }],
        CatalogFileError::In { fault, .. } => catalog_faults(fault, name),
    }
}
