//! The executable as its users meet it: what it says, how it exits, and the walk in the README.

mod admin;
mod asked;
mod bundle;
mod bundles;
mod canaries;
mod check;
mod configuration;
mod hash_password;
#[cfg(feature = "postgres")]
mod hosts;
mod kills;
mod lives;
mod process;
mod pushes;
mod readme;
mod recorded_conversation;
mod registries;
mod reload;
mod said;
mod shipped;
mod stopping;
mod store;
#[cfg(any(
    feature = "postgres",
    feature = "mysql",
    feature = "mongodb",
    feature = "etcd"
))]
mod stores;
mod telemetry;
mod upgrades;
