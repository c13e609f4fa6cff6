//! The check, held to what it promises: a deliberately broken broker, one flaw at a time; brokers that
//! mean harm; and our own, which keeps every rule.
//!
//! Start with `faulty_broker.rs` (the broker of the test kit) and `flaws.rs` (what it is for).

mod bindings;
mod faulty_broker;
mod flaws;
mod hostile_brokers;
mod instances;
mod own_broker;
