//! Brokers from outside: several replicas over one store, with brokers that do as a test says.
//!
//! `brokers/fixture.rs` has replicas with engines, `brokers/scripted_broker.rs` the brokers, `brokers/samples.rs`
//! catalogs and instances. `brokers/over_http.rs` has a real server.

mod breakers;
mod crashes;
mod deregistrations;
mod fixture;
mod limits;
mod over_http;
mod probes;
mod registrations;
mod removed_items;
mod samples;
mod scripted_broker;
mod syncs;
mod views;
