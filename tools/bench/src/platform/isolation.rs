//! One broker that hangs, one that answers a byte a second and one whose breaker is open: what the users of the others see.
//!
//! Two platforms with as many brokers, one of them with these three. Each is stopped while the other one is measured, so
//! what the three cost is seen where they are.

use super::PlatformArgs;
use super::broker_set::BrokerSet;
use super::fill::fill;
use super::requests::{RequestArgs, request_creates};
use super::stub_brokers::{Behaviour, QUICK_PLAN, StubCounts};
use super::verdicts::{Pairs, Verdicts};
use crate::http_pairs::fresh_dir;
use crate::load::{BoxError, LoadResult};
use crate::report::print_line;
use crate::subject::{Server, Subject};
use std::time::{Duration, Instant};

/// Requests that occupy a broker that does not answer, at least.
const OCCUPIED: u64 = 32;
/// Connections of the load.
const CONNECTIONS: usize = 16;
/// Pause before a measurement, after its platform went on.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn measure(args: &PlatformArgs, verdicts: &mut Verdicts) -> Result<(), BoxError> {
    let count = args.sized(10, 100);
    print_line(&format!(
        "\n-- isolation: {count} brokers, one hangs, one drips, one is open --"
    ));
    let stub = Server::start(Subject::StubBrokers, &args.dir).await?;
    let all_prompt = BrokerSet::prompt(stub.port, count);
    let with_bad = BrokerSet {
        with_bad: true,
        ..all_prompt.clone()
    };
    let used = with_bad.prompt_count();
    let (dir, bad_dir) = (
        fresh_dir(&args.dir.join("prompt"))?,
        fresh_dir(&args.dir.join("with-bad"))?,
    );
    fill(&dir, &all_prompt, (0, QUICK_PLAN))?;
    fill(&bad_dir, &with_bad, (0, QUICK_PLAN))?;
    let baseline = Server::start(Subject::Platform, &dir).await?;
    let ours = Server::start(Subject::Platform, &bad_dir).await?;
    for broker in used..count {
        request_creates(ours.port, broker, args.sized(50, 300)).await?;
    }
    occupied(stub.port).await?;
    let (mut p50, mut p99, mut rate) = (Pairs::default(), Pairs::default(), Pairs::default());
    for pair in 0..args.pairs {
        let once = |measured: &Server, other: &Server| -> Result<LoadResult, BoxError> {
            other.pause()?;
            std::thread::sleep(SETTLED_AFTER);
            let seconds = args.seconds as f64;
            let sent = RequestArgs::creates(measured.port, seconds, CONNECTIONS, used).send();
            other.resume()?;
            sent
        };
        let (with, without) = if pair % 2 == 0 {
            let without = once(&baseline, &ours)?;
            (once(&ours, &baseline)?, without)
        } else {
            (once(&ours, &baseline)?, once(&baseline, &ours)?)
        };
        p50.add(with.p50_us, without.p50_us);
        p99.add(with.p99_us, without.p99_us);
        rate.add(with.per_second, without.per_second);
    }
    verdicts.at_most("creates through the others: p99", &p99, 1.2, "µs");
    verdicts.at_least("creates through the others: rate", &rate, 0.95, "a second");
    verdicts.at_most("creates through the others: p50", &p50, 1.2, "µs");
    Ok(())
}

/// Waits until the brokers that do not answer are occupied, and the one that refuses has been asked.
async fn occupied(stub: u16) -> Result<(), BoxError> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let counts = StubCounts::read(stub).await?;
        let is_occupied = counts.provisions(Behaviour::Hanging) >= OCCUPIED
            && counts.provisions(Behaviour::Dripping) >= OCCUPIED
            && counts.provisions(Behaviour::Refusing) > 0;
        if is_occupied {
            print_line(&format!(
                "    in progress: {} hang, {} drip; {} were refused before the breaker opened",
                counts.provisions(Behaviour::Hanging),
                counts.provisions(Behaviour::Dripping),
                counts.provisions(Behaviour::Refusing),
            ));
            return Ok(());
        }
        if Instant::now() > until {
            return Err("the brokers that do not answer were not occupied".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
