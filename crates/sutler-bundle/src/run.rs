//! Who carries orders out: `process.rs` on this host.
//!
//! All keep to the trait in `runner.rs`. `tail.rs` follows what a run says.

pub(crate) mod process;
mod tail;
