//! Several replicas over one server, under load, while replicas are killed, paused and cut off and the
//! server is restarted; and whether everything was as it should be.
//!
//! Pure parts: `schedule.rs` says what is broken when; `history.rs` is what clients saw; `model.rs` and
//! `linear.rs` judge whether it can have been so; `executions.rs`, `world.rs` and `account.rs` judge
//! what was done and what is left.

mod account;
mod executions;
mod facts;
mod history;
mod linear;
mod model;
mod schedule;
mod world;

pub use account::{Left, account, lane_of};
pub use executions::{Executions, Pause, judge};
pub use facts::{Facts, Names, Row};
pub use history::{Asked, BINDINGS, Call, Progress, Seen, Spec};
pub use linear::{Found, explain};
pub use schedule::{Blow, Cut, Plan, Planned};
pub use world::World;
