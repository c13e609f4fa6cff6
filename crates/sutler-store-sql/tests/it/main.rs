//! Tests of the SQL stores from outside, against real servers: the public suite, then what only a
//! server can suffer.

mod bounds;
mod faults;
mod fixture;
mod leases;
mod round_trips;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
