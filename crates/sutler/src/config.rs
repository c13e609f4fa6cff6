//! The configuration of a broker: what may be written, where it comes from, what is said about it.
//!
//! `model.rs` has the types; `load.rs` merges file, environment and flags, purely; `settle.rs` looks
//! at the files they name. `show.rs` and `reference.rs` print it. Starting a broker with it is the
//! affair of the executable (`commands/broker.rs`).

mod changes;
mod check;
mod environment;
mod load;
mod model;
mod reference;
mod registries;
mod schema;
mod secret;
mod settle;
mod show;
mod sources;
mod spring;
#[cfg(test)]
mod tests;
mod tree;
mod words;

pub use changes::{Held, restart_to_apply, store_server};
pub use load::{Draft, Flag, Input, draft};
pub use model::{
    Access, Admin, Audit, AuthMode, Bearer, BundleCompat, BundleSecret, Bundles, CatalogSource,
    CleanupTimes, ClientAuth, Compat, Config, DeletedPollAnswer, Engine, Format, ImageLogin,
    Inline, Limits, Log, Metrics, MissingVersionAnswer, Platform, Records, Refresh, RegistryAuth,
    RegistryBlock, RegistryKind, RunLimits, RunNetwork, SecretKey, StoreServer, StoreSource,
    StoreUrl, Tags, Timeouts, Tls, User,
};
pub use reference::reference;
pub use registries::open_registry;
pub use schema::schema;
pub use secret::{HIDDEN, Secret, Variables};
pub use settle::{Loaded, load};
pub use show::show;
pub use sources::{ConfigFault, ConfigFaults, Origin, Sources};
pub use words::{Address, File, Size, Span, Url, When};
