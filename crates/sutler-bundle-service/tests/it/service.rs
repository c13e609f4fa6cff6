//! Bundles behind a real broker over HTTP, with a runner that does what it is told (`service/fake_runner.rs`).
//!
//! What tests share is in `service/fixture.rs`.

mod bind_jobs;
mod bindings;
mod crashes;
pub(crate) mod fake_runner;
mod fixture;
mod instances;
mod local_run;
mod real_processes;
mod regressions;
mod states;
mod upgrades;
mod versions;
