//! The house rules, each a test: crates and their arrows, sources, pages.
//!
//! A rule that has to be broken gets an entry with its reason in the list beside it, never an
//! attribute in the code that breaks it.

mod arrows;
mod names;
mod pages;
mod regressions;
mod sources;
mod statuses;
mod words;

/// Fails with every complaint, one to a line.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
