//! Disks that fail or fill up, and processes that are killed.
//!
//! The faults are real: a tracer makes `fsync` fail, a small file system fills up, a process is
//! killed. Where a tool is missing the test prints that and passes, except where `CI` is set.

use crate::child::{COUNT, Child};
use crate::fixture::{directory, file, ids};
use std::io::Write;
use std::process::{Command, Stdio};
use sutler_store_sqlite::SqliteStore;

/// Whether a tool works here; prints a message if it does not.
fn works(tool: &[&str]) -> bool {
    let status_of_tool = Command::new(tool[0])
        .args(&tool[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let works = status_of_tool.is_ok_and(|status| status.success());
    assert!(
        works || std::env::var_os("CI").is_none(),
        "CI needs {}",
        tool[0]
    );
    if !works {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {tool:?} does not work here");
    }
    works
}

async fn commits_survive_failing_syncs(when: &str) -> Option<Vec<String>> {
    if !works(&["strace", "-qq", "-o", "/dev/null", "true"]) {
        return None;
    }
    let directory = directory();
    let inject = format!("inject=fsync,fdatasync:error=EIO:when={when}");
    let tracer = [
        "strace",
        "-qq",
        "-o",
        "/dev/null",
        "-f",
        "-e",
        "trace=fsync,fdatasync",
        "-e",
        &inject,
    ];
    let said = Child::start("persist", &directory, &tracer).finish();
    assert!(said.iter().any(|line| line == "all kept"), "{said:?}");
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    assert_eq!(ids(&store).await.len(), COUNT);
    Some(said)
}

#[tokio::test]
async fn after_a_failed_sync_the_file_is_reopened_and_a_repeat_resolves_the_commit() {
    if let Some(said) = commits_survive_failing_syncs("30").await {
        assert!(said.iter().any(|line| line == "unknown"), "{said:?}");
    }
}

#[tokio::test]
async fn while_syncs_fail_commits_are_refused_and_later_accepted() {
    if let Some(said) = commits_survive_failing_syncs("30..45").await {
        assert!(said.iter().any(|line| line == "unknown"), "{said:?}");
        assert!(said.iter().any(|line| line == "refused"), "{said:?}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_commits_until_there_is_space() {
    if !works(&["unshare", "-m", "true"]) {
        return;
    }
    let directory = directory();
    let mount = format!(
        "mount -t tmpfs -o size=1500k tmpfs {} && exec \"$@\"",
        directory.path().display()
    );
    let small = ["unshare", "-m", "sh", "-c", &mount, "sh"];
    let said = Child::start("fill", &directory, &small).finish();
    assert!(said.iter().any(|line| line.contains("full")), "{said:?}");
    assert!(said.iter().any(|line| line == "went on"), "{said:?}");
}

#[tokio::test]
async fn acknowledged_commits_survive_a_kill() {
    let directory = directory();
    let mut child = Child::start("count", &directory, &[]);
    child.line("kept 000200");
    child.kill();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    let found = ids(&store).await;
    assert!(found.len() > 200);
    let expected: Vec<String> = (0..found.len()).map(|n| format!("{n:06}")).collect();
    assert_eq!(found, expected, "every one, in order, none twice");
}
