//! From a draft to what a broker can be started with: the half that looks at files.

use super::merge::{ConfigInput, FlagValue, MergedConfig, catalog_faults, merge};
use super::model::{BearerConfig, BrokerConfig, BundlesConfig, StoreServer, StoreUrl, UserConfig};
use super::registries::open_registry;
use super::secret::SecretSource;
use super::sources::{ConfigDiagnostic, ConfigError, ConfigSources};
use super::value_types::FilePath;
use secrecy::ExposeSecret as _;
use std::io::Read as _;
use std::path::Path;
use sutler_broker::{CatalogFile, Users};

/// Longest configuration file, in bytes. A catalog inside may be large.
const CONFIG_BYTES_MAX: u64 = sutler_yaml::YAML_BYTES_MAX as u64;

/// What is offered where nothing is said.
const DEMO_CATALOG: &str = include_str!("../demo-catalog.yaml");

/// A configuration that a broker can be started with.
#[derive(Clone, Debug)]
pub struct ResolvedConfig {
    /// What is configured.
    pub config: BrokerConfig,
    /// Where each value came from.
    pub sources: ConfigSources,
    /// What is offered.
    pub catalog: CatalogFile,
    /// What is probably not meant.
    pub warnings: Vec<String>,
}

/// Reads a configuration: the file, if one is given, the environment, and flags.
///
/// # Errors
/// Every fault there is: in the file, in the environment, in the catalog, in files it names.
pub fn load(file: Option<&Path>, flags: &[FlagValue]) -> Result<ResolvedConfig, ConfigError> {
    let mut input = ConfigInput {
        flags: flags.to_vec(),
        ..ConfigInput::default()
    };
    for (name, value) in std::env::vars_os() {
        // What is no text has no name or no value of ours; values are shown nowhere.
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
    let drafted = merge(&input)?;
    resolve(drafted, &input, file)
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
            take_over(&mut config, &sources, &catalog);
            // Whoever names a registry wants its bundles, however little else is said of them.
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

/// Settings beside a catalog in a file of its own count where the configuration says nothing.
fn take_over(config: &mut BrokerConfig, sources: &ConfigSources, catalog: &CatalogFile) {
    if config.catalog.file.is_some() {
        let settings = &catalog.settings;
        if !sources.says("instances") && settings.instances != Default::default() {
            config.instances = super::merge::records(&settings.instances);
        }
        if !sources.says("bindings") && settings.bindings != Default::default() {
            config.bindings = super::merge::records(&settings.bindings);
        }
    }
}

/// Every list of users and every provider, with the path before it.
fn accesses(config: &BrokerConfig) -> Vec<(String, &[UserConfig], Option<&BearerConfig>)> {
    let mut all = vec![(String::new(), &config.users[..], config.bearer.as_ref())];
    for (nth, platform) in config.platforms.iter().enumerate() {
        let before = format!("platforms[{nth}].");
        all.push((before, &platform.users, platform.bearer.as_ref()));
    }
    if let Some(admin) = &config.admin {
        all.push(("admin.".to_owned(), &admin.users, admin.bearer.as_ref()));
    }
    all
}

/// Every value that is kept for bundles, with its path.
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

/// Secrets that are not where they should be, and files that cannot be read.
fn unreadable(config: &BrokerConfig, sources: &ConfigSources) -> Vec<ConfigDiagnostic> {
    let mut faults = Vec::new();
    let mut files: Vec<(String, &FilePath)> = Vec::new();
    for (before, users, bearer) in accesses(config) {
        for (nth, user) in users.iter().enumerate() {
            let secrets = [
                ("password", &user.password),
                ("password_hash", &user.password_hash),
            ];
            for (key, secret) in secrets {
                let found = secret.as_ref().map(|it| usable(&user.name, key, it));
                if let Some(Err(reason)) = found {
                    faults.push(sources.fault(&format!("{before}users[{nth}].{key}"), reason));
                }
            }
        }
        if let Some(ca) = bearer.and_then(|it| it.ca.as_ref()) {
            files.push((format!("{before}bearer.ca"), ca));
        }
    }
    for (path, secret) in bundle_secrets(config) {
        if let Err(reason) = secret.reveal(&variable) {
            faults.push(sources.fault(&path, reason));
        }
    }
    for (nth, block) in config.registry.iter().enumerate() {
        if let Err(reason) = open_registry(block, &variable) {
            faults.push(sources.fault(&format!("registry[{nth}]"), reason));
        }
    }
    if let StoreUrl::Server(url) = &config.store.url
        && let Err(reason) = names_a_server(url)
    {
        faults.push(sources.fault("store.url", reason));
    }
    if let Some(tls) = &config.tls {
        let named = [
            ("tls.certificate", &tls.certificate),
            ("tls.key", &tls.key),
            ("tls.client_ca", &tls.client_ca),
        ];
        files.extend(
            named
                .into_iter()
                .filter_map(|(path, file)| file.as_ref().map(|it| (path.to_owned(), it))),
        );
    }
    for (path, FilePath(file)) in files {
        if let Err(error) = std::fs::File::open(file) {
            let reason = format!("is {}, which cannot be read: {error}", file.display());
            faults.push(sources.fault(&path, reason));
        }
    }
    faults
}

/// Whether a secret is where it should be, and one that a user can have.
fn usable(name: &str, key: &str, secret: &SecretSource) -> Result<(), String> {
    let secret = secret.reveal(&variable)?;
    let users = match key {
        "password" => Users::new().with_password(name, &secret),
        _ => Users::new().with_hash(name, secret.expose_secret()),
    };
    users
        .map(drop)
        .map_err(|fault| format!("cannot be used: {fault}"))
}

/// Whether a URL is where it should be, and one of a server that can keep a store.
fn names_a_server(url: &SecretSource) -> Result<(), String> {
    let url = url.reveal(&variable)?;
    match StoreServer::of(url.expose_secret()) {
        Some(_) => Ok(()),
        None => Err(
            "must begin with postgres://, mysql://, mongodb:// or etcd:// where it is kept"
                .to_owned(),
        ),
    }
}

/// A variable of the environment.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The first secret that is written as it is.
fn plain_secret(config: &BrokerConfig) -> Option<String> {
    if let StoreUrl::Server(SecretSource::Plain(_)) = config.store.url {
        return Some("store.url".to_owned());
    }
    let is_plain = |secret: &SecretSource| matches!(secret, SecretSource::Plain(_));
    let mut kept = bundle_secrets(config).into_iter();
    let mut asked = registry_secrets(config);
    if let Some((path, _)) = asked.find(|(_, secret)| is_plain(secret)) {
        return Some(path);
    }
    if let Some((path, _)) = kept.find(|(_, secret)| is_plain(secret)) {
        return Some(path);
    }
    for (before, users, _) in accesses(config) {
        for (nth, user) in users.iter().enumerate() {
            if let Some(SecretSource::Plain(_)) = user.password {
                return Some(format!("{before}users[{nth}].password"));
            }
        }
    }
    None
}

fn others_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
}
