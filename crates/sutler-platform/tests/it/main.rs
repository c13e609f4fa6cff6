//! Tests of the whole platform over the store in memory, with brokers that a test answers for.
//!
//! `scripted_broker.rs` is such a broker: it keeps what it got, byte for byte; `raw_broker.rs` is one on a real socket.
//! `test_platform.rs` starts a platform with brokers and namespaces. The scenarios are in one file per subject; `brokers.rs` has those of brokers across replicas.

mod abandoned_instances;
mod brokers;
mod cascades;
mod hidden_secrets;
mod hostile_brokers;
mod instances;
mod interrupted_requests;
mod namespaces;
mod orphans;
mod raw_broker;
mod scripted_broker;
mod secrets;
mod shut_down;
mod test_platform;
