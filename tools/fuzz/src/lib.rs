//! Fuzzing on the stable toolchain: every parser of external bytes, with its properties.
//!
//! Fuzzers guided by coverage need a nightly compiler or unsafe code to read the counters.
//! Two things replace that here. Inputs are made from valid ones by mutations that know the
//! format (`mutate.rs`): keys doubled, subtrees moved, numbers and nesting made extreme, lines
//! shuffled, bytes broken. And the *response* of a parser is the guide (`session.rs`): an input with
//! a new response, be it a new refusal or a new shape of success, is mutated further.
//! The properties of each parser are in `targets/`; the seeds and all regressions, in `corpus/`.
//! Run it with `cargo run -p sutler-fuzz --profile bench -- --seconds 30`; read `targets.rs` next.

mod corpus;
mod mutate;
mod panics;
mod properties;
mod session;
mod targets;

pub use corpus::{Entry, entries, keep};
pub use session::{Failure, Limits, Report, run};
pub use targets::{Check, TARGETS, Target, Verdict};
