//! The configuration of the executable, as types.
//!
//! A library for the tools of this workspace only, without a stable API. Start with [`BrokerConfig`] and [`load`], or [`PlatformConfig`] and
//! [`load_platform`].

mod config;

pub use config::{
    AccessConfig, AdminConfig, AuditConfig, AuthMode, BearerConfig, BrokerConfig, BundleCompat,
    BundleSecret, BundlesConfig, ByteSize, CatalogConfig, CleanupConfig, ClientAuth, CompatConfig,
    ConfigDiagnostic, ConfigError, ConfigInput, ConfigSources, ConnectionTimeouts,
    ContainerEngineConfig, CronText, DeletedPollAnswer, DurationText, EgressConfig, EnvLookup,
    FilePath, FlagValue, HIDDEN, HostPort, HttpUrl, ImageLogin, ImageTags, InlineCatalog,
    LimitsConfig, LogConfig, LogFormat, MergedConfig, MetricsConfig, MissingVersionAnswer,
    NetworkText, PLATFORM_REALM, PlatformAccess, PlatformConfig, PlatformTimeoutsConfig,
    RefreshConfig, RegistryAuth, RegistryConfig, RegistryKind, ReloadInput, ResolveError,
    ResolvedConfig, ResolvedPlatformConfig, ResourceConfig, RunLimits, RunNetwork, SecretKey,
    SecretSource, StoreConfig, StoreServer, StoreUrl, TimeoutsConfig, TlsConfig, UserConfig,
    ValueOrigin, load, load_platform, merge, open_registry, reference, restart_to_apply, schema,
    show,
};
