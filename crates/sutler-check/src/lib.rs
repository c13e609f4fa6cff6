//! Checks any service broker for conformance and reports where it is not.
//!
//! Everything is checked as raw JSON and headers, never through the types of Sutler's own broker, so that one
//! mistake cannot hide in both. Reading order: `case.rs` (cases), `verdicts.rs` (verdicts), `client.rs`
//! (requests), `plan_run.rs` (one plan under test), `cases.rs` (the order of all cases).

mod case;
mod cases;
mod catalog;
mod check;
mod clean_up;
mod client;
mod created;
mod dry_run;
mod evidence;
mod exchange;
mod not_observable;
mod options;
mod params;
mod plan_run;
mod plan_runs;
mod progress;
mod report;
mod response_rules;
mod select;
mod target;
mod verdicts;

pub use case::{Case, Level, Scope};
pub use cases::all_cases;
pub use check::{Check, CheckError};
pub use clean_up::LeftoverResource;
pub use created::Tally;
pub use dry_run::{Outline, PlanOutline, SentParameters};
pub use exchange::Exchange;
pub use not_observable::NOT_OBSERVABLE;
pub use options::{Options, PlanParameters, Profile};
pub use progress::Event;
pub use report::{Counts, Redaction, Report, ShownExchange};
pub use select::{Choice, UnknownChoiceError};
pub use verdicts::{Finding, Subject, Verdict};
