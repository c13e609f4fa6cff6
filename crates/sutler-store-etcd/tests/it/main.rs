//! Tests of the etcd store against a real server: the public suite, then what only a server can
//! suffer.

mod access;
mod candidate;
mod chaos;
mod counts;
mod faults;
mod replicas;
mod scene;
mod server;
