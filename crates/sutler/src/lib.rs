//! The configuration of the executable, as types.
//!
//! A library for the tools of this workspace only, without a stable API. Start with [`BrokerConfig`] and [`load`].

mod config;

pub use config::{
    AccessConfig, AdminConfig, AuditConfig, AuthMode, BearerConfig, BrokerConfig, BundleCompat,
    BundleSecret, BundlesConfig, ByteSize, CatalogConfig, CleanupConfig, ClientAuth, CompatConfig,
    ConfigDiagnostic, ConfigError, ConfigInput, ConfigSources, ContainerEngineConfig, CronText,
    DeletedPollAnswer, DurationText, EnvLookup, FilePath, FlagValue, HIDDEN, HostPort, HttpUrl,
    ImageLogin, ImageTags, InlineCatalog, LimitsConfig, LogConfig, LogFormat, MergedConfig,
    MetricsConfig, MissingVersionAnswer, PLATFORM_REALM, PlatformAccess, RefreshConfig,
    RegistryAuth, RegistryConfig, RegistryKind, ReloadInput, ResolveError, ResolvedConfig,
    ResourceConfig, RunLimits, RunNetwork, SecretKey, SecretSource, StoreConfig, StoreServer,
    StoreUrl, TimeoutsConfig, TlsConfig, UserConfig, ValueOrigin, load, merge, open_registry,
    reference, restart_to_apply, schema, show,
};
