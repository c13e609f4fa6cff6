//! Bundles behind a real broker over HTTP, with a runner that does what it is told (`service/fake.rs`).
//!
//! What tests share is in `service/house.rs`.

mod bind_jobs;
mod bindings;
mod crashes;
pub(crate) mod fake;
mod house;
mod instances;
mod local;
mod real;
mod regressions;
mod states;
mod upgrades;
mod versions;
