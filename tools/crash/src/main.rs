//! The long run: kills a victim thousands of times and says what was found. Also the victim itself.
//!
//! `cargo run -p sutler-crash -- --kills 5000`. The short run is `cargo test -p sutler-crash`.

use clap::{Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use sutler_crash::victim::{self, ReplicaArgs, VictimArgs};
use sutler_crash::{Rounds, kill_at_every_point, kill_at_random};

#[derive(Parser)]
#[command(about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    /// How many kills in all: first at every commit point, then at random.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Repeats the same chances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many platforms send requests at once.
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// Where victims live; a directory that is removed at the end, unless named.
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Part {
    /// The broker that is killed.
    #[command(hide = true)]
    Victim(VictimArgs),
    /// One of several brokers over one server.
    #[command(hide = true)]
    Replica(ReplicaArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.part {
        Some(Part::Victim(args)) => victim::run(args).await,
        Some(Part::Replica(args)) => victim::run_replica(args).await,
        None => long_run(cli).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn long_run(cli: Cli) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let temporary = tempfile::tempdir()?;
    let dir = cli.dir.unwrap_or_else(|| temporary.path().to_owned());
    let program = std::env::current_exe()?;
    let points = kill_at_every_point(&program, &dir.join("points"), 2).await?;
    writeln!(out, "at every commit point: {points}")?;
    let rounds = Rounds {
        program,
        dir: dir.join("rounds"),
        kills: cli.kills.saturating_sub(points.kills),
        clients: cli.clients,
        seed: cli.seed,
    };
    let report = kill_at_random(&rounds, |line| {
        let _ = writeln!(std::io::stdout(), "{line}");
    })
    .await?;
    writeln!(out, "at random: {report}")?;
    writeln!(
        out,
        "{} kills, no promise broken",
        points.kills + report.kills
    )?;
    Ok(())
}
