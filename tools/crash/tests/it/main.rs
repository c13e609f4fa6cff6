//! Short runs of the harness, and faults that a kill cannot cause.

mod answer_after_sync;
mod chaos;
mod failing_sync;
mod fixture;
mod full_disk;
mod platform_chaos;
mod platform_kills;
mod random_and_point_kills;
mod requirements;
