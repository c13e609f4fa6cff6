//! Tests of the etcd store against a real server: the public suite, then what only a server can
//! suffer.

mod candidate;
mod proxy;
mod server;
