//! Runs many seeds. `SUTLER_SIMULATE_SEEDS` sets how many (`./test --night`: 20,000). A long search, one million seeds:
//! `cargo run --profile bench -p sutler-simulate -- --seeds 1000000 --from 1000`.

use std::sync::atomic::{AtomicU64, Ordering};
use sutler_simulate::run_seed;

/// Number of seeds, if the environment does not set it.
const SEEDS: u64 = 1000;

/// Seeds that failed when a bug was found. What a seed does changes with the code, so they prove nothing by
/// themselves; `mutations.txt` puts bugs back.
const SEEDS_THAT_FAILED: [u64; 14] = [
    1, 5, 6, 11, 54, 127, 189, 409, 640, 833, 948, 2426, 2707, 100_035,
];

fn check(seed: u64) {
    let result = run_seed(seed, false);
    if !result.violations.is_empty() {
        let history = run_seed(seed, true).history;
        panic!(
            "{}\nseed {seed} breaks invariants: {:#?}\nreplay it with: cargo run -p sutler-simulate -- --seed {seed}",
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
            check(seed);
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
    SEEDS_THAT_FAILED.into_iter().for_each(check);
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
