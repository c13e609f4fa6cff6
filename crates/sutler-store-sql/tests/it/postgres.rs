//! The store in PostgreSQL: the public suite, then faults, round trips, wake-ups, start-up.

mod bounds;
mod candidate;
mod cluster;
mod faults;
mod opening;
mod sweeps;
mod tls;
mod trips;
mod usual;
mod wakes;
