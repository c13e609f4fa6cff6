//! Tests of the simulation: the seeds of CI, seeds that showed faults, and exact replay.

mod seeds;
