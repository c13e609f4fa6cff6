//! Merges a file, the environment and flags into a configuration. Pure.
//!
//! [`merge`] builds one tree of the three, reads it into the types and checks it; it returns every fault.
//! Files, certificates and secrets are read by `resolve.rs`.

use super::check;
use super::environment;
use super::model::{BrokerConfig, ResourceConfig};
use super::schema::schema;
use super::sources::{ConfigDiagnostic, ConfigError, ConfigSources, ValueOrigin, at};
use super::spring::{self, FileSections};
use super::tree::{KeyPath, put};
use super::value_types::{CronText, DurationText};
use serde_json::Value;
use sutler_broker::{CatalogFileError, FileSettings, KindSettings};
use sutler_yaml::{Kind, Node, ParseError};

/// Sources of a configuration.
#[derive(Debug, Default)]
pub struct ConfigInput {
    /// The name and the text of a file.
    pub file: Option<(String, String)>,
    /// The environment: names and values.
    pub variables: Vec<(String, String)>,
    /// Flags of the command line.
    pub flags: Vec<FlagValue>,
}

/// One flag of the command line, as a value of the configuration.
#[derive(Clone, Debug)]
pub struct FlagValue {
    /// The flag, e.g. `--listen`.
    pub name: &'static str,
    /// The path it sets, e.g. `listen` or `log.level`.
    pub path: &'static str,
    /// The value.
    pub value: String,
}

/// A configuration whose files have not been read.
#[derive(Clone, Debug)]
pub struct MergedConfig {
    /// The values.
    pub config: BrokerConfig,
    /// The source of each value.
    pub sources: ConfigSources,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Whether the catalog is in the configuration file.
    pub(super) catalog_inside: bool,
}

/// Merges the sources, and does all checks that do not read files.
///
/// # Errors
/// All faults, each with its place.
pub fn merge(input: &ConfigInput) -> Result<MergedConfig, ConfigError> {
    let name = input.file.as_ref().map(|(name, _)| name.clone());
    let (parts, text) = match &input.file {
        Some((name, text)) => (parsed(name, text)?, text.as_str()),
        None => (spring::split_documents(Vec::new(), ""), ""),
    };
    let (mut faults, mut warnings) = (parts.faults, parts.warnings);
    let mut sources = ConfigSources {
        file: name,
        root: parts.own,
        changed: Vec::new(),
    };
    if is_mapping(&sources.root) {
        let ConfigSources { root, changed, .. } = &mut sources;
        old_credentials(root, input, changed);
    }
    faults.extend(overlay(&mut sources, input, &schema()));
    let read = sutler_yaml::read::<BrokerConfig>(&sources.root);
    for fault in read.faults {
        let reason = match fault.path.as_str() {
            // The first key of a catalog file.
            "services" => "is not a key here; put it below `catalog`".to_owned(),
            _ => fault.reason,
        };
        faults.push(sources.fault_at(&fault.path, fault.place, reason));
    }
    let mut config = read.value.unwrap_or_default();
    if parts.spring
        && let Some(name) = &sources.file
    {
        let spring = settings_of_spring(&mut config, &sources, name, text);
        faults.extend(spring.0);
        warnings.extend(spring.1);
    }
    let found = check::check(&config);
    let reported: Vec<String> = faults.iter().map(|fault| fault.path.clone()).collect();
    for (path, reason) in found.faults {
        if !reported.iter().any(|known| explains(known, &path)) {
            faults.push(sources.fault(&path, reason));
        }
    }
    for (path, reason) in found.warnings {
        warnings.push(sources.fault(&path, reason).to_string());
    }
    match faults.is_empty() {
        true => Ok(MergedConfig {
            config,
            sources,
            warnings,
            catalog_inside: parts.catalog,
        }),
        false => Err(ConfigError(faults)),
    }
}

/// Whether a reported fault may be the cause of another one: values that could not be read count as missing,
/// and shift the numbers of list items.
fn explains(reported: &str, path: &str) -> bool {
    let list = |path: &str| path.split('[').next().unwrap_or_default().to_owned();
    let access = ["users", "bearer", "platforms"];
    reported.is_empty()
        || reported.starts_with(path)
        || (path.contains('[') && list(reported) == list(path))
        || (path == "auth" && access.iter().any(|it| reported.starts_with(it)))
}

fn parsed(name: &str, text: &str) -> Result<FileSections, ConfigError> {
    match sutler_yaml::parse(text) {
        Ok(documents) => Ok(spring::split_documents(documents, name)),
        Err(ParseError { place, reason }) => Err(ConfigError(vec![ConfigDiagnostic {
            at: at(name, place),
            path: String::new(),
            reason,
        }])),
    }
}

fn is_mapping(root: &Node) -> bool {
    matches!(root.kind, Kind::Mapping(_))
}

/// Overrides the values of the file by variables and flags.
pub(super) fn overlay(
    sources: &mut ConfigSources,
    input: &ConfigInput,
    schema: &Value,
) -> Vec<ConfigDiagnostic> {
    let ConfigSources { root, changed, .. } = sources;
    if !is_mapping(root) {
        return Vec::new();
    }
    let mut faults = environment::overlay(root, &input.variables, schema, changed);
    for flag in &input.flags {
        let node = Node::text_from_elsewhere(flag.value.clone());
        let path = KeyPath::of_keys(flag.path);
        match put(root, &path.0, node) {
            Ok(()) => changed.push((path.to_string(), ValueOrigin::Flag(flag.name))),
            Err(reason) => faults.push(sources_fault(flag, reason)),
        }
    }
    faults
}

fn sources_fault(flag: &FlagValue, reason: String) -> ConfigDiagnostic {
    ConfigDiagnostic {
        at: flag.name.to_owned(),
        path: flag.path.to_owned(),
        reason,
    }
}

/// Adds `BROKER_USERNAME` and `BROKER_PASSWORD` as a user if no access is configured.
fn old_credentials(root: &mut Node, input: &ConfigInput, changed: &mut Vec<(String, ValueOrigin)>) {
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
    if put(root, &KeyPath::of_keys("users").0, users).is_ok() {
        changed.push(("users".to_owned(), ValueOrigin::Variable(NAME.to_owned())));
    }
}

/// Settings of the Spring framework, for keys that the configuration does not set.
fn settings_of_spring(
    config: &mut BrokerConfig,
    sources: &ConfigSources,
    name: &str,
    text: &str,
) -> (Vec<ConfigDiagnostic>, Vec<String>) {
    match FileSettings::parse(text) {
        Ok((settings, warnings)) => {
            if !sources.is_set("instances") {
                config.instances = records(&settings.instances);
            }
            if !sources.is_set("bindings") {
                config.bindings = records(&settings.bindings);
            }
            let named = warnings.iter().map(|warning| format!("{name}: {warning}"));
            (Vec::new(), named.collect())
        }
        Err(error) => (catalog_faults(&error, name), Vec::new()),
    }
}

pub(super) fn records(settings: &KindSettings) -> ResourceConfig {
    let when = |schedule: &Option<_>| schedule.clone().map(|it| CronText(Some(it)));
    ResourceConfig {
        force_delete_unknown: settings.force_delete_unknown,
        cleanup: super::model::CleanupConfig {
            kept: DurationText(settings.cleanup.kept),
            age: DurationText(settings.cleanup.age),
            all: when(&settings.cleanup.all),
            succeeded: when(&settings.cleanup.succeeded),
            failed: when(&settings.cleanup.failed),
        },
    }
}

/// Converts the faults of a catalog into those of a configuration.
pub(super) fn catalog_faults(error: &CatalogFileError, name: &str) -> Vec<ConfigDiagnostic> {
    match error {
        CatalogFileError::Faulty(faults) => faults
            .iter()
            .map(|fault| ConfigDiagnostic {
                at: at(name, fault.place),
                path: fault.path.clone(),
                reason: match fault.rule {
                    Some(rule) => format!("{} ({rule})", fault.reason),
                    None => fault.reason.clone(),
                },
            })
            .collect(),
        CatalogFileError::Yaml { place, reason } => vec![ConfigDiagnostic {
            at: at(name, *place),
            path: String::new(),
            reason: reason.clone(),
        }],
        CatalogFileError::Unreadable { source, .. } => vec![ConfigDiagnostic {
            at: name.to_owned(),
            path: String::new(),
            reason: format!("cannot be read: {source}"),
        }],
        CatalogFileError::In { fault, .. } => catalog_faults(fault, name),
    }
}
