//! Some seconds of chaos over every shared store, and tests that the harness detects
//! flaws. Longer: `cargo run --profile bench -p sutler-crash -- chaos --store postgres`.

use crate::fixture::program;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use sutler_crash::chaos::{Chaos, ChaosReport, Fault, PlannedFault, ServerKind, run_chaos_round};
use sutler_crash::victim::Flaw;
use sutler_crash::{CheckResult, Violation};

/// The same faults for the same code, so that results do not depend on chance.
const SEED: u64 = 7;

/// Runs chaos over a server; `None` if there is no such server.
async fn run_chaos(make: ServerKind, seconds: u64) -> Option<CheckResult<ChaosReport>> {
    run_chaos_with(make, seconds, |_| (), Chaos::plan).await
}

async fn run_chaos_with(
    make: ServerKind,
    seconds: u64,
    change: fn(&mut Chaos),
    plan: fn(&Chaos) -> Vec<PlannedFault>,
) -> Option<CheckResult<ChaosReport>> {
    let starting = tokio::task::spawn_blocking(move || make.own());
    let server = Arc::new(starting.await.expect("a server")?);
    let dir = tempfile::tempdir().expect("a directory");
    let length = Duration::from_secs(seconds);
    let mut chaos = Chaos::new(program(), dir.path(), SEED, length);
    change(&mut chaos);
    let plan = plan(&chaos);
    let ended = run_chaos_round(&chaos, &plan, server).await;
    if chaos.flaw.is_none() {
        let summary = match &ended {
            Ok(report) => report.to_string(),
            Err(_) => plan.iter().map(|it| format!("{it}\n")).collect(),
        };
        let _ = writeln!(std::io::stderr(), "{make:?}, seed {SEED}: {summary}");
    }
    Some(ended.map_err(|violation| {
        // The data of a failed run is kept.
        let sentence = format!("{violation}; see {}", dir.keep().display());
        Violation::new(sentence)
    }))
}

#[track_caller]
fn assert_no_violation(ended: CheckResult<ChaosReport>) {
    let report = ended.unwrap_or_else(|violation| panic!("{violation}"));
    assert!(
        report.accepted >= 5 && report.instances >= 5,
        "there was hardly any load: {report}"
    );
    assert!(report.faults >= 5, "hardly anything was broken: {report}");
    assert!(
        report.undecided * 20 <= report.instances,
        "too little was judged: {report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_over_postgres_survive_all_faults() {
    if let Some(ended) = run_chaos(ServerKind::Postgres, 22).await {
        assert_no_violation(ended);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_over_mysql_survive_all_faults() {
    if let Some(ended) = run_chaos(ServerKind::Mysql, 9).await {
        assert_no_violation(ended);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_over_etcd_survive_all_faults() {
    if let Some(ended) = run_chaos(ServerKind::Etcd, 9).await {
        assert_no_violation(ended);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_over_mongodb_survive_all_faults() {
    if let Some(ended) = run_chaos(ServerKind::Mongodb, 9).await {
        assert_no_violation(ended);
    }
}

/// Every replica is paused for longer than its lease, one after the other.
fn only_pauses(_: &Chaos) -> Vec<PlannedFault> {
    let pause = |(at, replica)| PlannedFault {
        at,
        fault: Fault::Pause {
            replica,
            down: 3_600,
        },
    };
    [(1_200, 0), (2_400, 1), (3_600, 2)].map(pause).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_ignores_fences_is_noticed() {
    // Taken-over operations still run when the paused replica continues.
    let slow = |chaos: &mut Chaos| {
        chaos.flaw = Some(Flaw::IgnoreFence);
        (chaos.step, chaos.large) = (Duration::from_millis(800), 1);
    };
    // A replica that continues may notice by itself that it is too late, before it writes: sometimes.
    for _ in 0..3 {
        let ended = run_chaos_with(ServerKind::Postgres, 8, slow, only_pauses).await;
        let Some(ended) = ended else { return };
        if let Err(fault) = ended {
            let sentence = fault.to_string();
            assert!(sentence.contains("claim"), "{sentence}");
            return;
        }
    }
    panic!("claims were ignored, and nobody noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_acknowledges_unwritten_commits_is_noticed() {
    let forgetful = |chaos: &mut Chaos| chaos.flaw = Some(Flaw::AcknowledgeUnwritten);
    let ended = run_chaos_with(ServerKind::Postgres, 2, forgetful, |_| Vec::new()).await;
    let Some(ended) = ended else { return };
    let sentence = ended.expect_err("something was forgotten").to_string();
    assert!(sentence.contains("lost"), "{sentence}");
}
