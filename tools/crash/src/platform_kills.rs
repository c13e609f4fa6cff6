//! Kills a platform at every commit of every verb, and checks from the outside what became of it.
//!
//! Three processes: this one, the platform (`victim/platform_process.rs`), and its broker (`recording_broker.rs`). A
//! *scenario* (`scenario.rs`, all of them in `scenarios.rs`) is a few orders of people and a script of the recording
//! broker. It is run to its end once for each commit and moment at which the platform dies (`kill_run.rs`), also a
//! second time while it recovers; `commit_points.rs` runs all of that.
//!
//! `people.rs` sends the orders over the REST API and repeats those without an answer. `verdict.rs` judges the log of
//! the broker and what the platform's store has (`known_state.rs`); pure. For a long run: `cargo run -p sutler-crash --
//! platform`.

pub(crate) mod api_client;
pub(crate) mod broker_process;
mod commit_points;
pub(crate) mod kill_run;
pub(crate) mod known_state;
pub(crate) mod people;
mod platform_victim;
mod scenario;
pub(crate) mod scenarios;
pub(crate) mod verdict;

pub use commit_points::{CommitPoints, CommitPointsReport, ScenarioReport, kill_at_commits};
pub use scenarios::all_scenarios;
