//! The broker as its users run it: the real program, against a real PostgreSQL server.
//!
//! `cluster.rs` starts a server with throw-away data, `program.rs` the broker, `sql.rs` logs in. Without
//! PostgreSQL the tests say loudly that they were skipped; with `CI=true` they fail.

mod check;
mod cluster;
mod crash;
mod estate;
mod every_statement;
mod life;
mod outage;
mod program;
mod removal;
mod rights;
mod secrets;
mod sql;
mod update;
mod wire;
