//! Tests of the SQL stores against real servers: the conformance suite, then faults, limits and costs.

mod bounds;
mod faults;
mod fixture;
mod leases;
mod round_trips;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
