//! Proves any service broker conformant, or shows where it is not.
//!
//! Everything is judged as raw JSON and headers, never through the types that Sutler's own broker
//! answers with: one mistake must not hide in both. Reading order: `case.rs` (what is judged),
//! `book.rs` (the verdicts), `asker.rs` (how questions are asked, and what is noted of each),
//! `stage.rs` (one plan under test), `chapters.rs` (the walk through a plan, chapter by chapter).

mod asker;
mod book;
mod case;
mod catalog;
mod chapters;
mod check;
mod clean_up;
mod evidence;
mod exchange;
mod ledger;
mod options;
mod outline;
mod params;
mod progress;
mod report;
mod select;
mod stage;
mod standing;
mod target;
mod unseen;
mod walks;

pub use book::{Finding, Subject, Verdict};
pub use case::{Case, Level, Scope, all_cases};
pub use check::{Check, NotChecked};
pub use clean_up::LeftBehind;
pub use exchange::Exchange;
pub use ledger::Tally;
pub use options::{Options, PlanParameters, Profile};
pub use outline::{Outline, PlanOutline, Sent};
pub use progress::Event;
pub use report::{Counts, Redaction, Report, Shown};
pub use select::{Choice, Unknown};
pub use unseen::UNSEEN;
