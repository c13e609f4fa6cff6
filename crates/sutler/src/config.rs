//! The configuration of a broker: types, sources, checks and output.
//!
//! `model.rs` and `blocks/` have the types; `merge.rs` merges file, environment and flags (pure); `resolve.rs`
//! reads the files they name. `show.rs` and `reference.rs` print it. The executable starts a broker with it
//! (`commands/broker.rs`).

mod blocks;
mod check;
mod environment;
mod findings;
mod merge;
mod model;
mod reference;
mod registries;
mod reload_diff;
mod resolve;
mod schema;
mod secret;
mod show;
mod sources;
mod spring;
#[cfg(test)]
mod tests;
mod tree;
mod value_types;

pub use blocks::{
    AccessConfig, AuditConfig, AuthMode, BearerConfig, ClientAuth, LimitsConfig, LogConfig,
    LogFormat, MetricsConfig, ResolveError, StoreConfig, StoreServer, StoreUrl, TimeoutsConfig,
    TlsConfig, UserConfig,
};
pub use check::PLATFORM_REALM;
pub use merge::{ConfigInput, FlagValue, MergedConfig, merge};
pub use model::{
    AdminConfig, BrokerConfig, BundleCompat, BundleSecret, BundlesConfig, CatalogConfig,
    CleanupConfig, CompatConfig, ContainerEngineConfig, DeletedPollAnswer, ImageLogin, ImageTags,
    InlineCatalog, MissingVersionAnswer, PlatformAccess, RefreshConfig, RegistryAuth,
    RegistryConfig, RegistryKind, ResourceConfig, RunLimits, RunNetwork, SecretKey,
};
pub use reference::reference;
pub use registries::open_registry;
pub use reload_diff::{ReloadInput, restart_to_apply};
pub use resolve::{ResolvedConfig, load};
pub use schema::schema;
pub use secret::{EnvLookup, HIDDEN, SecretSource};
pub use show::show;
pub use sources::{ConfigDiagnostic, ConfigError, ConfigSources, ValueOrigin};
pub use value_types::{ByteSize, CronText, DurationText, FilePath, HostPort, HttpUrl};
