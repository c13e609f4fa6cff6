//! The long run: kills a victim thousands of times and reports the result. Also the victim itself.
//!
//! `cargo run -p sutler-crash -- --kills 5000`, or `-- chaos --store postgres --minutes 10`. The short
//! run of both is `cargo test -p sutler-crash`.

use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use sutler_crash::chaos::{Chaos, PlatformChaos, ServerKind, run_chaos_round, run_platform_round};
use sutler_crash::platform_kills::{CommitPoints, kill_at_commits};
use sutler_crash::recording_broker::{self, RecordingBrokerArgs};
use sutler_crash::victim::{self, Flaw, PlatformArgs, PlatformFlaw, ReplicaArgs, VictimArgs};
use sutler_crash::{RandomKills, kill_at_every_point, kill_at_random};

#[derive(Parser)]
#[command(about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    /// Total number of kills: first at every commit point, then at random
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Seed; the same seed gives the same choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of platforms that send requests concurrently
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// Directory of victims; by default a temporary one
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
    /// Three replicas over one server, of which something is always broken.
    Chaos(ChaosArgs),
    /// The platform that is killed.
    #[command(hide = true)]
    PlatformVictim(PlatformArgs),
    /// The broker of a platform that is killed.
    #[command(hide = true)]
    RecordingBroker(RecordingBrokerArgs),
    /// A platform that is killed at every commit of every verb.
    Platform(PlatformKillArgs),
    /// Three platforms over PostgreSQL, of which something is always broken.
    PlatformChaos(PlatformChaosArgs),
}

#[derive(Args)]
struct PlatformChaosArgs {
    /// Duration of a round, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Rounds
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Seed; the next round takes the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory of keys and logs; by default a temporary one
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Args)]
struct PlatformKillArgs {
    /// Only scenarios whose names begin like this
    #[arg(long, default_value = "")]
    only: String,
    /// Every n-th commit
    #[arg(long, default_value_t = 1)]
    every: u64,
    /// A second death at each of the first n commits of the recovery
    #[arg(long, default_value_t = 4)]
    second: u64,
    /// Scenarios at a time
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Be wrong on purpose, to check that the harness notices
    #[arg(long, value_enum)]
    flaw: Option<PlatformFlaw>,
    /// Directory of the runs; by default a temporary one
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Args)]
struct ChaosArgs {
    /// Store
    #[arg(long, value_enum, default_value_t = ServerKind::Postgres)]
    store: ServerKind,
    /// Duration, in rounds of one minute
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Duration of a single round, in seconds, instead
    #[arg(long, conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// Seed; the next round takes the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Duration of a lease, in seconds
    #[arg(long)]
    lease: Option<u64>,
    /// Be wrong on purpose, to check that the harness notices
    #[arg(long, value_enum)]
    flaw: Option<Flaw>,
    /// Directory of keys, event log and logs; by default a temporary one
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.part {
        Some(Part::Victim(args)) => victim::run(args).await,
        Some(Part::Replica(args)) => victim::run_replica(args).await,
        Some(Part::Chaos(args)) => chaos_run(args).await,
        Some(Part::PlatformVictim(args)) => victim::run_platform(args).await,
        Some(Part::RecordingBroker(args)) => recording_broker::run(args).await,
        Some(Part::Platform(args)) => platform_kills(args).await,
        Some(Part::PlatformChaos(args)) => platform_chaos(args).await,
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
    let rounds = RandomKills {
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

async fn chaos_run(args: ChaosArgs) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let temporary = tempfile::tempdir()?;
    let dir = args.dir.unwrap_or_else(|| temporary.path().to_owned());
    let program = std::env::current_exe()?;
    let server = tokio::task::spawn_blocking(move || args.store.own()).await?;
    let server = Arc::new(server.ok_or("install the server, or put it on the PATH")?);
    let (rounds, length) = match args.seconds {
        Some(seconds) => (1, Duration::from_secs(seconds)),
        None => (args.minutes.max(1), Duration::from_secs(60)),
    };
    for round in 0..rounds {
        let seed = args.seed + round;
        let mut chaos = Chaos::new(&program, &dir.join(seed.to_string()), seed, length);
        chaos.flaw = args.flaw;
        chaos.lease = args.lease.map_or(chaos.lease, Duration::from_secs);
        writeln!(out, "seed {seed}:")?;
        let plan = chaos.plan();
        for planned in &plan {
            writeln!(out, "  {planned}")?;
        }
        let ended = run_chaos_round(&chaos, &plan, Arc::clone(&server)).await;
        let report = ended.map_err(|violation| {
            // The data of a failed round is kept.
            let kept = temporary.path().display();
            format!("seed {seed}: {violation}; see {kept}")
        });
        match report {
            Ok(report) => writeln!(out, "seed {seed}: {report}")?,
            Err(sentence) => {
                let _ = temporary.keep();
                return Err(sentence.into());
            }
        }
    }
    writeln!(out, "no promise broken")?;
    Ok(())
}

async fn platform_kills(args: PlatformKillArgs) -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let points = CommitPoints {
        program: std::env::current_exe()?,
        dir: args.dir.unwrap_or_else(|| temporary.path().to_owned()),
        only: args.only,
        every: args.every,
        second: args.second,
        workers: args.workers,
        flaw: args.flaw,
    };
    let ended = kill_at_commits(&points, |report| {
        let _ = writeln!(std::io::stdout(), "{report}");
    });
    let ended = ended.await;
    if ended.is_err() {
        // The data of a failed run is kept.
        let _ = temporary.keep();
    }
    writeln!(std::io::stdout(), "{}; no promise broken", ended?)?;
    Ok(())
}

async fn platform_chaos(args: PlatformChaosArgs) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let temporary = tempfile::tempdir()?;
    let dir = args.dir.unwrap_or_else(|| temporary.path().to_owned());
    let program = std::env::current_exe()?;
    let server = tokio::task::spawn_blocking(|| ServerKind::Postgres.own()).await?;
    let server = Arc::new(server.ok_or("install PostgreSQL, or put it on the PATH")?);
    for seed in args.seed..args.seed + args.rounds.max(1) {
        let length = Duration::from_secs(args.seconds);
        let chaos = PlatformChaos::new(&program, &dir.join(seed.to_string()), seed, length);
        let plan = chaos.plan();
        let ended = run_platform_round(&chaos, &plan, Arc::clone(&server)).await;
        match ended {
            Ok(report) => writeln!(out, "seed {seed}: {report}")?,
            Err(violation) => {
                let kept = temporary.keep();
                return Err(format!("seed {seed}: {violation}; see {}", kept.display()).into());
            }
        }
    }
    writeln!(out, "no promise broken")?;
    Ok(())
}
