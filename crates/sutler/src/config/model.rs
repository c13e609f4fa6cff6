//! The configuration of a broker as types: with `blocks/` the only source of the schema and of the reference in
//! `docs/configuration.md`. Operators read the doc comments of the fields.
//!
//! Blocks that other roots use too (listener, TLS, authentication, limits, log, store) are in `blocks/`; here are
//! those of the broker only: `model/access.rs`, `model/service.rs`, `model/bundles.rs`, `model/registries.rs`.
//! `check.rs` has the rules, `merge.rs` the sources of values.

mod access;
mod bundles;
mod refresh;
mod registries;
mod service;

pub use access::{AdminConfig, PlatformAccess};
pub use bundles::{
    BundleCompat, BundleSecret, BundlesConfig, ContainerEngineConfig, ImageLogin, RunLimits,
    RunNetwork, SecretKey,
};
pub use refresh::RefreshConfig;
pub use registries::{ImageTags, RegistryAuth, RegistryConfig, RegistryKind};
pub use service::{
    CatalogConfig, CleanupConfig, CompatConfig, DeletedPollAnswer, InlineCatalog,
    MissingVersionAnswer, ResourceConfig,
};

use super::blocks::{
    AccessConfig, AuditConfig, AuthMode, BearerConfig, LimitsConfig, LogConfig, MetricsConfig,
    StoreConfig, TimeoutsConfig, TlsConfig, UserConfig,
};
use super::value_types::{DurationText, HostPort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration of `sutler broker`. Every key may be left out.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Config")]
pub struct BrokerConfig {
    /// Where the broker listens. Only this machine can reach the default.
    pub listen: HostPort,
    /// Whether requests must prove who they are: `required`, or `none` to serve everybody.
    pub auth: AuthMode,
    /// Who may come in with a name and a password, unless `platforms` say otherwise.
    pub users: Vec<UserConfig>,
    /// Who may come in with a bearer token, unless `platforms` say otherwise.
    pub bearer: Option<BearerConfig>,
    /// Platforms with a path, a realm and users of their own. What `users` and `bearer` say above
    /// is then the platform at `/`; without them there is none there.
    pub platforms: Vec<PlatformAccess>,
    /// Encrypted connections. Without it the broker speaks plain HTTP.
    pub tls: Option<TlsConfig>,
    /// What is offered; without it, a demo catalog.
    pub catalog: CatalogConfig,
    /// Services offered by bundles, in place of a catalog.
    pub bundles: Option<BundlesConfig>,
    /// Registries that bundles are found in, beside the folders of `bundles`.
    pub registry: Vec<RegistryConfig>,
    /// How registries are asked, and what becomes of what they do not have any more.
    pub refresh: RefreshConfig,
    /// Where instances, bindings and operations are kept.
    pub store: StoreConfig,
    /// The API of operators, and who may use it. Without it there is none.
    pub admin: Option<AdminConfig>,
    /// How much of everything a client may have.
    pub limits: LimitsConfig,
    /// How long things may take.
    pub timeouts: TimeoutsConfig,
    /// How many operations run at a time.
    pub workers: usize,
    /// How long a shut-down waits for what runs.
    pub drain: DurationText,
    /// Service instances: unknown ones, and how long their operations are kept.
    pub instances: ResourceConfig,
    /// Service bindings: unknown ones, and how long their operations are kept.
    pub bindings: ResourceConfig,
    /// Answers of older versions of the specification.
    pub compat: CompatConfig,
    /// What the broker writes about its work, on standard error.
    pub log: LogConfig,
    /// Who changed what, one line of JSON each.
    pub audit: AuditConfig,
    /// Numbers for Prometheus, at `/metrics`.
    pub metrics: MetricsConfig,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        let settings = sutler_broker::Settings::default();
        Self {
            listen: HostPort::parse("127.0.0.1:8080").expect("it is an address"),
            auth: AuthMode::Required,
            users: Vec::new(),
            bearer: None,
            platforms: Vec::new(),
            tls: None,
            catalog: CatalogConfig::default(),
            bundles: None,
            registry: Vec::new(),
            refresh: RefreshConfig::default(),
            store: StoreConfig::default(),
            admin: None,
            limits: LimitsConfig::default(),
            timeouts: TimeoutsConfig::default(),
            workers: settings.workers,
            drain: DurationText(settings.drain),
            instances: ResourceConfig::default(),
            bindings: ResourceConfig::default(),
            compat: CompatConfig::default(),
            log: LogConfig::default(),
            audit: AuditConfig::default(),
            metrics: MetricsConfig::default(),
        }
    }
}

impl BrokerConfig {
    /// The access that the top of the configuration describes.
    pub(super) fn top_access(&self) -> AccessConfig<'_> {
        AccessConfig {
            auth: self.auth,
            users: &self.users,
            bearer: self.bearer.as_ref(),
        }
    }

    /// The access to `/`; `None` if only `platforms` are served.
    pub fn root_access(&self) -> Option<AccessConfig<'_>> {
        let access = self.top_access();
        (self.platforms.is_empty() || !access.admits_nobody()).then_some(access)
    }
}
