//! Bundles as they are run: real processes on this host, and the service behind a broker.

#[cfg(feature = "containers")]
mod container;
mod folder_registry;
mod process;
#[cfg(feature = "containers")]
mod pulls;
mod registries;
mod service;
mod starts;
