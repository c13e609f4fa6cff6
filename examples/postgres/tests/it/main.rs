//! The broker as its users run it: the real program, against a real PostgreSQL server.
//!
//! `fixture.rs` is one test's part of a server, `broker_process.rs` the broker, `sql.rs` logs in. Without PostgreSQL
//! the tests print that they were skipped; with `CI=true` they fail.

mod broker_process;
mod check;
mod crash;
mod crash_after_every_statement;
mod fixture;
mod lifecycle;
mod outage;
mod permissions;
mod removal;
mod reply_loss_proxy;
mod secrets;
mod sql;
mod update;
