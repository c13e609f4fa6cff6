//! Real servers for the tests of this workspace: found on the machine, started on free ports with
//! throw-away data, stopped when nobody needs them any more. Not for production.
//!
//! One file for each sort of server (`postgres.rs`, `mariadb.rs`, `mongodb.rs`, `etcd.rs`, `redis.rs`, `registry.rs`) says how it is
//! found and started; `server.rs` is what tests hold in their hands: a [`Server`] that can be killed,
//! started again and frozen. `proxy.rs` stands between a client and a server, counts round trips and
//! cuts connections; `front.rs` does so to single requests of HTTP, in front of a `registry.rs`. Everything here panics where it cannot go on, as tests do.

mod blows;
mod certificates;
mod find;
mod front;
mod home;
mod http;
mod keeper;
mod place;
mod proxy;
mod server;
mod wait;

pub mod etcd;
pub mod mariadb;
pub mod mongodb;
pub mod podman;
pub mod postgres;
pub mod redis;
pub mod registry;

pub use blows::strike;
pub use certificates::Certificates;
pub use find::{Missing, first_version, programs, say, tell_what_ran};
pub use front::{Fate, Front};
pub use home::Home;
pub use place::Place;
pub use proxy::{
    Cut, Dialect, EtcdDialect, Held, Message, MongoDialect, MySqlDialect, PostgresDialect, Proxy,
};
pub use server::{Demands, Ground, Line, PASSWORD, Recipe, Server, Tls};
pub use wait::{free_port, until};
