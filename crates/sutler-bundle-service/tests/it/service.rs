//! Bundles behind a real broker over HTTP, with a scripted runner (`service/fake_runner.rs`).
//!
//! The shared fixture is `service/fixture.rs`.

mod async_bindings;
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
