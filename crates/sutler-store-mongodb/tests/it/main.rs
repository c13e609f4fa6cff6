//! Tests of the MongoDB store against a real server: the public suite, then what only a server can
//! suffer.

mod candidate;
mod chaos;
mod counts;
mod faults;
mod feed;
mod opening;
mod replicas;
mod scene;
