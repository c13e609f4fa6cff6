//! Growth: the same requests to a platform with a thousand instances and to one with a million.

use super::PlatformArgs;
use super::broker_set::BrokerSet;
use super::fill::fill;
use super::requests::{RequestArgs, RequestKind};
use super::stub_brokers::QUICK_PLAN;
use super::verdicts::{Pairs, Verdicts};
use crate::http_pairs::fresh_dir;
use crate::load::{BoxError, LoadResult};
use crate::report::print_line;
use crate::subject::{Server, Subject};
use std::time::Duration;

/// The small size.
const FEW: usize = 1_000;
/// Few connections: this is about the cost of a request, not about queueing.
const CONNECTIONS: usize = 4;

pub(super) async fn measure(args: &PlatformArgs, verdicts: &mut Verdicts) -> Result<(), BoxError> {
    let (few, many) = (args.sized(100, FEW), args.instances);
    print_line(&format!("\n-- growth: {few} and {many} instances --"));
    let stub = Server::start(Subject::StubBrokers, &args.dir).await?;
    let brokers = BrokerSet::prompt(stub.port, args.sized(5, 100));
    let (few_dir, many_dir) = (
        fresh_dir(&args.dir.join("few"))?,
        fresh_dir(&args.dir.join("many"))?,
    );
    fill(&few_dir, &brokers, (few, QUICK_PLAN))?;
    fill(&many_dir, &brokers, (many, QUICK_PLAN))?;
    let small = Server::start(Subject::Platform, &few_dir).await?;
    let large = Server::start(Subject::Platform, &many_dir).await?;
    print_line(&format!(
        "    ready after {:.0} ms with {many}, {:.0} ms with {few}; {:.0} MB and {:.0} MB",
        large.ready.as_secs_f64() * 1e3,
        small.ready.as_secs_f64() * 1e3,
        large.resident_mb(),
        small.resident_mb()
    ));
    std::thread::sleep(Duration::from_secs(2));
    for (kind, what) in [
        (RequestKind::Get, "an instance"),
        (RequestKind::Page, "a page of 50"),
        (RequestKind::Accept, "a create, accepted"),
        (RequestKind::Create, "a create, until it is live"),
    ] {
        let (mut p50, mut p99) = (Pairs::default(), Pairs::default());
        for pair in 0..args.pairs {
            let once = |server: &Server, instances: usize| -> Result<LoadResult, BoxError> {
                let seconds = args.seconds as f64;
                let load = RequestArgs::creates(server.port, seconds, CONNECTIONS, brokers.count);
                load.of_kind(kind, instances).send()
            };
            let (ours, baseline) = if pair % 2 == 0 {
                let baseline = once(&small, few)?;
                (once(&large, many)?, baseline)
            } else {
                (once(&large, many)?, once(&small, few)?)
            };
            p50.add(ours.p50_us, baseline.p50_us);
            p99.add(ours.p99_us, baseline.p99_us);
        }
        verdicts.at_most(&format!("{what}: p99"), &p99, 1.2, "µs");
        verdicts.at_most(&format!("{what}: p50"), &p50, 1.2, "µs");
    }
    Ok(())
}
