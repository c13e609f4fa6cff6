//! A broker for databases on a PostgreSQL server. Start with `service.rs`: it is the broker.
//!
//! `names.rs` and `sql.rs` say what things are called and what is said to the server; both are pure.
//! `server.rs` says it, `fault.rs` explains what the server answers, `wishes.rs` knows plans and
//! parameters, `password.rs` makes passwords, `settings.rs` reads the environment. `main.rs` puts it
//! together. What the framework does around it is told in `docs/ARCHITECTURE.md`.

mod fault;
mod names;
mod password;
mod server;
mod service;
mod settings;
mod sql;
mod wishes;

pub use names::{InvalidPrefix, Name, Prefix};
pub use server::Server;
pub use service::Postgres;
pub use settings::{Address, Settings, SettingsError};
pub use wishes::{Extension, Limits, Parameters, PlanLimits, PlanWithoutLimits, Wishes};
