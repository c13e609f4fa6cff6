//! The configuration as types: the only source of what may be written, of its schema and of the
//! reference in `docs/configuration.md`. Doc comments of fields are what operators read.
//!
//! Nothing is decided here: `check.rs` says what does not go together, `load.rs` where values come
//! from. Who may come in: `model/access.rs`. What the broker does:
//! `model/service.rs`, `model/bundles.rs` and `model/registries.rs`; where it keeps it: `model/store.rs`; how much and how long:
//! `model/bounds.rs`.

mod access;
mod bounds;
mod bundles;
mod refresh;
mod registries;
mod service;
mod store;

pub use access::{Access, Admin, AuthMode, Bearer, ClientAuth, Platform, Tls, User};
pub use bounds::{Limits, Timeouts};
pub use bundles::{
    BundleCompat, BundleSecret, Bundles, Engine, ImageLogin, RunLimits, RunNetwork, SecretKey,
};
pub use refresh::Refresh;
pub use registries::{RegistryAuth, RegistryBlock, RegistryKind, Tags};
pub use service::{
    Audit, CatalogSource, CleanupTimes, Compat, DeletedPollAnswer, Format, Inline, Log, Metrics,
    MissingVersionAnswer, Records,
};
pub use store::{StoreServer, StoreSource, StoreUrl};

use super::words::{Address, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration of `sutler broker`. Every key may be left out.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the broker listens. Only this machine can reach the default.
    pub listen: Address,
    /// Whether requests must prove who they are: `required`, or `none` to serve everybody.
    pub auth: AuthMode,
    /// Who may come in with a name and a password, unless `platforms` say otherwise.
    pub users: Vec<User>,
    /// Who may come in with a bearer token, unless `platforms` say otherwise.
    pub bearer: Option<Bearer>,
    /// Platforms with a path, a realm and users of their own. What `users` and `bearer` say above
    /// is then the platform at `/`; without them there is none there.
    pub platforms: Vec<Platform>,
    /// Encrypted connections. Without it the broker speaks plain HTTP.
    pub tls: Option<Tls>,
    /// What is offered; without it, a demo catalog.
    pub catalog: CatalogSource,
    /// Services offered by bundles, in place of a catalog.
    pub bundles: Option<Bundles>,
    /// Registries that bundles are found in, beside the folders of `bundles`.
    pub registry: Vec<RegistryBlock>,
    /// How registries are asked, and what becomes of what they do not have any more.
    pub refresh: Refresh,
    /// Where instances, bindings and operations are kept.
    pub store: StoreSource,
    /// The API of operators, and who may use it. Without it there is none.
    pub admin: Option<Admin>,
    /// How much of everything a client may have.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How many operations run at a time.
    pub workers: usize,
    /// How long a shut-down waits for what runs.
    pub drain: Span,
    /// Service instances: unknown ones, and how long their operations are kept.
    pub instances: Records,
    /// Service bindings: unknown ones, and how long their operations are kept.
    pub bindings: Records,
    /// Answers of older versions of the specification.
    pub compat: Compat,
    /// What the broker writes about its work, on standard error.
    pub log: Log,
    /// Who changed what, one line of JSON each.
    pub audit: Audit,
    /// Numbers for Prometheus, at `/metrics`.
    pub metrics: Metrics,
}

impl Default for Config {
    fn default() -> Self {
        let settings = sutler_broker::Settings::default();
        Self {
            listen: Address::parse("127.0.0.1:8080").expect("it is an address"),
            auth: AuthMode::Required,
            users: Vec::new(),
            bearer: None,
            platforms: Vec::new(),
            tls: None,
            catalog: CatalogSource::default(),
            bundles: None,
            registry: Vec::new(),
            refresh: Refresh::default(),
            store: StoreSource::default(),
            admin: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            workers: settings.workers,
            drain: Span(settings.drain),
            instances: Records::default(),
            bindings: Records::default(),
            compat: Compat::default(),
            log: Log::default(),
            audit: Audit::default(),
            metrics: Metrics::default(),
        }
    }
}
