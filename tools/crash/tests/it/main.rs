//! The short run of the harness, and the faults that a kill cannot show.

mod disks;
mod kills;
mod permission;
mod scene;
mod syncs;
mod traces;
