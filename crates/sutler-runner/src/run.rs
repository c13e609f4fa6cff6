//! Implementations of [`Runner`](crate::Runner): `run/process.rs` for this host, `run/container.rs` for a container
//! engine.
//!
//! `run/tail.rs` follows the output of a run; `run/pending_starts.rs` tracks starts that are not finished.

#[cfg(feature = "containers")]
pub(crate) mod container;
pub(crate) mod process;

mod pending_starts;
mod tail;

/// Line written where the output of a run is cut.
fn cut_line(most: u64) -> String {
    format!("\n[cut here: a run may say {most} bytes]\n")
}
