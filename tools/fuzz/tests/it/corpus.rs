//! The whole corpus, and some thousand mutations of it, with a fixed seed.

use std::collections::BTreeSet;
use std::time::Duration;
use sutler_fuzz::{Limits, TARGETS, entries, run};

/// Mutated inputs per target, in addition to the corpus.
const INPUTS: u64 = 1_500;
/// Maximum size of the corpus, in bytes.
const CORPUS_BYTES_MAX: usize = 200_000;

/// Unoptimised, on a busy machine: the fuzzer itself checks the real limit.
const PER_INPUT: Duration = Duration::from_secs(5);

#[test]
fn the_corpus_and_mutations_of_it_satisfy_the_properties() {
    let limits = Limits {
        time: Duration::from_secs(20),
        inputs: INPUTS,
        per_input: PER_INPUT,
        keep: false,
        trace: None,
    };
    for target in TARGETS {
        let report = run(target, 1, &limits).expect("the corpus can be read");
        assert!(
            report.failures.is_empty(),
            "{}: {:#?}",
            target.name,
            report.failures
        );
        // Seeds that all get the same response would be useless.
        assert!(
            report.answers > 2,
            "{}: {} answers",
            target.name,
            report.answers
        );
    }
}

#[test]
fn the_corpus_has_seeds_for_every_target_and_stays_small() {
    let mut bytes = 0;
    for target in TARGETS {
        let entries = entries(target.name).expect("every target has a folder");
        assert!(entries.len() >= 2, "{}", target.name);
        bytes += entries.iter().map(|entry| entry.bytes.len()).sum::<usize>();
    }
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn targets_have_different_names() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len());
}
