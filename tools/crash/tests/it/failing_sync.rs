//! A disk whose syncs fail: clean refusals, nothing acknowledged is lost, and no use of the file until
//! it was opened again.

use crate::fixture::{VictimFixture, assert_clean, until};
use crate::requirements::can_trace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::Path;
use sutler_crash::{HttpClient, provision_body};

/// Fails every sync of the store's files from the n-th of a thread on, until the tracer ends.
fn failing_from(number: u32, dir: &Path) -> Vec<String> {
    let inject = format!("inject=fsync,fdatasync:error=EIO:when={number}+");
    let files = ["victim.db", "victim.db-wal"].map(|name| dir.join(name).display().to_string());
    let words = [
        "strace",
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fsync,fdatasync",
    ];
    let words = words
        .into_iter()
        .chain(["-e", &inject, "-P", &files[0], "-P", &files[1]]);
    words.map(str::to_owned).collect()
}

/// Ends the tracer: from now on syncs succeed. Another signal would be forwarded to the victim.
async fn end_tracer(harness: &VictimFixture) {
    let pid = harness.victim.pid().expect("a process");
    let tracer = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        line.and_then(|it| it.trim().parse::<i32>().ok())
            .and_then(Pid::from_raw)
    };
    let of_victim = tracer().expect("a tracer");
    kill_process(of_victim, Signal::KILL).expect("it was there");
    until("the tracer's end", async || tracer().is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_sync_gives_a_clean_503_and_loses_nothing_acknowledged() {
    if !can_trace("what a failing sync does") {
        return;
    }
    let mut harness =
        VictimFixture::new(|launch, dir| launch.wrapper = failing_from(20, dir)).await;
    let refused = harness.provision_until_refused(200).await;
    assert_clean(&refused);
    assert!(
        !harness.accepted.is_empty(),
        "nothing was accepted before the fault"
    );
    // Nothing is accepted while the file cannot be opened again, whatever the result of the next
    // sync.
    for number in 0..3 {
        let refused = harness.provision(&format!("refused-{number}")).await;
        assert_clean(&refused);
    }
    let mut waiting = HttpClient::to(harness.victim.address);
    let body = provision_body(&json!({ "size": 3 }));
    let path = "/v2/service_instances/waiting";
    let waited =
        tokio::spawn(async move { waiting.send("PUT", path, &body).await.expect("an answer") });
    end_tracer(&harness).await;
    harness.provision_until_accepted("after").await;
    harness.everything_accepted_succeeds().await;
    let waited = waited.await.expect("no panic");
    assert!([201, 503].contains(&waited.status), "{waited:?}");
    let mut harness = harness.again(|launch| launch.wrapper.clear()).await;
    harness.everything_accepted_succeeds().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_acknowledged_before_a_failing_sync_survive_a_kill() {
    if !can_trace("what a kill during failing syncs does") {
        return;
    }
    let mut harness =
        VictimFixture::new(|launch, dir| launch.wrapper = failing_from(30, dir)).await;
    let refused = harness.provision_until_refused(200).await;
    assert_clean(&refused);
    let mut harness = harness.again(|launch| launch.wrapper.clear()).await;
    harness.everything_accepted_succeeds().await;
    harness.provision_until_accepted("after").await;
    harness.everything_accepted_succeeds().await;
}
