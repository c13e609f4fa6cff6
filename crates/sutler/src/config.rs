//! The configuration of a broker: what may be written, where it comes from, what is said about it.
//!
//! `model.rs` has the types; `merge.rs` merges file, environment and flags, purely; `resolve.rs` looks
//! at the files they name. `show.rs` and `reference.rs` print it. Starting a broker with it is the
//! affair of the executable (`commands/broker.rs`).

mod check;
mod environment;
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

pub use merge::{ConfigInput, FlagValue, MergedConfig, merge};
pub use model::{
    AccessConfig, AdminConfig, AuditConfig, AuthMode, BearerConfig, BrokerConfig, BundleCompat,
    BundleSecret, BundlesConfig, CatalogConfig, CleanupConfig, ClientAuth, CompatConfig,
    ContainerEngineConfig, DeletedPollAnswer, ImageLogin, ImageTags, InlineCatalog, LimitsConfig,
    LogConfig, LogFormat, MetricsConfig, MissingVersionAnswer, PlatformAccess, RefreshConfig,
    RegistryAuth, RegistryConfig, RegistryKind, ResourceConfig, RunLimits, RunNetwork, SecretKey,
    StoreConfig, StoreServer, StoreUrl, TimeoutsConfig, TlsConfig, UserConfig,
};
pub use reference::reference;
pub use registries::open_registry;
pub use reload_diff::{ReloadInput, restart_to_apply, store_server};
pub use resolve::{ResolvedConfig, load};
pub use schema::schema;
pub use secret::{EnvLookup, HIDDEN, SecretSource};
pub use show::show;
pub use sources::{ConfigDiagnostic, ConfigError, ConfigSources, ValueOrigin};
pub use value_types::{ByteSize, CronText, DurationText, FilePath, HostPort, HttpUrl};
