//! The platform's side: what one broker does to the others, what polls cost, an idle platform, and growth.
//!
//! The platform under measurement (`platform/platform_server.rs`) has a process of its own, so has the one that plays all
//! brokers (`platform/stub_brokers.rs`), and so has the load (`platform/requests.rs`). Databases are filled by the
//! platform's own commands (`platform/fill.rs`). One file per question: `isolation.rs`, `polls.rs`, `idle.rs`, `growth.rs`.
//! Every figure is compared with one of the same run, taken in turn with it or at the same time.

mod broker_set;
mod counted_store;
mod fill;
mod growth;
mod idle;
mod isolation;
mod platform_server;
mod polls;
mod process_times;
mod requests;
mod stub_brokers;
mod verdicts;

pub(crate) use fill::{FillArgs, run as fill_database};
pub(crate) use platform_server::serve;
pub(crate) use requests::{RequestArgs, run as send_requests};
pub(crate) use stub_brokers::serve as serve_brokers;

use crate::load::BoxError;
use crate::machine;
use crate::report::print_line;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use verdicts::Verdicts;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Size {
    /// Seconds: that it runs, and what does not depend on the clock.
    Ci,
    /// The sizes of the targets.
    Night,
}

/// Sizes of the measurement.
#[derive(Args, Clone)]
pub(crate) struct PlatformArgs {
    /// A directory on a real disk; tmpfs is refused
    #[arg(long, default_value = "target/bench-data")]
    dir: PathBuf,
    /// How much is measured
    #[arg(long, value_enum, default_value_t = Size::Night)]
    size: Size,
    /// Pairs of measurements for each ratio
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seconds for each measurement of a pair
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Instances of the large platform in the growth part
    #[arg(long, default_value_t = 1_000_000)]
    instances: usize,
    /// Only the parts whose name contains this word: isolation, polls, idle, growth
    #[arg(long, default_value = "")]
    only: String,
}

/// Measures all parts.
///
/// # Errors
/// Something does not run, or, in the small size, a figure that does not depend on the clock misses its target.
pub(crate) async fn measure(mut args: PlatformArgs) -> Result<(), BoxError> {
    if args.size == Size::Ci {
        (args.pairs, args.seconds, args.instances) = (1, 1, 2_000);
    }
    args.dir.push("platform");
    std::fs::create_dir_all(&args.dir)?;
    machine::describe(&args.dir)?;
    let mut verdicts = Verdicts::default();
    let wanted = |part: &str| part.contains(&args.only);
    if wanted("polls") {
        polls::measure(&args, &mut verdicts).await?;
    }
    if wanted("isolation") {
        isolation::measure(&args, &mut verdicts).await?;
    }
    if wanted("idle") {
        idle::measure(&args, &mut verdicts).await?;
    }
    if wanted("growth") {
        growth::measure(&args, &mut verdicts).await?;
    }
    let missed = verdicts.missed_counts();
    if args.size == Size::Ci && !missed.is_empty() {
        return Err(format!("missed: {}", missed.join(", ")).into());
    }
    if args.size == Size::Ci {
        print_line("times of this size mean nothing; counts are within their targets");
    }
    Ok(())
}

impl PlatformArgs {
    /// One of two numbers, by size.
    fn sized(&self, ci: usize, night: usize) -> usize {
        match self.size {
            Size::Ci => ci,
            Size::Night => night,
        }
    }
}
