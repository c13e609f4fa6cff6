//! What the executable reads: the configuration of a broker, as types.
//!
//! A library only so that tools can reach it; it promises nothing to others. Start with [`Config`] and
//! [`load`].

mod config;

pub use config::{
    Access, Address, Admin, Audit, AuthMode, Bearer, BundleCompat, BundleSecret, Bundles,
    CatalogSource, CleanupTimes, ClientAuth, Compat, Config, ConfigFault, ConfigFaults,
    DeletedPollAnswer, Draft, Engine, File, Flag, Format, HIDDEN, Held, ImageLogin, Inline, Input,
    Limits, Loaded, Log, Metrics, MissingVersionAnswer, Origin, Platform, Records, Refresh,
    RegistryAuth, RegistryBlock, RegistryKind, RunLimits, RunNetwork, Secret, SecretKey, Size,
    Sources, Span, StoreServer, StoreSource, StoreUrl, Tags, Timeouts, Tls, Url, User, Variables,
    When, draft, load, open_registry, reference, restart_to_apply, schema, show, store_server,
};
