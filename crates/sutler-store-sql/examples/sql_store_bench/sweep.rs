//! Effect of a sweep on other requests: their latency with and without one, in turns, in the same run.
//!
//! Each caller starts requests at fixed times, whatever the state of the last one: latency is measured
//! from the scheduled start, so that a stall counts for every request it delays. In every other window a
//! task sweeps as a broker does. It ends when nothing is left to sweep.

use crate::{BenchError, calls};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::{Store, Sweep, WorkerId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Interval of each caller between requests: an accept, a poll and a result.
const EVERY: Duration = Duration::from_millis(50);
/// As the broker's own clean-up, with its pauses.
const BATCH: usize = 500;

/// State shared by callers and the sweep.
struct BenchContext {
    store: Arc<dyn Store>,
    worker: WorkerId,
    /// Number of the window, from 0; odd ones have a sweep.
    window: AtomicUsize,
    over: AtomicBool,
    latencies: Mutex<Vec<Vec<Duration>>>,
}

/// Measures and prints the results.
pub(crate) async fn measure(
    store: Arc<dyn Store>,
    callers: usize,
    window: Duration,
) -> Result<(), BenchError> {
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(3600)).await?;
    let context = Arc::new(BenchContext {
        store,
        worker,
        window: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        latencies: Mutex::new(vec![Vec::new()]),
    });
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let offset = EVERY.mul_f64(caller as f64 / callers as f64);
        tasks.spawn(call(Arc::clone(&context), began + offset));
    }
    let swept = sweep_in_turns(&context, window).await;
    context.over.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let (swept, spent) = swept?;
    report(&context, swept, spent)
}

async fn call(context: Arc<BenchContext>, first: Instant) -> Result<(), BenchError> {
    let mut n = 0;
    while !context.over.load(Ordering::Relaxed) {
        let due = first + EVERY * u32::try_from(n)?;
        sleep_until(due).await;
        let window = context.window.load(Ordering::Relaxed);
        let accepted = calls::accept(&*context.store, context.worker).await?;
        calls::poll(&*context.store, n).await?;
        calls::end(&*context.store, accepted).await?;
        context.note(window, due.elapsed());
        n += 1;
    }
    Ok(())
}

impl BenchContext {
    fn note(&self, window: usize, latency: Duration) {
        let mut all = self
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let missing = (window + 1).saturating_sub(all.len());
        all.extend(std::iter::repeat_n(Vec::new(), missing));
        all[window].push(latency);
    }
}

/// Sweeps in every other window; returns the number of operations and the time spent.
async fn sweep_in_turns(
    context: &BenchContext,
    window: Duration,
) -> Result<(u64, Duration), BenchError> {
    let finished_before = context.store.now().await?.minus(Duration::from_secs(3600));
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before,
        limit: BATCH,
    };
    let (mut swept, mut spent) = (0, Duration::ZERO);
    loop {
        sleep_until(Instant::now() + window).await;
        context.window.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        while began.elapsed() < window {
            let batch = Instant::now();
            let gone = context.store.sweep(&sweep).await?;
            swept += gone;
            if gone < BATCH as u64 {
                return Ok((swept, spent + began.elapsed()));
            }
            sleep(Sweep::rest_after(batch.elapsed())).await;
        }
        spent += began.elapsed();
        context.window.fetch_add(1, Ordering::Relaxed);
    }
}

fn report(context: &BenchContext, swept: u64, spent: Duration) -> Result<(), BenchError> {
    let all = context
        .latencies
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mut ratios = Vec::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in all.chunks_exact(2) {
        let (quiet, busy) = (percentile(&pair[0], 0.99), percentile(&pair[1], 0.99));
        if let (Some(quiet), Some(busy)) = (quiet, busy) {
            ratios.push(busy.as_secs_f64() / quiet.as_secs_f64());
        }
        without.extend_from_slice(&pair[0]);
        with.extend_from_slice(&pair[1]);
    }
    let mut out = std::io::stdout();
    let rate = swept as f64 / spent.as_secs_f64();
    writeln!(out, "swept {swept} operations, {rate:.0} a second")?;
    for (name, latencies) in [("without", &without), ("with", &with)] {
        let at = |part| percentile(latencies, part).unwrap_or_default();
        let (half, p99) = (at(0.5), at(0.99));
        writeln!(out, "{name:8} a sweep: p50 {half:.1?}, p99 {p99:.1?}")?;
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    let pairs = ratios.len();
    writeln!(
        out,
        "p99 with / without: {median:.2} (median of {pairs} pairs)"
    )?;
    Ok(())
}

fn percentile(latencies: &[Duration], part: f64) -> Option<Duration> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let place = ((sorted.len() as f64 - 1.0) * part).round();
    sorted.get(place as usize).copied()
}
