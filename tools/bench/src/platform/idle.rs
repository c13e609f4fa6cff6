//! An idle platform with many instances and brokers: processor time, writes and memory, compared with an idle broker.

use super::PlatformArgs;
use super::broker_set::BrokerSet;
use super::counted_store::StoreFigures;
use super::fill::fill;
use super::process_times::ThreadTimes;
use super::stub_brokers::QUICK_PLAN;
use super::verdicts::Verdicts;
use crate::http_pairs::fresh_dir;
use crate::load::BoxError;
use crate::report::print_line;
use crate::subject::{Server, Subject};
use std::path::Path;
use std::time::{Duration, Instant};

/// Catalogs are read again every 15 minutes by default: as many are read a minute.
const MINUTES: usize = 15;
/// Memory for each broker, in MB.
const MB_PER_BROKER: f64 = 0.02;

pub(super) async fn measure(args: &PlatformArgs, verdicts: &mut Verdicts) -> Result<(), BoxError> {
    let (instances, brokers) = (args.sized(500, 100_000), args.sized(20, 1_000));
    print_line(&format!(
        "\n-- idle: {instances} instances of {brokers} brokers --"
    ));
    let stub = Server::start(Subject::StubBrokers, &args.dir).await?;
    let set = |count: usize, read_every_minute: usize| BrokerSet {
        read_every_minute,
        ..BrokerSet::prompt(stub.port, count)
    };
    let reading = set(brokers, brokers.div_ceil(MINUTES));
    let large = filled(&args.dir.join("idle-large"), &reading, instances).await?;
    let quiet = filled(&args.dir.join("idle-quiet"), &set(brokers, 0), 0).await?;
    let small = filled(&args.dir.join("idle-small"), &set(10, 0), instances).await?;
    let broker_dir = fresh_dir(&args.dir.join("idle-broker"))?;
    let broker = Server::start(Subject::Broker, &broker_dir).await?;
    tokio::time::sleep(Duration::from_secs(args.sized(1, 30) as u64)).await;
    let window = Duration::from_secs(args.sized(3, 120) as u64);
    let (began, broker_cpu) = (Instant::now(), broker.cpu_micros());
    let subjects = [
        ("all, catalogs read every 15 minutes", &large),
        ("no instances, no catalogs read", &quiet),
        ("10 brokers, no catalogs read", &small),
    ];
    let mut before = Vec::new();
    for (_, server) in subjects {
        before.push(IdleReading::of(server).await?);
    }
    tokio::time::sleep(window).await;
    let mut costs = Vec::new();
    for ((what, server), before) in subjects.iter().zip(&before) {
        let seconds = began.elapsed().as_secs_f64();
        let now = IdleReading::of(server).await?;
        let cost = IdleCost {
            share: (now.cpu_micros - before.cpu_micros) / seconds / 1e4,
            figures: now.figures.since(&before.figures),
            seconds,
        };
        cost.print(what, &now.threads.since(&before.threads));
        costs.push(cost);
    }
    let broker_share = (broker.cpu_micros() - broker_cpu) / began.elapsed().as_secs_f64() / 1e4;
    print_line(&format!(
        "    an idle broker: {broker_share:.2} % of a core, {:.1} MB",
        broker.resident_mb()
    ));
    if let Some(cost) = costs.first() {
        verdicts.value("idle: processor time", cost.share, 0.5, "% of a core");
        verdicts.value("idle: writes", cost.writes(), 1.0, "a second");
    }
    let most = 2.5 * broker.resident_mb() + MB_PER_BROKER * brokers as f64;
    verdicts.value("idle: resident memory", large.resident_mb(), most, "MB");
    Ok(())
}

/// What an idle platform has used so far.
struct IdleReading {
    cpu_micros: f64,
    figures: StoreFigures,
    threads: ThreadTimes,
}

/// What it used between two moments.
struct IdleCost {
    /// Of a core, in percent.
    share: f64,
    figures: StoreFigures,
    seconds: f64,
}

impl IdleReading {
    async fn of(server: &Server) -> Result<Self, BoxError> {
        Ok(Self {
            cpu_micros: server.cpu_micros(),
            figures: StoreFigures::read(server.port).await?,
            threads: ThreadTimes::of(server.id()),
        })
    }
}

impl IdleCost {
    fn writes(&self) -> f64 {
        self.figures.writes() / self.seconds
    }

    fn print(&self, what: &str, threads: &ThreadTimes) {
        print_line(&format!(
            "    {what}: {:.2} % of a core, {:.2} writes a second; µs each second: {}",
            self.share,
            self.writes(),
            threads.per(self.seconds)
        ));
        print_line(&format!(
            "        each second: {}",
            self.figures.per(self.seconds)
        ));
    }
}

async fn filled(dir: &Path, brokers: &BrokerSet, instances: usize) -> Result<Server, BoxError> {
    let dir = fresh_dir(dir)?;
    fill(&dir, brokers, (instances, QUICK_PLAN))?;
    Server::start(Subject::Platform, &dir).await
}
