//! Runs many seeds of the platform. `SUTLER_SIMULATE_SEEDS` sets how many, as for brokers.

use std::sync::atomic::{AtomicU64, Ordering};
use sutler_simulate::run_platform_seed;

/// Number of seeds, if the environment does not set it.
const SEEDS: u64 = 1000;

fn check(seed: u64) {
    let result = run_platform_seed(seed, false);
    if !result.violations.is_empty() {
        let history = run_platform_seed(seed, true).history;
        panic!(
            "{}\nseed {seed} of the platform breaks invariants: {:#?}\nreplay it with: cargo run -p sutler-simulate -- --platform --seed {seed}",
            history.join("\n"),
            result.violations
        );
    }
}

#[test]
fn platforms_keep_their_invariants_under_every_seed() {
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
fn a_seed_of_the_platform_is_replayed_exactly() {
    for seed in 0..10 {
        let (first, second) = (run_platform_seed(seed, true), run_platform_seed(seed, true));
        assert_eq!(first, second, "seed {seed}");
        let unrecorded = run_platform_seed(seed, false);
        assert_eq!(first.digest, unrecorded.digest, "seed {seed}");
        assert!(!first.history.is_empty());
    }
}
