//! Writes `docs/spec-coverage.md`: the tests that hold each line of the specification.
//!
//! Tests declare this in a doc comment that begins with `Holds:`. The lines are in
//! `checklist.txt` (brokers) and `platform-checklist.txt`. The library finds the tests (`scan.rs`) and writes the table (`page.rs`);
//! the quality of a test is checked by `tools/mutants`, not here.

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sutler_spec_map::{Map, checklist, held_by_platform_tests, held_by_tests};

const CHECKLIST: &str = "tools/spec-map/checklist.txt";
const PLATFORM_CHECKLIST: &str = "tools/spec-map/platform-checklist.txt";
const DECISIONS: &str = "docs/DECISIONS.md";
const PAGE: &str = "docs/spec-coverage.md";

/// Maps the lines of the specification to the tests that hold them.
#[derive(Parser)]
struct Args {
    /// Write nothing; fail if the page is not up to date
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(Args::parse().check) {
        Ok(said) => {
            eprintln!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<String, String> {
    let root = workspace()?;
    let decisions = std::fs::read_to_string(root.join(DECISIONS)).unwrap_or_default();
    let lines = checklist(&read(&root, CHECKLIST)?, &decisions)?;
    let found = held_by_tests(&root)?;
    let map = Map::new(&lines, &found)?;
    let platform_lines = checklist(&read(&root, PLATFORM_CHECKLIST)?, "")?;
    let platform_found = held_by_platform_tests(&root)?;
    let platform = Map::new(&platform_lines, &platform_found)?;
    let text = format!("{}\n## Platforms\n\n{}", map.page(), platform.section());
    if !check {
        std::fs::write(root.join(PAGE), &text).map_err(|error| format!("{PAGE}: {error}"))?;
    } else if std::fs::read_to_string(root.join(PAGE)).is_ok_and(|there| there != text) {
        return Err(format!(
            "{PAGE} is not up to date: run cargo run -p sutler-spec-map"
        ));
    } else if !root.join(PAGE).exists() {
        return Err(format!(
            "{PAGE} is missing: run cargo run -p sutler-spec-map"
        ));
    }
    match [map.missing(), platform.missing()].concat().as_slice() {
        [] => Ok(format!(
            "brokers: {}; platforms: {}",
            map.summary(),
            platform.summary()
        )),
        missing => Err(format!(
            "no test holds these lines that a broker or a platform must keep: {}",
            missing.join(", ")
        )),
    }
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The directory that contains the checklist, here or above.
fn workspace() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let found = here
        .ancestors()
        .find(|folder| folder.join(CHECKLIST).exists());
    found
        .map(Path::to_owned)
        .ok_or_else(|| format!("no {CHECKLIST} here or above: run this in the workspace"))
}
