//! Faults of time, put back into the copy one at a time: the simulation must find each, by its seed or within the
//! seeds that the tests run.
//!
//! The list is `tools/simulate/mutations.txt`; the copy and its switches are those of the other mutations. The seed that
//! showed a fault last is kept with it and tried first. Faults of the platform are searched in the platform's world. What a
//! seed does changes with the code: if it shows nothing any more, the seeds of the tests are searched, and the one that is
//! found is printed.

use crate::BoxError;
use crate::mutation::Mutation;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// File of the faults.
pub(crate) const FAULTS: &str = "tools/simulate/mutations.txt";

/// Folder of the platform.
const PLATFORM: &str = "crates/sutler-platform/";

/// Number of seeds that the tests run, see `tools/simulate/tests/it/seeds.rs`.
const SEEDS: &str = "1000";

/// Runs the simulation with every fault. Returns those that it does not find.
pub(crate) fn surviving(faults: &[Mutation], build: &Path) -> Result<Vec<String>, BoxError> {
    let program = build.join("debug/sutler-simulate");
    let mut survivors = Vec::new();
    for fault in faults.iter().filter(|fault| !fault.also) {
        let began = Instant::now();
        let kept = fault.seed.map(|seed| seed.to_string());
        let world = world_of(fault);
        let mut found = match &kept {
            Some(seed) => failing_seed(&program, fault, world.iter().chain(&["--seed", seed]))?,
            None => None,
        };
        if found.is_none() {
            let search = world.iter().chain(&["--seeds", SEEDS, "--failures", "1"]);
            found = failing_seed(&program, fault, search)?;
        }
        let (name, ms) = (&fault.name, began.elapsed().as_millis());
        match found {
            None => {
                eprintln!("simulation {name:<26} NOT FOUND ({ms} ms)");
                survivors.push(format!("{name}: {}", fault.breaks));
            }
            Some(seed) if fault.seed == Some(seed) => {
                eprintln!("simulation {name:<26} found by its seed {seed} ({ms} ms)");
            }
            Some(seed) => {
                eprintln!(
                    "simulation {name:<26} found by seed {seed}: keep it in {FAULTS} ({ms} ms)"
                );
            }
        }
    }
    Ok(survivors)
}

/// The option of the world in which a fault shows: that of brokers, or that of the platform.
fn world_of(fault: &Mutation) -> &'static [&'static str] {
    match fault.file.starts_with(PLATFORM) {
        true => &["--platform"],
        false => &[],
    }
}

/// The first seed that breaks an invariant with a fault. An end for another reason, such as a panic, does not count.
fn failing_seed<'a>(
    program: &Path,
    fault: &Mutation,
    options: impl Iterator<Item = &'a &'a str>,
) -> Result<Option<u64>, BoxError> {
    let output = Command::new(program)
        .args(options)
        .env("SUTLER_MUTANT", &fault.name)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    Ok(broken_seed(&String::from_utf8_lossy(&output.stdout)))
}

/// The seed of the first report of broken invariants.
fn broken_seed(text: &str) -> Option<u64> {
    let report = |line: &str| {
        let (seed, rest) = line.strip_prefix("seed ")?.split_once(' ')?;
        let is_report = rest.starts_with("breaks invariants");
        seed.parse().ok().filter(|_| is_report)
    };
    text.lines().find_map(report)
}

#[cfg(test)]
mod tests {
    use super::broken_seed;

    #[test]
    fn only_a_report_of_broken_invariants_counts() {
        let found = "1000 seeds\nseed 17 breaks invariants (2 replicas):\n  at 1: two runs\n";
        assert_eq!(broken_seed(found), Some(17));
        assert_eq!(broken_seed("seed 17: 145 events, 10 hooks\n"), None);
        assert_eq!(broken_seed("thread 'main' panicked\n"), None);
    }
}
