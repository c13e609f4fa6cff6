//! Tests of the rules; nothing here is part of the product.
//!
//! `tests/table.rs` checks every row of the transition tables, `tests/rules.rs` has one test per line of
//! the checklist, `tests/random.rs` runs random sequences of events against a model, and
//! `tests/fixtures.rs` holds the resources and requests they share.

mod fixtures;
mod random;
mod rules;
mod table;
