//! The store in PostgreSQL: the conformance suite, then faults, round trips, wake-ups, start-up.

mod bounds;
mod cluster;
mod conformance;
mod fast_commit;
mod faults;
mod feed;
mod opening;
mod round_trips;
mod sweeps;
mod tls;
mod wakeups;
