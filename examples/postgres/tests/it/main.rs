//! The broker as its users run it: the real program, against a real PostgreSQL server.
//!
//! `estate.rs` is one test's part of a server, `program.rs` the broker, `sql.rs` logs in. Without
//! PostgreSQL the tests say loudly that they were skipped; with `CI=true` they fail.

mod check;
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
