//! Bundles as they are run: real processes on this host, and the service behind a broker.

mod process;
mod service;
