//! Tests of the breaker's rules; nothing here is part of the product.
//!
//! `tests/table.rs` checks every row of the transition table, `tests/rules.rs` proves what it does not show, `tests/random.rs`
//! runs random sequences of events. `tests/fixtures.rs` has what they share.

mod fixtures;
mod random;
mod rules;
mod table;
