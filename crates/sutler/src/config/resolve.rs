//! From a merged configuration to one that a broker can be started with: reads the files it names.
//!
//! Merging and the checks without files are in `merge.rs`.

use super::blocks::AccessConfig;
use super::findings::CheckFindings;
use super::merge::{ConfigInput, FlagValue, MergedConfig, catalog_faults, merge};
use super::model::{BrokerConfig, BundlesConfig};
use super::registries::open_registry;
use super::secret::SecretSource;
use super::sources::{ConfigDiagnostic, ConfigError, ConfigSources};
use super::value_types::FilePath;
use std::io::Read as _;
use std::path::Path;
use sutler_broker::CatalogFile;

/// Maximum length of a configuration file, in bytes. It may contain a large catalog.
const CONFIG_BYTES_MAX: u64 = sutler_yaml::YAML_BYTES_MAX as u64;

/// The default catalog.
const DEMO_CATALOG: &str = include_str!("../demo-catalog.yaml");

/// A configuration that a broker can be started with.
#[derive(Clone, Debug)]
pub struct ResolvedConfig {
    /// The values.
    pub config: BrokerConfig,
    /// The source of each value.
    pub sources: ConfigSources,
    /// The catalog.
    pub catalog: CatalogFile,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Reads a configuration: the file, if one is given, the environment, and flags.
///
/// # Errors
/// All faults: of the file, the environment, the catalog, and the files it names.
pub fn load(file: Option<&Path>, flags: &[FlagValue]) -> Result<ResolvedConfig, ConfigError> {
    let input = process_input(file, flags)?;
    let drafted = merge(&input)?;
    resolve(drafted, &input, file)
}

/// The sources of a configuration: the file, if one is given, the environment of this process, and flags.
///
/// # Errors
/// The file cannot be read.
pub(super) fn process_input(
    file: Option<&Path>,
    flags: &[FlagValue],
) -> Result<ConfigInput, ConfigError> {
    let mut input = ConfigInput {
        flags: flags.to_vec(),
        ..ConfigInput::default()
    };
    for (name, value) in std::env::vars_os() {
        // Variables that are not UTF-8 are none of the settings.
        let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
            continue;
        };
        input.variables.push((name, value));
    }
    if let Some(path) = file {
        let name = path.display().to_string();
        let text = read(path).map_err(|reason| {
            ConfigError(vec![ConfigDiagnostic {
                at: name.clone(),
                path: String::new(),
                reason,
            }])
        })?;
        input.file = Some((name, text));
    }
    Ok(input)
}

fn read(path: &Path) -> Result<String, String> {
    let unreadable = |error| format!("cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        return Err(format!("must not be longer than {CONFIG_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "must be text in UTF-8".to_owned())
}

fn resolve(
    draft: MergedConfig,
    input: &ConfigInput,
    path: Option<&Path>,
) -> Result<ResolvedConfig, ConfigError> {
    let MergedConfig {
        mut config,
        sources,
        mut warnings,
        catalog_inside,
    } = draft;
    let mut faults = Vec::new();
    let catalog = match catalog(&config, catalog_inside, input, path) {
        Ok(catalog) => Some(catalog),
        Err(found) => {
            faults.extend(found);
            None
        }
    };
    faults.extend(unreadable(&config, &sources));
    if let Some(plain) = plain_secret(&config)
        && let Some(path) = path
        && others_can_read(path)
        && matches!(sources.origin(&plain), super::ValueOrigin::File(..))
    {
        let reason = format!(
            "stands in a file that others can read: run `chmod 600 {}`, or write `${{file:…}}`",
            path.display()
        );
        warnings.push(sources.fault(&plain, reason).to_string());
    }
    match (catalog, faults.is_empty()) {
        (Some(catalog), true) => {
            warnings.extend(catalog.warnings.iter().cloned());
            apply_catalog_settings(&mut config, &sources, &catalog);
            // A registry implies bundles, also without a `bundles` section.
            if !config.registry.is_empty() && config.bundles.is_none() {
                config.bundles = Some(BundlesConfig::default());
            }
            Ok(ResolvedConfig {
                config,
                sources,
                catalog,
                warnings,
            })
        }
        (Some(_) | None, _) => Err(ConfigError(faults)),
    }
}

fn catalog(
    config: &BrokerConfig,
    inside: bool,
    input: &ConfigInput,
    path: Option<&Path>,
) -> Result<CatalogFile, Vec<ConfigDiagnostic>> {
    if let Some(FilePath(file)) = &config.catalog.file {
        let name = file.display().to_string();
        return CatalogFile::read(file).map_err(|error| catalog_faults(&error, &name));
    }
    match &input.file {
        Some((name, text)) if inside => {
            let folder = path.and_then(Path::parent);
            let folder = folder.filter(|it| !it.as_os_str().is_empty());
            CatalogFile::parse(text, Some(folder.unwrap_or(Path::new("."))))
                .map_err(|error| catalog_faults(&error, name))
        }
        Some(_) | None => CatalogFile::parse(DEMO_CATALOG, None)
            .map_err(|error| catalog_faults(&error, "the demo catalog")),
    }
}

/// Applies the settings of a separate catalog file to keys that the configuration does not set.
fn apply_catalog_settings(
    config: &mut BrokerConfig,
    sources: &ConfigSources,
    catalog: &CatalogFile,
) {
    if config.catalog.file.is_some() {
        let settings = &catalog.settings;
        if !sources.is_set("instances") && settings.instances != Default::default() {
            config.instances = super::merge::records(&settings.instances);
        }
        if !sources.is_set("bindings") && settings.bindings != Default::default() {
            config.bindings = super::merge::records(&settings.bindings);
        }
    }
}

/// The access of every path, with the path of its section.
fn accesses(config: &BrokerConfig) -> Vec<(String, AccessConfig<'_>)> {
    let mut all = vec![(String::new(), config.top_access())];
    for (nth, platform) in config.platforms.iter().enumerate() {
        all.push((format!("platforms[{nth}]."), platform.access()));
    }
    if let Some(admin) = &config.admin {
        all.push(("admin.".to_owned(), admin.access()));
    }
    all
}

/// Every secret of bundles, with its path.
fn bundle_secrets(config: &BrokerConfig) -> Vec<(String, &SecretSource)> {
    let secrets = config.bundles.iter().flat_map(|it| it.secrets.iter());
    let keys = secrets.enumerate().flat_map(|(nth, secret)| {
        let path = move |at: usize| format!("bundles.secrets[{nth}].keys[{at}].value");
        secret
            .keys
            .iter()
            .enumerate()
            .map(move |(at, it)| (path(at), &it.value))
    });
    let engines = config.bundles.iter().filter_map(|it| it.container.as_ref());
    let logins = engines.flat_map(|it| it.logins.iter().enumerate());
    let passwords = logins.map(|(nth, it)| {
        let path = format!("bundles.container.logins[{nth}].password");
        (path, &it.password)
    });
    keys.chain(passwords).collect()
}

/// Every secret of a registry, with its path.
fn registry_secrets(config: &BrokerConfig) -> impl Iterator<Item = (String, &SecretSource)> {
    let blocks = config.registry.iter().enumerate();
    blocks.flat_map(|(nth, it)| {
        let secrets = [
            ("pass", &it.pass),
            ("token", &it.token),
            ("proxy", &it.proxy),
        ];
        let path = move |key: &str| format!("registry[{nth}].{key}");
        secrets
            .into_iter()
            .filter_map(move |(key, secret)| Some((path(key), secret.as_ref()?)))
    })
}

/// Faults of secrets that are missing or cannot be used, and of files that cannot be read.
fn unreadable(config: &BrokerConfig, sources: &ConfigSources) -> Vec<ConfigDiagnostic> {
    let mut findings = CheckFindings::default();
    let accesses = accesses(config);
    for (before, access) in &accesses {
        access.check_secrets(before, &variable, &mut findings);
    }
    for (path, secret) in bundle_secrets(config) {
        if let Err(reason) = secret.reveal(&variable) {
            findings.fault(path, reason);
        }
    }
    for (nth, block) in config.registry.iter().enumerate() {
        if let Err(reason) = open_registry(block, &variable) {
            findings.fault(format!("registry[{nth}]"), reason);
        }
    }
    config
        .store
        .check_secrets("store", &variable, &mut findings);
    let authorities = accesses.iter().filter_map(|(before, it)| it.files(before));
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

/// Reads a variable of the environment.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The path of the first secret that is written into the configuration itself.
fn plain_secret(config: &BrokerConfig) -> Option<String> {
    let plain = |(path, secret): (String, &SecretSource)| {
        matches!(secret, SecretSource::Plain(_)).then_some(path)
    };
    let accesses = || accesses(config);
    config
        .store
        .plain_secret("store")
        .or_else(|| registry_secrets(config).find_map(plain))
        .or_else(|| bundle_secrets(config).into_iter().find_map(plain))
        .or_else(|| {
            accesses()
                .iter()
                .find_map(|(before, it)| it.plain_secret(before))
        })
}

pub(super) fn others_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
}
