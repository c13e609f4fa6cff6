//! Tests of the SQL stores from outside, against real servers: the public suite, then what only a
//! server can suffer.

mod bounds;
mod faults;
mod leases;
mod scene;
mod trips;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
