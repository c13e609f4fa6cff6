//! Deterministic simulation of whole brokers: several replicas with engine, requests, hooks, administration and
//! clean-up, platforms and operators, in one thread under a simulated clock.
//!
//! A seed decides everything: the plan (`plan.rs`), delays and losses between processes and the store
//! (`link.rs`), faults (`faults.rs`), requests (`client.rs`, `operator.rs`), and the order in which tasks run
//! (`surroundings.rs`). Hooks (`service.rs`) leave traces in a model of the outside world (`world.rs`); every
//! commit is checked (`auditor.rs`). The store is the real memory store. Read `simulation.rs` first. The network
//! protocol, TLS and disks are not simulated: `tools/crash` kills real processes over real servers.

mod auditor;
mod client;
mod faults;
mod history;
mod link;
mod operator;
mod plan;
mod replica;
mod service;
mod simulation;
mod surroundings;
mod world;

pub use simulation::{SimulationResult, run_seed};
