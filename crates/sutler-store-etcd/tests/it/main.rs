//! Tests of the etcd store against a real server: the public suite, then what only a server can
//! suffer.

mod access;
mod candidate;
mod chaos;
mod faults;
mod fixture;
mod replicas;
mod request_counts;
mod server;
