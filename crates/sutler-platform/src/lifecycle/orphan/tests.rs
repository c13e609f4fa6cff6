//! Tests of the ledger's rules; nothing here is part of the product.
//!
//! `tests/table.rs` checks every row of the transition table, `tests/rules.rs` proves single behaviours,
//! `tests/documents.rs` what is kept and shown, `tests/random.rs` runs random sequences of events. `tests/fixtures.rs` and
//! `tests/answers.rs` have what they share.

mod answers;
mod documents;
mod fixtures;
mod random;
mod rules;
mod table;
