//! Deterministic simulation of whole brokers: several replicas with engine, requests, hooks, administration and
//! clean-up, platforms and operators, in one thread under a simulated clock.
//!
//! A seed decides everything: the scenario (`scenario.rs`), delays and losses between processes and the store
//! (`store_link.rs`), faults (`faults.rs`), requests (`client.rs`, `operator.rs`), and the order in which tasks run
//! (`seeded_sources.rs`). Hooks (`service.rs`) record their effects in a model of the external system
//! (`external_system.rs`); every commit is checked (`commit_checker.rs`). The store is the real memory store. Read
//! `simulation.rs` first. The network protocol, TLS and disks are not simulated: `tools/crash` kills real processes
//! over real servers.
//!
//! The other half, the platform, is simulated over the same store and network: `platform_world/`.

mod client;
mod commit_checker;
mod external_system;
mod faults;
mod history;
mod operator;
mod platform_world;
mod replica;
mod scenario;
mod seeded_sources;
mod service;
mod simulation;
mod store_link;

pub use platform_world::run_platform_seed;
pub use simulation::{SimulationResult, run_seed};
