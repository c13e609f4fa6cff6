//! The short runs of the harness, and the faults that a kill cannot show.

mod chaos;
mod disks;
mod kills;
mod permission;
mod scene;
mod syncs;
mod traces;
