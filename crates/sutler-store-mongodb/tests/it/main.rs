//! Tests of the MongoDB store against a real server: the conformance suite, then faults, access and costs.

mod chaos;
mod command_counts;
mod conformance;
mod faults;
mod feed;
mod fixture;
mod opening;
mod replicas;
