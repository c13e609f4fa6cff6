//! Some hundred kills, and tests that the harness detects violations.

use crate::fixture::program;
use crate::requirements::can_trace;
use std::io::Write;
use sutler_crash::{
    Launch, Platform, PlatformAction, RandomKills, RequestMode, Target, kill_at_every_point,
    kill_at_random, live_through,
};
use tokio::sync::watch;

/// Random kills in this short run.
const KILLS: u64 = 150;
/// Fewer would mean missed points: a life has more than thirty commits, each with five
/// moments.
const POINTS_MIN: u64 = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_at_any_commit_point_loses_nothing_and_repeats_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let report = kill_at_every_point(program(), dir.path(), 2).await;
    let report = report.unwrap_or_else(|violation| panic!("{violation}; see {:?}", dir.keep()));
    let _ = writeln!(std::io::stderr(), "{report}");
    assert!(
        report.kills >= POINTS_MIN,
        "only {} kills: points are missed",
        report.kills
    );
    assert!(
        report.repeats <= report.kills,
        "one step is under way at a time: {report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_at_random_under_load_loses_nothing_and_repeats_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let rounds = RandomKills {
        program: program().to_owned(),
        dir: dir.path().to_owned(),
        kills: KILLS,
        clients: 6,
        seed: u64::from(std::process::id()),
    };
    let report = kill_at_random(&rounds, |_| ()).await;
    let report = report.unwrap_or_else(|violation| panic!("{violation}; see {:?}", dir.keep()));
    let _ = writeln!(std::io::stderr(), "seed {}: {report}", rounds.seed);
    assert_eq!(report.kills, KILLS);
    assert!(
        report.acknowledged > 0 && report.lives > 0,
        "there was no load: {report}"
    );
    assert!(
        report.repeats <= report.kills * rounds.clients as u64,
        "{report}"
    );
}

/// Interval of kills in writes to the log, up to the last one that every life has.
const WRITES_STEP: usize = 11;
const WRITES_MAX: u32 = 150;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_between_two_writes_of_one_group_loses_nothing_and_repeats_nothing() {
    if !can_trace("what a kill in the middle of a group does") {
        return;
    }
    let mut kills = 0;
    for number in (5..WRITES_MAX).step_by(WRITES_STEP) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut launch = Launch::new(program(), dir.path());
        let inject = format!("inject=pwrite64:signal=SIGKILL:when={number}");
        let log = format!("{}-wal", launch.db.display());
        let words = [
            "strace",
            "-D",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=pwrite64",
        ];
        let words = words.into_iter().chain(["-P", &log, "-e", &inject]);
        launch.wrapper = words.map(str::to_owned).collect();
        let report = live_through(launch, |launch, _| launch.wrapper.clear()).await;
        let report = report.unwrap_or_else(|it| panic!("write {number}: {it}, {:?}", dir.keep()));
        kills += report.kills;
    }
    assert!(kills >= 10, "only {kills} kills: the victim was hardly hit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_harness_notices_a_store_that_was_set_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut launch = Launch::new(program(), dir.path());
    let (homes, home) = watch::channel(None);
    let announce = |launch: &Launch, address| {
        homes.send_replace(Some(Target {
            generation: launch.boot,
            address,
        }));
    };
    let victim = launch.start_ready().await.expect("a victim");
    announce(&launch, victim.address);
    let mut platform = Platform::new(home.clone(), "set-back".to_owned())
        .await
        .expect("ready");
    platform
        .perform(PlatformAction::Provision, RequestMode::Sync)
        .await
        .expect("provisioned");
    victim.stop().await.expect("drained");
    let earlier = dir.path().join("earlier.db");
    std::fs::copy(&launch.db, &earlier).expect("copied");

    let victim = launch.start_ready().await.expect("a victim");
    announce(&launch, victim.address);
    platform
        .perform(PlatformAction::Bind("own"), RequestMode::Sync)
        .await
        .expect("bound");
    victim.kill().await.expect("killed");
    std::fs::copy(&earlier, &launch.db).expect("set back");
    for ending in ["victim.db-wal", "victim.db-shm"] {
        std::fs::remove_file(dir.path().join(ending)).expect("removed");
    }

    let victim = launch.start_ready().await.expect("a victim");
    announce(&launch, victim.address);
    let noticed = platform
        .perform(PlatformAction::Update(7), RequestMode::Sync)
        .await;
    let sentence = noticed.expect_err("the binding is lost").to_string();
    assert!(sentence.contains("a fetch of"), "{sentence}");
}
