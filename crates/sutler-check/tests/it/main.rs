//! Tests of the check: a deliberately broken broker, one flaw at a time; malicious
//! brokers; and our own broker, which conforms to every rule.
//!
//! Start with `faulty_broker.rs` (the test broker) and `flaws.rs` (its use).

mod bindings;
mod faulty_broker;
mod flaws;
mod hostile_brokers;
mod instances;
mod own_broker;
