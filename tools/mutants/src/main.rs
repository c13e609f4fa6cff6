//! Breaks every MUST line of the checklist once, and checks whether the tests of that line fail. Also puts back
//! faults of time that the simulation must find.
//!
//! `mutations.txt` contains, for each line, one expression of the broker and its replacement.
//! All mutations are built into one copy of the workspace, each behind a switch that a run enables
//! by its name, so one build serves them all. Then the tests run once without a mutant, and once
//! with each.
//!
//! Only tests that hold some line take part. A mutant is *killed* if a test that holds its line
//! (`/// Holds: B-083.`) fails, and *exact* if no other test does. Two kinds of tests hold more lines than
//! their comments name. Tests that compare the rules with a table (`… as_the_table_says`) hold every line
//! that their table cites. Tests that run random lives (`whatever_happens_…`) hold the invariants of all
//! lines at once: they kill only mutants of lines that they cite, but never count against exactness.
//! A mutation may state with `* why` that all tests depend on what it breaks; then failing tests of other
//! lines are expected.
//!
//! The simulation takes part in its own way (`simulation_mutants.rs`): it must find each fault of its own list.
//!
//! Not here: generating mutations, and lines that are not MUST. Read `mutation.rs` for the
//! file, `mutated_copy.rs` for the copy, `test_runs.rs` for the runs, `verdict.rs` for the results.

mod checklist;
mod mutated_copy;
mod mutation;
mod simulation_mutants;
mod test_binaries;
mod test_coverage;
mod test_runs;
mod verdict;

use clap::Parser;
use mutation::Mutation;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// File of mutations.
const MUTATIONS: &str = "tools/mutants/mutations.txt";

/// Error of the tool: a sentence.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Breaks every MUST line once, and puts back faults of time that the simulation must find; reports those that are not
/// noticed.
#[derive(Parser)]
struct Options {
    /// Only mutations whose name begins like this; may be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Lists the mutations and the lines without one; runs nothing.
    #[arg(long)]
    list: bool,
    /// Builds the tests with the mutations in them; runs nothing. A later call finds them built.
    #[arg(long)]
    build: bool,
    /// Runs only the tests that hold the line, and stops at the first red one.
    #[arg(long)]
    fast: bool,
    /// Goes on although tests are red without a mutant, and leaves those out.
    #[arg(long)]
    despite_red: bool,
    /// Shows every red test of every mutant.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("mutants: {fault}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether every MUST line has a mutation, none survives, and the simulation finds every fault.
fn run(options: &Options) -> Result<bool, BoxError> {
    let begun = Instant::now();
    let root = workspace()?;
    let mutations = chosen(mutation::read(&root.join(MUTATIONS))?, options);
    let without = if options.only.is_empty() {
        checklist::without_mutation(&root, &mutations)?
    } else {
        Vec::new()
    };
    let faults = chosen(
        mutation::read(&root.join(simulation_mutants::FAULTS))?,
        options,
    );
    let planted: Vec<Mutation> = mutations.iter().chain(&faults).cloned().collect();
    let sites = mutated_copy::sites(&root, &planted)?;
    if options.list {
        verdict::list(&planted, &without);
        return Ok(without.is_empty());
    }
    let place = root.join("target/mutants");
    let tree = mutated_copy::plant(&root, &place.join("tree"), &sites)?;
    let build = place.join("build");
    let binaries = test_binaries::build(&tree, &build)?;
    eprintln!(
        "built {} test binaries in {} s",
        binaries.len(),
        begun.elapsed().as_secs()
    );
    if options.build {
        return Ok(true);
    }
    let mut holds = test_coverage::read(&tree, &binaries)?;
    let green = Instant::now();
    let red = test_runs::without_a_mutant(&binaries, &holds)?;
    red.iter()
        .for_each(|test| eprintln!("red without a mutant: {test}"));
    if !red.is_empty() && !options.despite_red {
        return Err("tests are red without any mutant".into());
    }
    holds.forget(&red);
    eprintln!("ran without a mutant in {} s", green.elapsed().as_secs());
    let verdicts = test_runs::all(&mutations, &binaries, &holds, options.fast)?;
    let unseen = simulation_mutants::surviving(&faults, &build)?;
    unseen
        .iter()
        .for_each(|fault| eprintln!("the simulation does not find {fault}"));
    let good = verdict::report(&verdicts, &without, options.verbose) && unseen.is_empty();
    eprintln!(
        "{} mutants in {} s",
        verdicts.len(),
        begun.elapsed().as_secs()
    );
    Ok(good)
}

fn chosen(mutations: Vec<Mutation>, options: &Options) -> Vec<Mutation> {
    let wanted = |name: &str| {
        options
            .only
            .iter()
            .any(|only| name.starts_with(only.as_str()))
    };
    mutations
        .into_iter()
        .filter(|it| options.only.is_empty() || wanted(&it.name))
        .collect()
}

/// The workspace, in this directory or above.
fn workspace() -> Result<PathBuf, BoxError> {
    let here = std::env::current_dir()?;
    let found = here
        .ancestors()
        .find(|folder| folder.join(MUTATIONS).exists());
    found
        .map(Path::to_owned)
        .ok_or_else(|| format!("no {MUTATIONS} here or above: run this in the workspace").into())
}
