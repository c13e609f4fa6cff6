//! Tests of the whole platform over the store in memory, with brokers that a test answers for.
//!
//! `scripted_broker.rs` is such a broker: it keeps what it got, byte for byte. `test_platform.rs` starts a platform with
//! brokers and namespaces. The scenarios are in one file per subject; `brokers.rs` has those of brokers across replicas.

mod brokers;
mod cascades;
mod instances;
mod interrupted_requests;
mod scripted_broker;
mod test_platform;
