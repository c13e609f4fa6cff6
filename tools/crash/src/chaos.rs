//! Several replicas over one server, under load, while replicas are killed, paused and cut off and the
//! server is restarted; and whether everything was as it should be.
//!
//! `run.rs` is one round from beginning to end: it starts replicas (`replica.rs`), each with its own way
//! to the server (`way.rs`), has clients ask (`client.rs`) and things broken (`nemesis.rs`), and reads
//! what is left (`left.rs`).
//! Pure parts: `schedule.rs` says what is broken when; `history.rs` is what clients saw; `model.rs`,
//! `facts.rs` and `linear.rs` judge whether it can have been so; `executions.rs`, `world.rs` and
//! `account.rs` judge what was done and what is left.

mod account;
mod client;
mod executions;
mod facts;
mod history;
mod left;
mod linear;
mod make;
mod model;
mod nemesis;
mod replica;
mod run;
mod schedule;
mod way;
mod world;

pub use account::{Left, account, lane_of};
pub use executions::{Executions, Pause, judge};
pub use facts::{Facts, Names, Row};
pub use history::{Asked, BINDINGS, Call, Progress, Seen, Spec};
pub use linear::{Found, explain};
pub use make::Make;
pub use run::{Chaos, ChaosReport, unleash};
pub use schedule::{Blow, Cut, Plan, Planned};
pub use world::World;
