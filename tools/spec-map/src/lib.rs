//! The lines of the specification, and the tests that hold them.
//!
//! The program in `main.rs` makes a page of both; `tools/mutants` uses the same data.

mod checklist;
mod page;
mod scan;

pub use checklist::{Level, Line, parse as checklist};
pub use page::Map;
pub use scan::{HeldLine, broker_lines as held_by_tests, platform_lines as held_by_platform_tests};
