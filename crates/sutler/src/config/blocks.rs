//! Configuration blocks that do not belong to one root: listener, TLS, authentication, limits, log and store.
//!
//! `sutler broker` and `sutler platform` use them. Each block has its types (the source of
//! the schema and of the reference), its checks and its conversion into the type that the server, the log or the
//! store takes. A block does not know its root: callers pass the path of the block, and
//! rules about several blocks are in the root's own checks (`config/check.rs`, `platform/check.rs`).

mod auth;
mod limits;
mod listen;
mod log;
mod store;
mod tls;

pub use auth::{AccessConfig, AuthMode, BearerConfig, ResolveError, UserConfig};
pub(super) use auth::{authentication, check_bearer, check_users};
pub use limits::{ConnectionTimeouts, LimitsConfig, TimeoutsConfig};
pub(super) use listen::{Exposure, check_exposure};
pub use log::{AuditConfig, LogConfig, LogFormat, MetricsConfig};
pub use store::{StoreConfig, StoreServer, StoreUrl};
pub use tls::{ClientAuth, TlsConfig};
