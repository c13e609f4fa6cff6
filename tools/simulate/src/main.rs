//! Replays one seed, or searches many: `cargo run -p sutler-simulate -- --seed 7`, `-- --seeds 10000`; with `--platform`
//! those of the platform.

use clap::Parser;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use sutler_simulate::{SimulationResult, run_platform_seed, run_seed};

/// Simulates brokers, or the platform, under injected faults, and checks their invariants.
#[derive(Parser)]
#[command(about)]
struct Options {
    /// Simulates the platform in place of brokers
    #[arg(long)]
    platform: bool,
    /// Replays this seed and prints its history
    #[arg(long)]
    seed: Option<u64>,
    /// Number of seeds to search
    #[arg(long, default_value_t = 1000, conflicts_with = "seed")]
    seeds: u64,
    /// First seed of a search
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Threads of a search; by default one for each processor
    #[arg(long)]
    jobs: Option<usize>,
    /// Failing seeds after which a search stops
    #[arg(long, default_value_t = 10)]
    failures: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let good = match options.seed {
        Some(seed) => replay(&options, seed),
        None => search(&options),
    };
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Options {
    fn run(&self, seed: u64, recording: bool) -> SimulationResult {
        match self.platform {
            true => run_platform_seed(seed, recording),
            false => run_seed(seed, recording),
        }
    }
}

fn replay(options: &Options, seed: u64) -> bool {
    let result = options.run(seed, true);
    let mut out = std::io::stdout().lock();
    for line in &result.history {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(
        out,
        "seed {seed}: {} events, {} calls, {} s simulated, digest {:016x}",
        result.events,
        result.hooks,
        result.simulated.as_secs(),
        result.digest
    );
    report(&mut out, &result);
    result.violations.is_empty()
}

fn report(out: &mut impl std::io::Write, result: &SimulationResult) {
    if result.violations.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "seed {} breaks invariants ({}):",
        result.seed, result.scenario
    );
    for violation in &result.violations {
        let _ = writeln!(out, "  {violation}");
    }
}

fn search(options: &Options) -> bool {
    let began = Instant::now();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(processors);
    let next = AtomicU64::new(options.from);
    let end = options.from.saturating_add(options.seeds);
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let (done, hooks) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_enough =
        || failed.lock().unwrap_or_else(PoisonError::into_inner).len() >= options.failures;
    let work = || {
        while !is_enough() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let Ok(result) = catch_unwind(|| options.run(seed, false)) else {
                let _ = writeln!(std::io::stdout(), "seed {seed} panicked");
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.push(seed);
                continue;
            };
            hooks.fetch_add(result.hooks, Ordering::Relaxed);
            let ran = done.fetch_add(1, Ordering::Relaxed) + 1;
            if ran.is_multiple_of(1000) {
                let _ = writeln!(
                    std::io::stderr(),
                    "{ran} seeds in {} s",
                    began.elapsed().as_secs()
                );
            }
            if !result.violations.is_empty() {
                report(&mut std::io::stdout().lock(), &result);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.push(seed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut out = std::io::stdout().lock();
    let _ = writeln!(
        out,
        "{} seeds, {} calls, {} s: {} failed",
        done.into_inner(),
        hooks.into_inner(),
        began.elapsed().as_secs(),
        failed.len()
    );
    if let Some(first) = failed.first() {
        let _ = writeln!(
            out,
            "replay one with: cargo run -p sutler-simulate -- {}--seed {first}",
            if options.platform { "--platform " } else { "" }
        );
    }
    failed.is_empty()
}
