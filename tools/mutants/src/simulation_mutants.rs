//! Faults of time, put back into the copy one at a time: the simulation must find each within the seeds that the
//! tests run.
//!
//! The list is `tools/simulate/mutations.txt`; the copy and its switches are those of the other mutations.

use crate::BoxError;
use crate::mutation::Mutation;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// File of the faults.
pub(crate) const FAULTS: &str = "tools/simulate/mutations.txt";

/// Number of seeds that the tests run, see `tools/simulate/tests/it/seeds.rs`.
const SEEDS: &str = "1000";

/// Runs the simulation with every fault. Returns those that it does not find.
pub(crate) fn surviving(faults: &[Mutation], build: &Path) -> Result<Vec<String>, BoxError> {
    let program = build.join("debug/sutler-simulate");
    let mut survivors = Vec::new();
    for fault in faults.iter().filter(|fault| !fault.also) {
        let began = Instant::now();
        let status = Command::new(&program)
            .args(["--seeds", SEEDS, "--failures", "1"])
            .env("SUTLER_MUTANT", &fault.name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let found = !status.success();
        let word = if found { "found" } else { "NOT FOUND" };
        let (name, ms) = (&fault.name, began.elapsed().as_millis());
        eprintln!("simulation {name:<24} {word} ({ms} ms)");
        if !found {
            survivors.push(format!("{name}: {}", fault.breaks));
        }
    }
    Ok(survivors)
}
