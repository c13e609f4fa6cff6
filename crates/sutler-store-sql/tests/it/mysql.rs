//! The store in MySQL and MariaDB: the conformance suite, then faults, round trips, start-up.

mod bounds;
mod cluster;
mod conformance;
mod faults;
mod opening;
mod round_trips;
mod sweeps;
mod tls;
mod wakeups;
