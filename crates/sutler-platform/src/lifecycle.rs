//! States and rules of service instances, bindings, orphans and breakers: which event leads where.
//!
//! Each has a `decide` of the same shape: state and event in, next state and effects out. The rules are held to the
//! tables in `tests/transitions/`, which were written by hand. Nothing here writes or sends anything.

pub mod binding;
pub mod breaker;
pub mod instance;
pub mod intent;
#[cfg(test)]
mod meaning_table;
pub mod orphan;
#[cfg(test)]
mod transition_table;
