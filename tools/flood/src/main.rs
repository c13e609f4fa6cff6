//! The flood: `cargo run --profile bench -p sutler-flood`.
//!
//! Starts a broker on 127.0.0.1 with default limits, lets a few users work, attacks it in several
//! ways, each bounded in number and time, and compares the latency of the users with the latency
//! just before. Servers and attackers are separate processes (this executable, started again).
//! The figures are explained in `docs/PERFORMANCE.md`.

mod attack;
mod broker;
mod http;
mod process;
mod report;
mod run;
mod users;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Attacks a broker of its own and measures what its users notice.
#[derive(Parser)]
#[command(name = "sutler-flood", version, about)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Subcommand)]
enum Part {
    /// (internal) Serve
    #[command(hide = true)]
    Serve(broker::ServeArgs),
    /// (internal) Attack
    #[command(hide = true)]
    Attack(attack::AttackArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    sutler_broker::raise_descriptor_limit();
    let ended = match cli.part {
        Some(Part::Serve(args)) => broker::serve(args).await,
        Some(Part::Attack(args)) => attack::run(args).await,
        None => run::run(cli.run).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::print_line(&format!("sutler-flood: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Result of a part.
type ToolResult = Result<(), Box<dyn std::error::Error>>;
