//! Tests of the etcd store against a real server: the conformance suite, then faults, access and costs.

mod access;
mod chaos;
mod conformance;
mod faults;
mod fixture;
mod replicas;
mod request_counts;
mod server;
