//! Requests over HTTP, each kind compared with its baselines.

use crate::RunArgs;
use crate::load::{self, Kind, LoadResult};
use crate::report::{median, print_line, ratio};
use crate::subject::{Server, Subject};
use std::path::Path;

use crate::load::BoxError;

/// One comparison: the requests, the baseline, and the target ratio.
struct Comparison {
    what: &'static str,
    kind: Kind,
    baseline: Subject,
    target: f64,
}

const COMPARISONS: [Comparison; 5] = [
    Comparison {
        what: "catalog / bare hyper",
        kind: Kind::Catalog,
        baseline: Subject::BareCatalog,
        target: 0.85,
    },
    Comparison {
        what: "last_operation / skeleton",
        kind: Kind::Poll,
        baseline: Subject::SkeletonPoll,
        target: 0.85,
    },
    Comparison {
        what: "last_operation / bare hyper",
        kind: Kind::Poll,
        baseline: Subject::BarePoll,
        target: 0.6,
    },
    Comparison {
        what: "sync provision / skeleton",
        kind: Kind::Provision,
        baseline: Subject::SkeletonProvision,
        target: 0.85,
    },
    Comparison {
        what: "sync provision / bare hyper",
        kind: Kind::Provision,
        baseline: Subject::BareProvision,
        target: 0.25,
    },
];

pub(crate) async fn measure(args: &RunArgs) -> Result<(), BoxError> {
    print_line("\n-- requests over HTTP, 64 connections from another process --");
    let dir = fresh_dir(&args.dir.join("http"))?;
    let list = dir.join("accepted.txt");
    let broker = Server::start(Subject::Broker, &dir).await?;
    load::spawn(
        Kind::Accept,
        broker.port,
        1.0,
        args.connections,
        Some(&list),
    )?;
    for comparison in COMPARISONS {
        let baseline = Server::start(comparison.baseline, &dir).await?;
        let mut ratios = Vec::new();
        let mut rates = (Vec::new(), Vec::new());
        let mut cpu = (Vec::new(), Vec::new());
        for pair in 0..args.pairs {
            let once = |server: &Server| {
                let before = server.cpu_micros();
                let seconds = args.seconds as f64;
                let measured = load::spawn(
                    comparison.kind,
                    server.port,
                    seconds,
                    args.connections,
                    Some(&list),
                );
                measured.map(|it| {
                    let cpu = (server.cpu_micros() - before) / (it.per_second * seconds);
                    (it, cpu)
                })
            };
            // The order alternates, so that a slowdown of the machine favours neither.
            let (ours, theirs): ((LoadResult, f64), (LoadResult, f64)) = if pair % 2 == 0 {
                let theirs = once(&baseline)?;
                (once(&broker)?, theirs)
            } else {
                (once(&broker)?, once(&baseline)?)
            };
            ratios.push(ours.0.per_second / theirs.0.per_second);
            rates.0.push(ours.0.per_second);
            rates.1.push(theirs.0.per_second);
            cpu.0.push(ours.1);
            cpu.1.push(theirs.1);
        }
        ratio(comparison.what, &ratios, comparison.target);
        print_line(&format!(
            "    {:.0} against {:.0} requests a second",
            median(&rates.0),
            median(&rates.1)
        ));
        let (ours, theirs) = (median(&cpu.0), median(&cpu.1));
        print_line(&format!(
            "    {ours:.1} against {theirs:.1} µs of the server's processor time, {:.2} ×",
            theirs / ours
        ));
    }
    syncs(args, broker.id(), broker.port);
    Ok(())
}

/// Counts fdatasync calls under load with strace, if it is installed.
fn syncs(args: &RunArgs, pid: u32, port: u16) {
    let output = args.dir.join("syncs.txt");
    let tracer = std::process::Command::new("strace")
        .args(["-f", "-c", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&output)
        .args(["-p", &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .spawn();
    let Ok(mut tracer) = tracer else {
        print_line("fsyncs per request: not counted, strace is missing");
        return;
    };
    std::thread::sleep(std::time::Duration::from_millis(500));
    let measured =
        load::spawn(Kind::Provision, port, 2.0, args.connections, None).unwrap_or_default();
    let _ = std::process::Command::new("kill")
        .args(["-INT", &tracer.id().to_string()])
        .status();
    let _ = tracer.wait();
    let text = std::fs::read_to_string(&output).unwrap_or_default();
    let total = text.lines().find(|line| line.contains("fdatasync"));
    let calls: f64 = total
        .and_then(|line| line.split_whitespace().nth(3))
        .and_then(|n| n.parse().ok())
        .unwrap_or(0.0);
    let requests = measured.per_second * 2.0;
    print_line(&format!(
        "fsyncs per synchronous provision with 64 connections (traced): {:.3}",
        calls / requests.max(1.0)
    ));
}

/// An empty directory.
pub(crate) fn fresh_dir(path: &Path) -> std::io::Result<std::path::PathBuf> {
    if path.exists() {
        std::fs::remove_dir_all(path)?;
    }
    std::fs::create_dir_all(path)?;
    Ok(path.to_owned())
}
