//! Real servers and test support for this workspace: servers found on the machine, started on free ports with
//! temporary data, and stopped with the test run. Not for production.
//!
//! One file per kind of server (`postgres.rs`, `mariadb.rs`, `mongodb.rs`, `etcd.rs`, `redis.rs`, `podman.rs`,
//! `docker_registry.rs`) finds and starts it; `server.rs` is the handle for tests, a [`Server`] that can be killed,
//! restarted and frozen. `proxy.rs` sits between a client and a server, counts round trips and cuts connections;
//! `registry_proxy.rs` intercepts single HTTP requests to a `docker_registry.rs`. `http.rs` is the HTTP client of
//! tests and tools. Everything here panics on failure, as tests do.

mod certificates;
mod faults;
mod installed;
mod proxy;
mod registry_proxy;
mod rng;
mod server;
mod server_dir;
mod server_guard;
mod server_url;
mod wait;

pub mod docker_registry;
pub mod etcd;
pub mod http;
pub mod mariadb;
pub mod mongodb;
pub mod podman;
pub mod postgres;
pub mod redis;

pub use certificates::Certificates;
pub use faults::inject_fault;
pub use installed::{MissingServer, find_programs, first_version, print_line, record_ran};
pub use proxy::{
    CutPoint, Dialect, EtcdDialect, HeldCommit, Message, MongoDialect, MySqlDialect,
    PostgresDialect, Proxy,
};
pub use registry_proxy::{Intercept, RegistryProxy};
pub use rng::SeededRng;
pub use server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
pub use server_dir::ServerDir;
pub use server_url::ServerUrl;
pub use wait::{free_port, until};
