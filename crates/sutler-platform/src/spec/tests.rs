//! Tests of specs and their differences; nothing here is part of the product.
//!
//! `rfc7396.rs` has the examples of the standard, `differences.rs` the laws of apply, difference, undo and composition,
//! `stored_form.rs` JSON, paths, bounds and digests, `declarative_apply.rs` the rules of `three_way`.

mod declarative_apply;
mod differences;
mod rfc7396;
mod stored_form;
