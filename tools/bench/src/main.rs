//! The benchmark: `cargo run --profile bench -p sutler-bench`.
//!
//! Every figure is a ratio to a baseline measured in the same run, interleaved with it, as the median
//! of several pairs; absolute times mean nothing on shared machines. Servers and load are separate
//! processes (this executable, started again). The figures are explained in `docs/PERFORMANCE.md`.

mod baseline;
mod broker;
mod bundles;
mod http_pairs;
mod load;
mod machine;
mod platform;
mod registries;
mod report;
mod start_time;
mod store_growth;
mod store_loops;
mod subject;

use clap::{Parser, Subcommand};
use load::BoxError;
use std::path::PathBuf;

/// Measures the broker against bare hyper, skeletons and a bare group-commit loop, and the platform against itself.
#[derive(Parser)]
#[command(name = "sutler-bench", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

/// Parts and durations of a run.
#[derive(clap::Args, Clone)]
pub(crate) struct RunArgs {
    /// A directory on a real disk; tmpfs is refused
    #[arg(long, default_value = "target/bench-data")]
    dir: PathBuf,
    /// Pairs of measurements for each ratio
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Connections of the load
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Instances for the growth part; 0 leaves it out
    #[arg(long, default_value_t = 1_000_000)]
    instances: usize,
    /// Only the parts whose name contains this word: http, store, growth, starts
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Subcommand)]
enum Command {
    /// Measures runs of bundles as processes: the broker's share, how soon they start, what waiting costs
    Bundles(bundles::BundleArgs),
    /// Measures refreshes of a large registry by a real broker, compared with a bare loop of the same requests
    Registries(registries::RegistryArgs),
    /// Measures the platform: brokers that hang, polls, an idle platform, and growth
    Platform(platform::PlatformArgs),
    /// (internal) Fill the database of a platform
    #[command(hide = true)]
    PlatformFill(platform::FillArgs),
    /// (internal) Send requests to a platform and print what was measured
    #[command(hide = true)]
    PlatformRequests(platform::RequestArgs),
    /// (internal) Ask a registry for everything once
    #[command(hide = true)]
    Bare(registries::BareArgs),
    /// (internal) Serve one subject on a port
    #[command(hide = true)]
    Serve(subject::ServeArgs),
    /// (internal) Send load to a port and print what was measured
    #[command(hide = true)]
    Load(load::LoadArgs),
}

fn main() -> Result<(), BoxError> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Serve(args)) => runtime(2)?.block_on(subject::serve(args)),
        Some(Command::Load(args)) => runtime(1)?.block_on(load::run(args)),
        Some(Command::Registries(args)) => runtime(2)?.block_on(registries::measure(args)),
        Some(Command::Bare(args)) => runtime(2)?.block_on(registries::bare(args)),
        Some(Command::Bundles(args)) => runtime(2)?.block_on(bundles::measure(args)),
        Some(Command::Platform(args)) => runtime(2)?.block_on(platform::measure(args)),
        Some(Command::PlatformFill(args)) => runtime(2)?.block_on(platform::fill_database(args)),
        Some(Command::PlatformRequests(args)) => {
            runtime(1)?.block_on(platform::send_requests(args))
        }
        None => runtime(2)?.block_on(measure(cli.run)),
    }
}

fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
}

async fn measure(args: RunArgs) -> Result<(), BoxError> {
    std::fs::create_dir_all(&args.dir)?;
    machine::describe(&args.dir)?;
    let wanted = |part: &str| part.contains(&args.only);
    if wanted("store") {
        store_loops::measure(&args).await?;
    }
    if wanted("http") {
        http_pairs::measure(&args).await?;
    }
    if wanted("starts") {
        start_time::measure(&args).await?;
    }
    if wanted("growth") && args.instances > 0 {
        store_growth::measure(&args).await?;
    }
    Ok(())
}
