//! Bundles of registries behind a real broker over HTTP: what is offered, withdrawn, kept and deleted.
//!
//! The registry is played (`registries/town.rs`), so that it can fail in every way at the right moment.

mod bounds;
mod configured;
mod counted;
mod faults;
mod interleaved;
mod pushed_between;
mod pushes;
mod races;
mod scale;
mod steps;
mod town;
mod versions;
