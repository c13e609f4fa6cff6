//! Bundles of registries behind a real broker over HTTP: what is offered, withdrawn, kept and deleted.
//!
//! The registry is played (`registries/fixture.rs`), so that it can fail in every way at the right moment.

mod bounds;
mod configured;
mod faults;
mod fixture;
mod interleaved;
mod pushed_between;
mod pushes;
mod races;
mod scale;
mod scheduler;
mod store_calls;
mod versions;
