//! Bundles of registries behind a real broker over HTTP: offered, withdrawn, kept and deleted.
//!
//! The registry is a fake (`registries/fixture.rs`), so that it can fail in every way at the right moment.

mod concurrent_pushes;
mod concurrent_tasks;
mod configuration_changes;
mod faults;
mod fixture;
mod hostile_registries;
mod pushes;
mod races;
mod scale;
mod scheduler;
mod store_calls;
mod versions;
