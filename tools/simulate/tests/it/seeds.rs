//! Runs many seeds. `SUTLER_SIMULATE_SEEDS` sets how many (`./test --night`: 20,000). A long search, one million seeds:
//! `cargo run --profile bench -p sutler-simulate -- --seeds 1000000 --from 20000`.

use std::sync::atomic::{AtomicU64, Ordering};
use sutler_simulate::run_seed;

/// Number of seeds, if the environment does not set it.
const SEEDS: u64 = 1000;

/// Seeds that failed before the bugs were mended, and what they showed then; also those that find a bug of
/// `mutations.txt` which the first 1,000 do not find. What a seed does changes with the code, so they prove nothing by
/// themselves; `mutations.txt` puts the bugs back.
const SEEDS_THAT_FAILED: [(u64, &str); 26] = [
    (1, "a run went on after an operator ended it elsewhere"),
    (5, "a run outlived its lease"),
    (6, "a binding that a purge left was never deleted"),
    (11, "a delete had no time left"),
    (54, "an operation was given up for another one"),
    (127, "a claim ran under a later lease"),
    (189, "an unbind and a provision ran at once"),
    (409, "a delete ran beside an update"),
    (640, "an unbind waited for ever"),
    (833, "a shut-down released a run early"),
    (948, "a shut-down released a run early"),
    (1036, "a hook began after the end of its operation was read"),
    (2426, "two runs under one claim"),
    (2707, "two runs under one claim"),
    (2716, "a hook began after its end was read"),
    (4470, "an operation that had ended started"),
    (12_080, "an operation that had ended started"),
    (52_813, "an operation that had ended started"),
    (53_530, "an operation was given up for another one"),
    (54_875, "a hook began after a command read that it ended"),
    (61_941, "an operation that had ended started"),
    (83_545, "an operation was given up for another one"),
    (89_217, "an operation that had ended started"),
    (93_508, "an operation was given up for another one"),
    (100_035, "a purge took a binding of the next instance"),
    (116_152, "an operation was given up for another one"),
];

fn check(seed: u64, note: &str) {
    let result = run_seed(seed, false);
    if !result.violations.is_empty() {
        let history = run_seed(seed, true).history;
        panic!(
            "{}\nseed {seed} breaks invariants ({note}): {:#?}\nreplay it with: cargo run -p sutler-simulate -- --seed {seed}",
            history.join("\n"),
            result.violations
        );
    }
}

#[test]
fn brokers_keep_their_invariants_under_every_seed() {
    let wanted = std::env::var("SUTLER_SIMULATE_SEEDS");
    let wanted = wanted.map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let next = AtomicU64::new(0);
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < wanted)
        {
            check(seed, "it is one of the seeds of the tests");
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(work);
        }
    });
}

#[test]
fn seeds_that_failed_are_clean() {
    for (seed, showed) in SEEDS_THAT_FAILED {
        check(seed, &format!("it once showed that {showed}"));
    }
}

#[test]
fn a_seed_is_replayed_exactly() {
    for seed in 0..20 {
        let (first, second) = (run_seed(seed, true), run_seed(seed, true));
        assert_eq!(first, second, "seed {seed}");
        assert_eq!(first.digest, run_seed(seed, false).digest, "seed {seed}");
        assert!(!first.history.is_empty());
    }
}
