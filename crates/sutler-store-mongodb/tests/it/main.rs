//! Tests of the MongoDB store against a real server: the public suite, then what only a server can
//! suffer.

mod candidate;
mod chaos;
mod command_counts;
mod faults;
mod feed;
mod fixture;
mod opening;
mod replicas;
