//! The house rules, each a test: crates and their arrows, sources, pages.
//!
//! An exception to a rule is an entry with its reason in the list next to the rule, never an
//! attribute in the code that breaks it.

mod arrows;
mod names;
mod pages;
mod regressions;
mod sources;
mod statuses;
mod words;

/// Fails with every complaint, one per line.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
