//! One target, fuzzed for a while.
//!
//! An input with a new response joins the pool and is mutated further. An input that
//! breaks a property is shrunk, as long as it breaks the same one, and saved in the corpus.

use crate::corpus;
use crate::mutate::mutated;
use crate::panics;
use crate::properties::kind_of;
use crate::targets::{Check, Target, Verdict};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sutler_servers::SeededRng;

/// Maximum inputs in the pool; beyond that, new ones replace old ones.
const POOL_MAX: usize = 4_096;
/// Longest input in the pool, in bytes: longer ones are tried, but not mutated further.
const POOLED_BYTES_MAX: usize = 4_096;
/// Maximum failures examined in one run.
const FAILURES_MAX: usize = 5;
/// Maximum attempts to shrink one failure.
const SHRINK_TRIES_MAX: usize = 3_000;
/// Number of retries of a slow input: the machine may have been busy.
const SLOW_TRIES: usize = 4;

/// Limits of a run and of one input.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Duration of the run.
    pub time: Duration,
    /// Maximum number of inputs.
    pub inputs: u64,
    /// Longest time for one input.
    pub per_input: Duration,
    /// Whether failures are saved in the corpus.
    pub keep: bool,
    /// Every input is written here before it is tried: after a crash it contains the cause.
    pub trace: Option<PathBuf>,
}

/// Report of a run.
#[derive(Debug)]
pub struct Report {
    /// Inputs tried.
    pub executions: u64,
    /// Number of inputs in the corpus.
    pub corpus: usize,
    /// Number of different responses.
    pub answers: usize,
    /// The longest time an input took.
    pub slowest: Duration,
    /// Broken properties, one of each kind.
    pub failures: Vec<Failure>,
}

/// A broken property.
#[derive(Debug)]
pub struct Failure {
    /// Broken property.
    pub reason: String,
    /// The shrunk input.
    pub input: Vec<u8>,
    /// Path of the saved input.
    pub kept: Option<PathBuf>,
}

struct Session<'a> {
    target: &'a Target,
    check: Box<dyn Check>,
    limits: &'a Limits,
    pool: Vec<Vec<u8>>,
    answers: HashSet<String>,
    failed: HashSet<String>,
    report: Report,
}

/// Fuzzes a target within limits. The same seed makes the same inputs.
///
/// # Errors
/// The corpus cannot be read or written.
pub fn run(target: &Target, seed: u64, limits: &Limits) -> std::io::Result<Report> {
    panics::noted(|| fuzz(target, seed, limits))
}

fn fuzz(target: &Target, seed: u64, limits: &Limits) -> std::io::Result<Report> {
    let seeds: Vec<Vec<u8>> = corpus::entries(target.name)?
        .into_iter()
        .map(|it| it.bytes)
        .collect();
    let mut session = Session {
        target,
        check: (target.check)(),
        limits,
        pool: Vec::new(),
        answers: HashSet::new(),
        failed: HashSet::new(),
        report: Report {
            executions: 0,
            corpus: seeds.len(),
            answers: 0,
            slowest: Duration::ZERO,
            failures: Vec::new(),
        },
    };
    let started = Instant::now();
    let mut rng = SeededRng::new(seed);
    for input in seeds {
        session.attempt(&input)?;
        session.pool.push(input);
    }
    session.pool.push(Vec::new());
    while session.report.executions < limits.inputs
        && session.report.failures.len() < FAILURES_MAX
        && started.elapsed() < limits.time
    {
        let input = session.next(&mut rng);
        if session.attempt(&input)? {
            session.add(input, &mut rng);
        }
    }
    session.report.answers = session.answers.len();
    Ok(session.report)
}

impl Session<'_> {
    /// A new input from the pool; from its newest part every second time.
    fn next(&self, rng: &mut SeededRng) -> Vec<u8> {
        let newest = self.pool.len().saturating_sub(32);
        let from = if rng.one_in(2) { newest } else { 0 };
        let input = &self.pool[from + rng.index(self.pool.len() - from)];
        let other = rng.pick(&self.pool);
        mutated(input, other, self.target.syntax, self.target.words, rng)
    }

    fn add(&mut self, input: Vec<u8>, rng: &mut SeededRng) {
        if self.pool.len() < POOL_MAX {
            self.pool.push(input);
        } else {
            // Not a seed: those are few, and at the front.
            let kept = self.report.corpus;
            let at = kept + rng.index(self.pool.len() - kept);
            self.pool[at] = input;
        }
    }

    /// Tries an input; returns whether its result is new.
    fn attempt(&mut self, input: &[u8]) -> std::io::Result<bool> {
        if let Some(trace) = &self.limits.trace {
            std::fs::write(trace, input)?;
        }
        self.report.executions += 1;
        match self.verdict(input) {
            Ok(answer) => {
                let fits = input.len() <= POOLED_BYTES_MAX && self.answers.len() < 100_000;
                Ok(fits && self.answers.insert(answer))
            }
            Err(reason) => {
                if self.failed.insert(property_of(&reason)) {
                    self.fail(input, reason)?;
                }
                Ok(false)
            }
        }
    }

    fn verdict(&mut self, input: &[u8]) -> Verdict {
        let started = worked();
        let verdict = judged(self.check.as_mut(), input);
        let mut took = worked().saturating_sub(started);
        for _ in 0..SLOW_TRIES {
            if took <= self.limits.per_input {
                break;
            }
            let started = worked();
            let _ = judged(self.check.as_mut(), input);
            took = took.min(worked().saturating_sub(started));
        }
        self.report.slowest = self.report.slowest.max(took);
        if took > self.limits.per_input && verdict.is_ok() {
            return Err(format!("is slow: {} ms", took.as_millis()));
        }
        verdict
    }

    fn fail(&mut self, input: &[u8], reason: String) -> std::io::Result<()> {
        let input = self.shrunk(input, &property_of(&reason));
        let keep = || corpus::keep(self.target.name, "regression", &input);
        let kept = if self.limits.keep {
            Some(keep()?)
        } else {
            None
        };
        self.report.failures.push(Failure {
            reason,
            input,
            kept,
        });
        Ok(())
    }

    /// Removes parts of a failing input while it fails in the same way.
    fn shrunk(&mut self, input: &[u8], kind: &str) -> Vec<u8> {
        let mut smallest = input.to_vec();
        let mut tries = 0;
        let mut piece = smallest.len() / 2;
        let until = Instant::now() + Duration::from_secs(10);
        while piece > 0 {
            let mut at = 0;
            while at < smallest.len() && tries < SHRINK_TRIES_MAX && Instant::now() < until {
                tries += 1;
                let mut smaller = smallest.clone();
                smaller.drain(at..(at + piece).min(smallest.len()));
                if self
                    .verdict(&smaller)
                    .is_err_and(|reason| property_of(&reason) == kind)
                {
                    smallest = smaller;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        smallest
    }
}

/// The broken property, without details.
fn property_of(reason: &str) -> String {
    kind_of(reason.split(": ").next().unwrap_or_default())
}

fn judged(check: &mut dyn Check, input: &[u8]) -> Verdict {
    let verdict = panics::caught(|| check.check(input));
    match (verdict, panics::taken()) {
        (_, Some(panic)) => Err(panic),
        (Some(verdict), None) => verdict,
        (None, None) => Err("panicked".to_owned()),
    }
}

/// CPU time of this thread: the cost of an input, independent of other load.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos)
}
