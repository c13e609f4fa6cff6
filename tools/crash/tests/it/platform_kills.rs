//! Some kills of a platform, and tests that the harness detects flaws. All of them: `cargo run -p sutler-crash -- platform`.

use crate::fixture::program;
use std::io::Write as _;
use sutler_crash::CheckResult;
use sutler_crash::platform_kills::{
    CommitPoints, CommitPointsReport, all_scenarios, kill_at_commits,
};
use sutler_crash::victim::PlatformFlaw;

/// Of all commits and moments, one in so many.
const EVERY: u64 = 16;

fn points(dir: &tempfile::TempDir) -> CommitPoints {
    CommitPoints {
        program: program().to_owned(),
        dir: dir.path().to_owned(),
        only: String::new(),
        every: EVERY,
        second: 8,
        workers: 3,
        flaw: None,
    }
}

/// Kills a platform with a flaw in one scenario.
async fn with_flaw(flaw: PlatformFlaw, scenario: &str) -> CheckResult<CommitPointsReport> {
    let dir = tempfile::tempdir().expect("a directory");
    let points = CommitPoints {
        only: scenario.to_owned(),
        every: 1,
        second: 0,
        flaw: Some(flaw),
        ..points(&dir)
    };
    kill_at_commits(&points, |_| ()).await
}

#[track_caller]
fn assert_found(ended: CheckResult<CommitPointsReport>, sentence: &str) {
    let found = ended.expect_err("the flaw is not noticed").to_string();
    assert!(found.contains(sentence), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_killed_at_commits_of_every_verb_keeps_its_promises() {
    let dir = tempfile::tempdir().expect("a directory");
    let ended = kill_at_commits(&points(&dir), |_| ()).await;
    let report = ended.unwrap_or_else(|violation| panic!("{violation}; see {:?}", dir.keep()));
    for scenario in &report.scenarios {
        let _ = writeln!(std::io::stderr(), "{scenario}");
    }
    let _ = writeln!(std::io::stderr(), "{report}");
    assert_eq!(report.scenarios.len(), all_scenarios().len());
    assert!(report.deaths() >= 50, "points are missed: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_before_their_write_ahead_are_noticed() {
    let ended = with_flaw(PlatformFlaw::LateWriteAhead, "provision-async").await;
    assert_found(ended, "the platform does not know it when it dies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_are_acknowledged_and_forgotten_are_noticed() {
    // Which commit is forgotten depends on how many there were before.
    for scenario in ["update", "bind", "delete-over-create"] {
        if with_flaw(PlatformFlaw::AcknowledgeUnwritten, scenario)
            .await
            .is_err()
        {
            return;
        }
    }
    panic!("orders were forgotten, and nothing was noticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_identity_of_somebody_else_is_noticed() {
    let ended = with_flaw(PlatformFlaw::ForeignIdentity, "update-async").await;
    assert_found(ended, "was sent as Some(\"mallory\")");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_other_bytes_are_noticed() {
    let ended = with_flaw(PlatformFlaw::ChangedBytes, "provision-answer-lost").await;
    assert_found(ended, "sent again with other bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_sent_twice_are_noticed() {
    let ended = with_flaw(PlatformFlaw::SentTwice, "delete-async").await;
    assert_found(ended, "there was a reason for 1");
}
