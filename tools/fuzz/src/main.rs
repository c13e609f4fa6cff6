//! `cargo run -p sutler-fuzz --profile bench -- --seconds 30`: every target for this time, some in parallel.
//!
//! Each target runs in a separate process: a stack overflow ends only that one, and a second run
//! with the same seed saves every input before it is tried, so that the failing one is kept.

use clap::Parser;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_fuzz::{Limits, Report, TARGETS, Target, run};

/// The stack size of a worker of the real server.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// Longest time for one input.
const PER_INPUT: Duration = Duration::from_millis(100);

#[derive(Clone, Parser)]
#[command(about = "Fuzzes every parser of untrusted input")]
struct Arguments {
    /// Seconds per target
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Number of concurrent targets
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these targets, by name
    #[arg(long)]
    target: Vec<String>,
    /// Seed; the same seed makes the same inputs
    #[arg(long)]
    seed: Option<u64>,
    /// Runs one target in this process.
    #[arg(long, hide = true)]
    inside: bool,
    /// Writes every input here before it is tried.
    #[arg(long, hide = true)]
    trace: Option<PathBuf>,
}

fn main() -> io::Result<ExitCode> {
    let mut arguments = Arguments::parse();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seed = *arguments.seed.get_or_insert(now.as_secs());
    let wanted = |target: &&Target| {
        arguments.target.is_empty() || arguments.target.iter().any(|name| name == target.name)
    };
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if arguments.inside {
        return targets
            .first()
            .map_or(Ok(ExitCode::FAILURE), |target| inside(target, arguments));
    }
    print_text(&format!(
        "{} targets, {} s each, seed {seed}",
        targets.len(),
        arguments.seconds
    ))?;
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !outside(target, &arguments).unwrap_or(false) {
                        failed.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Ok(if failed.into_inner() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Runs a target in a separate process; returns whether it succeeded.
fn outside(target: &Target, arguments: &Arguments) -> io::Result<bool> {
    let start = |seconds: u64, trace: Option<&PathBuf>| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--inside", "--target", target.name]);
        command.args(["--seconds", &seconds.to_string()]);
        command.args(["--seed", &arguments.seed.unwrap_or_default().to_string()]);
        command.args(
            trace
                .into_iter()
                .flat_map(|path| [PathBuf::from("--trace"), path.clone()]),
        );
        command.status()
    };
    let ended = start(arguments.seconds, None)?;
    if ended.code().is_some() {
        return Ok(ended.success());
    }
    print_text(&format!(
        "{}: the process ended with {ended}; looking for the input",
        target.name
    ))?;
    let trace = std::env::temp_dir().join(format!(
        "sutler-fuzz-{}-{}",
        target.name,
        std::process::id()
    ));
    let again = start(arguments.seconds * 4, Some(&trace))?;
    if again.code().is_none() {
        let input = std::fs::read(&trace)?;
        let kept = sutler_fuzz::keep(target.name, "crash", &input)?;
        print_text(&format!(
            "{}: {} bytes end the process: {}",
            target.name,
            input.len(),
            kept.display()
        ))?;
    }
    let _ = std::fs::remove_file(&trace);
    Ok(false)
}

/// Runs a target here and prints its report.
fn inside(target: &'static Target, arguments: Arguments) -> io::Result<ExitCode> {
    let limits = Limits {
        time: Duration::from_secs(arguments.seconds),
        inputs: u64::MAX,
        per_input: PER_INPUT,
        keep: true,
        trace: arguments.trace,
    };
    let seed = arguments.seed.unwrap_or_default();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let report = thread.spawn(move || run(target, seed, &limits))?.join();
    let Ok(report) = report else {
        return Ok(ExitCode::FAILURE);
    };
    let report = report?;
    print(target, &report)?;
    Ok(if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(target: &Target, report: &Report) -> io::Result<()> {
    let Report {
        executions,
        corpus,
        answers,
        slowest,
        failures,
    } = report;
    let slowest = slowest.as_secs_f64() * 1000.0;
    let verdict = if failures.is_empty() {
        "ok".to_owned()
    } else {
        format!("{} FAILED", failures.len())
    };
    let mut text = format!(
        "{:22}{executions:>10} runs, corpus {corpus:>3}, answers {answers:>6}, slowest {slowest:>6.2} ms: {verdict}",
        target.name
    );
    for failure in failures {
        let shown: String = failure
            .input
            .escape_ascii()
            .to_string()
            .chars()
            .take(300)
            .collect();
        text.push_str(&format!("\n    {}\n    input: {shown}", failure.reason));
        if let Some(kept) = &failure.kept {
            text.push_str(&format!("\n    kept as {}", kept.display()));
        }
    }
    print_text(&text)
}

fn print_text(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}
