//! Real servers for the tests of this workspace: found on the machine, started on free ports with
//! throw-away data, stopped when nobody needs them any more. Not for production.
//!
//! One file for each sort of server (`postgres.rs`, `mariadb.rs`, `mongodb.rs`, `etcd.rs`, `redis.rs`, `docker_registry.rs`) says how it is
//! found and started; `server.rs` is what tests hold in their hands: a [`Server`] that can be killed,
//! started again and frozen. `proxy.rs` stands between a client and a server, counts round trips and
//! cuts connections; `registry_proxy.rs` does so to single requests of HTTP, in front of a `docker_registry.rs`. Everything here panics where it cannot go on, as tests do.

mod certificates;
mod faults;
mod http;
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
pub mod mariadb;
pub mod mongodb;
pub mod podman;
pub mod postgres;
pub mod redis;

pub use certificates::Certificates;
pub use faults::inject_fault;
pub use installed::{MissingServer, find_programs, first_version, print_line, record_ran};
pub use proxy::{
    Cut, Dialect, EtcdDialect, HeldCommit, Message, MongoDialect, MySqlDialect, PostgresDialect,
    Proxy,
};
pub use registry_proxy::{Intercept, RegistryProxy};
pub use rng::SeededRng;
pub use server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
pub use server_dir::ServerDir;
pub use server_url::ServerUrl;
pub use wait::{free_port, until};
