//! What polls cost: ten thousand in flight over a thousand brokers, compared with a hundred over ten.
//!
//! There are two baselines: one polls as often in all, so each of its operations a hundred times as often; the other polls
//! each operation as often, so its brokers are asked as seldom and connections are not used twice. All platforms run at
//! the same time while their polls are counted, so that what else the machine does concerns all. While the time of requests
//! is measured, only one of them runs.

use super::broker_set::BrokerSet;
use super::counted_store::StoreFigures;
use super::fill::fill;
use super::process_times::{ThreadTimes, written_bytes};
use super::requests::RequestArgs;
use super::stub_brokers::{SLOW_PLAN, StubCounts};
use super::verdicts::{Pairs, Verdicts};
use super::{PlatformArgs, Size};
use crate::http_pairs::fresh_dir;
use crate::load::{BoxError, LoadResult};
use crate::report::print_line;
use crate::subject::{Server, Subject};
use std::path::Path;
use std::time::{Duration, Instant};

/// Seconds between two polls of an operation of the large platform: as many polls a second as the first baseline makes,
/// whose brokers want to be polled as soon as possible.
const POLL_SECONDS: u64 = 10;
/// Time until polls are as frequent as they should be, at most.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
/// Connections of the sends.
const CONNECTIONS: usize = 8;

/// One platform with polls.
struct Polling {
    server: Server,
    brokers: BrokerSet,
    polls: usize,
}

/// What a platform has done, at a moment.
struct Reading {
    polls: u64,
    connections: u64,
    figures: StoreFigures,
    threads: ThreadTimes,
    bytes: f64,
}

/// What polls cost between two moments.
struct PollCost {
    polls: f64,
    connections: f64,
    figures: StoreFigures,
    threads: ThreadTimes,
    bytes: f64,
}

pub(super) async fn measure(args: &PlatformArgs, verdicts: &mut Verdicts) -> Result<(), BoxError> {
    let (few, many) = (args.sized(10, 100), args.sized(200, 10_000));
    let (few_brokers, many_brokers) = (args.sized(2, 10), args.sized(20, 1_000));
    print_line(&format!(
        "\n-- polls: {many} in flight over {many_brokers} brokers, and {few} over {few_brokers} --"
    ));
    let stub = Server::start(Subject::StubBrokers, &args.dir).await?;
    let set = |count, poll_seconds| BrokerSet {
        poll_seconds,
        ..BrokerSet::prompt(stub.port, count)
    };
    let interval = match args.size {
        Size::Ci => 2,
        Size::Night => POLL_SECONDS,
    };
    let start = async |name: &str, brokers: BrokerSet, polls: usize| {
        Polling::start(&args.dir.join(name), brokers, polls).await
    };
    let small = start("few-polls", set(few_brokers, 0), few).await?;
    // A second more, so that the stub counts them apart.
    let seldom = start("few-polls-seldom", set(few_brokers, interval + 1), few).await?;
    let large = start("many-polls", set(many_brokers, interval), many).await?;
    large.settled().await?;
    let window = Duration::from_secs(args.sized(3, 20) as u64);
    let (mut cpu, mut cpu_seldom) = (Pairs::default(), Pairs::default());
    let mut last = None;
    for _ in 0..args.pairs {
        let before = (
            large.read().await?,
            small.read().await?,
            seldom.read().await?,
        );
        tokio::time::sleep(window).await;
        let cost = large.read().await?.since(&before.0);
        let of_small = small.read().await?.since(&before.1);
        let of_seldom = seldom.read().await?.since(&before.2);
        cpu.add(cost.cpu_per_poll(), of_small.cpu_per_poll());
        cpu_seldom.add(cost.cpu_per_poll(), of_seldom.cpu_per_poll());
        last = Some([
            ("many", cost),
            ("few", of_small),
            ("few, as seldom", of_seldom),
        ]);
    }
    verdicts.at_most("processor time of a poll, as many in all", &cpu, 1.3, "µs");
    verdicts.at_most("the same, each as often", &cpu_seldom, 1.3, "µs");
    for (which, cost) in last.iter().flatten() {
        let what = format!("rows written for a poll, {which}");
        verdicts.count(&what, cost.rows_per_poll(), 2.0, "");
        cost.print(window);
    }
    drop(seldom);
    print_line(&format!(
        "    resident memory {:.0} MB with many, {:.0} MB with few",
        large.server.resident_mb(),
        small.server.resident_mb()
    ));
    sends(args, verdicts, (&small, &large)).await
}

/// Creates while the polls go on.
async fn sends(
    args: &PlatformArgs,
    verdicts: &mut Verdicts,
    (small, large): (&Polling, &Polling),
) -> Result<(), BoxError> {
    let (mut p50, mut p99, mut rate) = (Pairs::default(), Pairs::default(), Pairs::default());
    for pair in 0..args.pairs {
        let once = async |measured: &Polling, other: &Polling| -> Result<LoadResult, BoxError> {
            other.server.pause()?;
            measured.settled().await?;
            let (port, brokers) = (measured.server.port, measured.brokers.count);
            let load = RequestArgs::creates(port, args.seconds as f64, CONNECTIONS, brokers);
            let sent = load.send();
            other.server.resume()?;
            sent
        };
        let (with_many, with_few) = if pair % 2 == 0 {
            let with_few = once(small, large).await?;
            (once(large, small).await?, with_few)
        } else {
            (once(large, small).await?, once(small, large).await?)
        };
        p50.add(with_many.p50_us, with_few.p50_us);
        p99.add(with_many.p99_us, with_few.p99_us);
        rate.add(with_many.per_second, with_few.per_second);
    }
    verdicts.at_most("sends during polls: p99", &p99, 1.5, "µs");
    verdicts.at_most("sends during polls: p50", &p50, 1.5, "µs");
    verdicts.at_least("sends during polls: rate", &rate, 1.0 / 1.5, "a second");
    Ok(())
}

impl Polling {
    async fn start(dir: &Path, brokers: BrokerSet, polls: usize) -> Result<Self, BoxError> {
        let dir = fresh_dir(dir)?;
        fill(&dir, &brokers, (polls, SLOW_PLAN))?;
        let server = Server::start(Subject::Platform, &dir).await?;
        Ok(Self {
            server,
            brokers,
            polls,
        })
    }

    async fn polls_so_far(&self) -> Result<u64, BoxError> {
        let counts = StubCounts::read(self.brokers.port).await?;
        Ok(counts.polls(self.brokers.poll_seconds))
    }

    async fn connections_so_far(&self) -> Result<u64, BoxError> {
        let counts = StubCounts::read(self.brokers.port).await?;
        Ok(counts.connections(self.brokers.poll_seconds))
    }

    /// Waits until polls are about as frequent as the brokers want: those that were late are spread again.
    async fn settled(&self) -> Result<(), BoxError> {
        if self.brokers.poll_seconds == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Ok(());
        }
        let wanted = self.polls as f64 / self.brokers.poll_seconds as f64;
        let until = Instant::now() + SETTLED_WITHIN;
        let mut quiet = 0;
        while quiet < 3 {
            let (began, before) = (Instant::now(), self.polls_so_far().await?);
            tokio::time::sleep(Duration::from_secs(1)).await;
            let polls = (self.polls_so_far().await? - before) as f64;
            let rate = polls / began.elapsed().as_secs_f64();
            let is_quiet = (0.7..1.3).contains(&(rate / wanted));
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if Instant::now() > until {
                print_line(&format!(
                    "    polls did not settle: {rate:.0} a second, not {wanted:.0}"
                ));
                return Ok(());
            }
        }
        Ok(())
    }

    async fn read(&self) -> Result<Reading, BoxError> {
        Ok(Reading {
            polls: self.polls_so_far().await?,
            connections: self.connections_so_far().await?,
            figures: StoreFigures::read(self.server.port).await?,
            threads: ThreadTimes::of(self.server.id()),
            bytes: written_bytes(self.server.id()),
        })
    }
}

impl Reading {
    fn since(&self, earlier: &Self) -> PollCost {
        PollCost {
            polls: (self.polls - earlier.polls) as f64,
            connections: (self.connections - earlier.connections) as f64,
            figures: self.figures.since(&earlier.figures),
            threads: self.threads.since(&earlier.threads),
            bytes: self.bytes - earlier.bytes,
        }
    }
}

impl PollCost {
    fn cpu_per_poll(&self) -> f64 {
        self.threads.total() / self.polls
    }

    /// A claim writes a row, and so does the commit that gives the claim back. What others write meanwhile, e.g. the record
    /// of the process, is counted too; polls that were claimed and not answered at the end make a hundredth.
    fn rows_per_poll(&self) -> f64 {
        (self.figures.rows() / self.polls * 50.0).round() / 50.0
    }

    fn print(&self, window: Duration) {
        let polls = self.polls;
        print_line(&format!(
            "    {:.0} a second, {:.1} µs of processor time each: {}; {:.2} connections",
            polls / window.as_secs_f64(),
            self.cpu_per_poll(),
            self.threads.per(polls),
            self.connections / polls
        ));
        print_line(&format!(
            "    for each poll {}, {:.0} bytes to the disk",
            self.figures.per(polls),
            self.bytes / polls
        ));
    }
}
