//! Tests of the SQL stores from outside, against real servers: the public suite, then what only a
//! server can suffer.

mod bounds;
mod leases;
mod scene;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
