//! Who carries orders out: `run/process.rs` on this host, `run/container.rs` by a container engine.
//!
//! All keep to the trait in `runner.rs`. `run/tail.rs` follows what a run says; `run/pending_starts.rs` knows what is
//! about to run.

#[cfg(feature = "containers")]
pub(crate) mod container;
pub(crate) mod process;

mod pending_starts;
mod tail;

/// What stands where the output of a run is cut.
fn cut_line(most: u64) -> String {
    format!("\n[cut here: a run may say {most} bytes]\n")
}
