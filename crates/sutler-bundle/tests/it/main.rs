//! Bundles as they are run: real processes on this host, and the service behind a broker.

#[cfg(feature = "containers")]
mod container;
mod process;
mod registries;
mod service;
mod starts;
