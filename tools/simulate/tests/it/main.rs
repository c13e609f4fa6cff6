//! Tests of the simulation: the seeds of CI, seeds that failed before, and exact replay.

mod platform_seeds;
mod seeds;
