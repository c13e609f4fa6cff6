//! One run: a broker, its users, and each attack in turn.

use crate::ToolResult;
use crate::attack::Kind;
use crate::process::{ChildProcess, print_line};
use crate::report::{Row, head, verdict};
use crate::users::{UserLatency, work};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Maximum memory of the broker: its limit for bodies, and an amount for each
/// allowed connection.
const MEMORY_FIXED_BYTES: u64 = 160 * 1024 * 1024;
const MEMORY_PER_CONNECTION_BYTES: u64 = 24 * 1024;
/// Descriptors that a database may open and close meanwhile.
const DESCRIPTORS_SLACK: usize = 16;
/// Maximum time for closed connections to disappear.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

/// Sizes of a run.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Connections that are held open
    #[arg(long, default_value_t = 10_000)]
    held: usize,
    /// Clients that send their headers slowly, and as many that send bodies slowly
    #[arg(long, default_value_t = 400)]
    slow: usize,
    /// Connections of the user who floods
    #[arg(long, default_value_t = 64)]
    flood: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Pairs of calm and attack; the median counts
    #[arg(long, default_value_t = 3)]
    pairs: usize,
    /// The users' p99 may grow by this factor
    #[arg(long, default_value_t = 2.0)]
    ratio_max: f64,
}

/// The attacks, each a set of concurrent ones.
fn attacks(args: &RunArgs) -> Vec<(String, Vec<(Kind, usize)>)> {
    let held = (Kind::Held, args.held);
    let slow = [
        (Kind::SlowHeaders, args.slow),
        (Kind::SlowBodies, args.slow),
    ];
    let flood = (Kind::Flood, args.flood);
    vec![
        (format!("{} connections held", args.held), vec![held]),
        (
            format!("{} slow headers, as many bodies", args.slow),
            slow.to_vec(),
        ),
        (
            format!("one user floods, {} connections", args.flood),
            vec![flood],
        ),
        (
            "all at once".to_owned(),
            vec![held, slow[0], slow[1], flood],
        ),
    ]
}

pub(crate) async fn run(args: RunArgs) -> ToolResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().display().to_string();
    let server = ChildProcess::start(&["serve", "--dir", &path])?;
    let to: SocketAddr = server.first_line.parse()?;
    let lasting = Duration::from_secs(args.seconds);
    // Warm up, so that every table has its size before anything is measured.
    work(to, lasting.min(Duration::from_secs(2)), 0).await;
    let before = server.descriptors()?;
    print_line(&head());
    let (mut rows, mut round, mut failed) = (Vec::new(), 0, 0);
    for (name, kinds) in attacks(&args) {
        let mut pairs = Vec::new();
        for _ in 0..args.pairs.max(1) {
            let baseline = work(to, lasting, next(&mut round)).await;
            let attacked = under_attack(to, &kinds, lasting, next(&mut round)).await?;
            failed += baseline.unanswered + attacked.unanswered;
            settle(&server, before).await?;
            let name = name.clone();
            pairs.push(Row {
                name,
                baseline,
                attacked,
            });
        }
        pairs.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let median = pairs.swap_remove(pairs.len() / 2);
        print_line(&median.line());
        rows.push(median);
    }
    check_guarantees(&args, &server, before, &rows, failed).await
}

fn next(round: &mut usize) -> usize {
    *round += 1;
    *round
}

async fn under_attack(
    to: SocketAddr,
    kinds: &[(Kind, usize)],
    lasting: Duration,
    round: usize,
) -> Result<UserLatency, Box<dyn std::error::Error>> {
    let mut attackers = Vec::new();
    for (kind, count) in kinds {
        let kind = kind.to_possible_value().ok_or("a kind has a name")?;
        let (to, count) = (to.to_string(), count.to_string());
        let arguments = [
            "attack",
            "--kind",
            kind.get_name(),
            "--to",
            &to,
            "--count",
            &count,
        ];
        let attacker = ChildProcess::start(&arguments)?;
        if attacker.first_line != "open" {
            return Err(format!("an attacker did not begin: {}", attacker.first_line).into());
        }
        attackers.push(attacker);
    }
    Ok(work(to, lasting, round).await)
}

/// Waits until the attackers' connections are gone; returns the number of descriptors then.
async fn settle(server: &ChildProcess, before: usize) -> std::io::Result<usize> {
    let until = Instant::now() + SETTLE_WITHIN;
    loop {
        let now = server.descriptors()?;
        if now <= before + DESCRIPTORS_SLACK || Instant::now() > until {
            return Ok(now);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn check_guarantees(
    args: &RunArgs,
    server: &ChildProcess,
    before: usize,
    rows: &[Row],
    failed: usize,
) -> ToolResult {
    let after = settle(server, before).await?;
    let peak = server.peak_memory()?;
    let connections = (args.held + 2 * args.slow + args.flood) as u64;
    let bound = MEMORY_FIXED_BYTES + connections * MEMORY_PER_CONNECTION_BYTES;
    let mb = |bytes: u64| bytes / (1024 * 1024);
    let mut verdicts: Vec<(bool, String)> = rows
        .iter()
        .map(|row| {
            let (ratio, most) = (row.ratio(), args.ratio_max);
            let what = format!("{}: p99 of others × {ratio:.2}, at most {most}", row.name);
            verdict(ratio <= most, &what)
        })
        .collect();
    verdicts.push(verdict(
        failed == 0,
        &format!("requests of others that were not answered: {failed}"),
    ));
    verdicts.push(verdict(
        peak <= bound,
        &format!("peak memory {} MB, at most {} MB", mb(peak), mb(bound)),
    ));
    verdicts.push(verdict(
        after <= before + DESCRIPTORS_SLACK,
        &format!("descriptors {before} before, {after} after"),
    ));
    for (_, line) in &verdicts {
        print_line(line);
    }
    if verdicts.iter().all(|(kept, _)| *kept) {
        return Ok(());
    }
    Err("a promise was not kept; the lines above say which".into())
}
