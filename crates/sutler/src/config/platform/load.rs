//! Reads a platform's configuration: a file, the environment and flags become one tree, which is read and checked.
//!
//! The same layers as for a broker (`config/merge.rs`), without catalogs and files of other frameworks.

use super::PlatformConfig;
use super::check::check;
use crate::config::findings::CheckFindings;
use crate::config::merge::{ConfigInput, FlagValue, overlay};
use crate::config::resolve::{others_can_read, process_input, variable};
use crate::config::secret::SecretSource;
use crate::config::sources::{ConfigDiagnostic, ConfigError, ConfigSources, ValueOrigin, at};
use crate::config::value_types::FilePath;
use std::path::Path;
use sutler_yaml::{Kind, Node, ParseError};

/// A configuration that a platform can be started with.
#[derive(Clone, Debug)]
pub struct ResolvedPlatformConfig {
    /// The values.
    pub config: PlatformConfig,
    /// The source of each value.
    pub sources: ConfigSources,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Reads a configuration: the file, if one is given, the environment, and flags.
///
/// # Errors
/// All faults: of the file, the environment, and the files it names.
pub fn load_platform(
    file: Option<&Path>,
    flags: &[FlagValue],
) -> Result<ResolvedPlatformConfig, ConfigError> {
    let input = process_input(file, flags)?;
    let mut resolved = merged(&input)?;
    let ResolvedPlatformConfig {
        config,
        sources,
        warnings,
    } = &mut resolved;
    let faults = unreadable(config, sources);
    if !faults.is_empty() {
        return Err(ConfigError(faults));
    }
    if let Some(plain) = plain_secret(config)
        && let Some(path) = file
        && others_can_read(path)
        && matches!(sources.origin(&plain), ValueOrigin::File(..))
    {
        let reason = format!(
            "stands in a file that others can read: run `chmod 600 {}`, or write `${{file:…}}`",
            path.display()
        );
        warnings.push(sources.fault(&plain, reason).to_string());
    }
    Ok(resolved)
}

/// Merges the sources, and does all checks that read no files. Pure.
pub(super) fn merged(input: &ConfigInput) -> Result<ResolvedPlatformConfig, ConfigError> {
    let mut sources = ConfigSources {
        file: input.file.as_ref().map(|(name, _)| name.clone()),
        root: root(input)?,
        changed: Vec::new(),
    };
    let schema = schemars::schema_for!(PlatformConfig).to_value();
    let mut faults = overlay(&mut sources, input, &schema);
    let read = sutler_yaml::read::<PlatformConfig>(&sources.root);
    for fault in read.faults {
        faults.push(sources.fault_at(&fault.path, fault.place, fault.reason));
    }
    let config = read.value.unwrap_or_default();
    let found = check(&config);
    // What could not be read counts as missing: only the reason is told.
    if faults.is_empty() {
        let found = found.faults.iter();
        faults.extend(found.map(|(path, reason)| sources.fault(path, reason.clone())));
    }
    if !faults.is_empty() {
        return Err(ConfigError(faults));
    }
    let warnings = found.warnings.iter();
    let warnings = warnings.map(|(path, reason)| sources.fault(path, reason.clone()).to_string());
    Ok(ResolvedPlatformConfig {
        warnings: warnings.collect(),
        config,
        sources,
    })
}

/// The one document of the file; an empty mapping without a file.
fn root(input: &ConfigInput) -> Result<Node, ConfigError> {
    let empty = || Node::from_elsewhere(Kind::Mapping(Vec::new()));
    let Some((name, text)) = &input.file else {
        return Ok(empty());
    };
    let fault = |at: String, reason: String| {
        Err(ConfigError(vec![ConfigDiagnostic {
            at,
            path: String::new(),
            reason,
        }]))
    };
    let documents = match sutler_yaml::parse(text) {
        Ok(documents) => documents,
        Err(ParseError { place, reason }) => return fault(at(name, place), reason),
    };
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => Ok(empty()),
        (Some(document), None) if matches!(document.kind, Kind::Null) => Ok(empty()),
        (Some(document), None) => Ok(document),
        (Some(_), Some(second)) => fault(
            at(name, Some(second.begins())),
            "must have one document; remove what follows the line `---`".to_owned(),
        ),
    }
}

/// Faults of secrets that are missing or cannot be used, and of files that cannot be read.
fn unreadable(config: &PlatformConfig, sources: &ConfigSources) -> Vec<ConfigDiagnostic> {
    let mut findings = CheckFindings::default();
    for (nth, user) in config.users.iter().enumerate() {
        user.check_secrets(&format!("users[{nth}]"), &variable, &mut findings);
    }
    config
        .store
        .check_secrets("store", &variable, &mut findings);
    let issuers = config.issuers.iter().enumerate();
    let authorities = issuers.filter_map(|(nth, issuer)| {
        let ca = issuer.ca.as_ref()?;
        Some((format!("issuers[{nth}].ca"), ca))
    });
    let certificates = config.tls.iter().flat_map(|it| it.files("tls"));
    for (path, FilePath(file)) in authorities.chain(certificates) {
        if let Err(error) = std::fs::File::open(file) {
            let reason = format!("is {}, which cannot be read: {error}", file.display());
            findings.fault(path, reason);
        }
    }
    let faults = findings.faults.into_iter();
    faults
        .map(|(path, reason)| sources.fault(&path, reason))
        .collect()
}

/// The path of the first secret that is written into the configuration itself.
fn plain_secret(config: &PlatformConfig) -> Option<String> {
    let is_plain = |secret: &Option<SecretSource>| matches!(secret, Some(SecretSource::Plain(_)));
    let nth = config.users.iter().position(|it| is_plain(&it.password));
    let user = nth.map(|nth| format!("users[{nth}].password"));
    config.store.plain_secret("store").or(user)
}
