//! Runs the tests: once without a mutant, then once with each, two at a time.

use crate::BoxError;
use crate::mutation::Mutation;
use crate::test_binaries::Binary;
use crate::test_coverage::{TestCoverage, is_random};
use crate::verdict::{FailedTest, Verdict};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Mutants run concurrently.
const AT_ONCE: usize = 2;
/// Concurrent tests of one binary: most of them wait.
const TEST_THREADS: &str = "4";
/// Time limit of a run; unfinished tests count as failed.
const RUN_MAX: Duration = Duration::from_secs(45);
/// Time limit without a mutant, where nothing should hang.
const GREEN_RUN_MAX: Duration = Duration::from_secs(300);

/// Databases of tests are created here if it exists: the effect of a mutant does not depend on the disk.
const IN_MEMORY: &str = "/dev/shm";

/// When a run may end early.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunLimit {
    AllRan,
    FirstRed,
}

/// Tests that fail without any mutant: their results with one mean nothing.
pub(crate) fn without_a_mutant(
    binaries: &[Binary],
    holds: &TestCoverage,
) -> Result<Vec<String>, BoxError> {
    let mut red = Vec::new();
    for (nth, binary) in binaries.iter().enumerate() {
        let tests = holds.bound(nth);
        red.extend(run(binary, None, &tests, RunLimit::AllRan, GREEN_RUN_MAX)?);
    }
    Ok(red)
}

/// Runs every mutation.
pub(crate) fn all(
    mutations: &[Mutation],
    binaries: &[Binary],
    holds: &TestCoverage,
    fast: bool,
) -> Result<Vec<Verdict>, BoxError> {
    let queue = Mutex::new(mutations.iter().enumerate());
    let verdicts = Mutex::new(Vec::new());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let work = || -> Result<(), BoxError> {
        while let Some((nth, mutation)) = next() {
            let begun = Instant::now();
            let verdict = one(mutation, binaries, holds, fast)?;
            let words = verdict.words();
            let (count, name) = (nth + 1, &mutation.name);
            let (of, ms) = (mutations.len(), begun.elapsed().as_millis());
            eprintln!("{count:>3}/{of} {name:<14} {words} ({ms} ms)");
            verdicts
                .lock()
                .map_err(|_| "another worker failed")?
                .push((nth, verdict));
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<(), BoxError> {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok(())
    })?;
    let mut verdicts = verdicts.into_inner().map_err(|_| "a worker panicked")?;
    verdicts.sort_by_key(|(nth, _)| *nth);
    Ok(verdicts.into_iter().map(|(_, verdict)| verdict).collect())
}

fn one(
    mutation: &Mutation,
    binaries: &[Binary],
    holds: &TestCoverage,
    fast: bool,
) -> Result<Verdict, BoxError> {
    let mut red = Vec::new();
    let mut holders = 0;
    for (nth, binary) in binaries.iter().enumerate() {
        let holding = holds.holders(nth, mutation.line());
        holders += holding.len();
        if !binary.sees(&mutation.file) || (fast && (holding.is_empty() || !red.is_empty())) {
            continue;
        }
        let (tests, until) = if fast {
            (
                holding.iter().map(|test| (*test).to_owned()).collect(),
                RunLimit::FirstRed,
            )
        } else {
            (holds.bound(nth), RunLimit::AllRan)
        };
        let name = Some(mutation.name.as_str());
        let failed = run(binary, name, &tests, until, RUN_MAX)?;
        red.extend(failed.into_iter().map(|test| FailedTest {
            holds: holds.holds(nth, &test, mutation.line()),
            random: is_random(&test),
            test,
        }));
    }
    Ok(Verdict {
        mutation: mutation.clone(),
        holders,
        all_ran: !fast,
        red,
    })
}

/// Runs tests of a binary and returns the failed ones.
fn run(
    binary: &Binary,
    mutant: Option<&str>,
    tests: &[String],
    until: RunLimit,
    limit: Duration,
) -> Result<Vec<String>, BoxError> {
    let mut command = binary.command();
    command
        .args(["--test-threads", TEST_THREADS])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if tests.len() < binary.tests.len() {
        command.arg("--exact").args(tests);
    }
    let memory = Path::new(IN_MEMORY);
    if memory.is_dir() {
        command.env("TMPDIR", memory);
    }
    if let Some(mutant) = mutant {
        command.env("SUTLER_MUTANT", mutant);
    }
    let mut child = command.spawn()?;
    let lines = lines_of(&mut child);
    let mut open: Vec<&String> = tests.iter().collect();
    let mut red = Vec::new();
    let deadline = Instant::now() + limit;
    let hangs = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let Some((test, green)) = result_of(&line) else {
                    continue;
                };
                open.retain(|it| *it != test);
                if !green {
                    red.push(test.to_owned());
                }
                if until == RunLimit::FirstRed && !red.is_empty() {
                    break false;
                }
            }
            Err(RecvTimeoutError::Timeout) => break true,
            // It ended; after an abort, unfinished tests have failed.
            Err(RecvTimeoutError::Disconnected) => break !open.is_empty(),
        }
    };
    // Only this child, which we started: it may have ended already.
    let _ = child.kill();
    child.wait()?;
    if hangs {
        red.extend(open.into_iter().cloned());
    }
    Ok(red)
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let reader: BufReader<ChildStdout> = BufReader::new(stdout);
            for line in reader.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

/// A line of the test harness: the test, and whether it passed.
fn result_of(line: &str) -> Option<(&str, bool)> {
    let (test, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match result {
        "ok" => Some((test, true)),
        "ignored" => Some((test, true)),
        _ => result.starts_with("FAILED").then_some((test, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::result_of;

    #[test]
    fn the_harness_is_understood() {
        assert_eq!(result_of("test a::b ... ok"), Some(("a::b", true)));
        assert_eq!(
            result_of("test a::b - should panic ... FAILED"),
            Some(("a::b", false))
        );
        assert_eq!(result_of("test result: FAILED. 1 passed; 1 failed"), None);
        assert_eq!(result_of("running 3 tests"), None);
    }
}
