//! A broker for databases on a PostgreSQL server. Start with `service.rs`: it is the broker.
//!
//! `names.rs` has the names of databases and roles, `sql.rs` the statements; both are pure. `server.rs` runs
//! them, `server_error.rs` classifies the errors of the server, `parameters.rs` has plans and parameters,
//! `password.rs` generates passwords, `settings.rs` reads the environment, `main.rs` starts the broker.
//! `docs/ARCHITECTURE.md` describes the framework.

mod names;
mod parameters;
mod password;
mod server;
mod server_error;
mod service;
mod settings;
mod sql;

pub use names::{Name, Prefix, PrefixError};
pub use parameters::{DatabaseSpec, Extension, Limits, MissingLimitsError, Parameters, PlanLimits};
pub use server::Server;
pub use service::Postgres;
pub use settings::{ServerAddress, Settings, SettingsError};
