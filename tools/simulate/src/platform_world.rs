//! The platform side in the simulation: several replicas over one store, a model broker that loses answers, is late and
//! fails, and users who create, change and delete at random.
//!
//! Read `run.rs` first. `model_broker.rs` is the broker (pure), `broker_link.rs` the way to it, `broker_side.rs` what is
//! there and on its way; `replicas.rs` are the processes, `faults.rs` their faults, `outages.rs` those of the broker,
//! `user.rs` the people. Invariants are checked after every commit (`checker.rs`, `instance_rules.rs`, `binding_rules.rs`),
//! with every request (`request_rules.rs`), and at the end (`run.rs`). Not simulated: HTTP, the API and its access rules,
//! rotation by time, jumps of the clock.

mod binding_rules;
mod broker_link;
mod broker_side;
mod checker;
mod faults;
mod instance_rules;
mod known_resources;
mod model_broker;
mod model_instance;
mod outages;
mod replicas;
mod request_rules;
mod run;
mod scenario;
mod setup;
mod user;

pub use run::run_platform_seed;
