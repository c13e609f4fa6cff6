//! Responses are sent after the sync: SIGKILL alone does not detect a missing sync, so system calls are traced.

use crate::fixture::{VictimFixture, until};
use crate::requirements::can_trace;
use serde_json::{Value, json};
use std::path::Path;
use sutler_crash::{
    PLAN, SERVICE, TRACER, TraceReport, ends_with_kill_of, provision_body, read_trace,
};

/// Changes in the sequence below.
const CHANGES: usize = 6;

/// Sends one change after the other, with nothing else in progress, and reads the trace.
async fn trace_of_single_requests(extra: &[&str]) -> TraceReport {
    let mut harness = VictimFixture::new(|launch, dir| {
        launch.wrapper = TRACER.iter().map(|it| (*it).to_owned()).collect();
        launch.wrapper.push(dir.join("trace").display().to_string());
        launch.extra = extra.iter().map(|it| (*it).to_owned()).collect();
        launch
            .extra
            .extend(["--gate".to_owned(), dir.join("gate").display().to_string()]);
    })
    .await;
    let (trace, gate) = (
        harness.dir.path().join("trace"),
        harness.dir.path().join("gate"),
    );
    let ids = format!("service_id={SERVICE}&plan_id={PLAN}");
    let plain = provision_body(&json!({ "size": 1 }));
    let gated = provision_body(&json!({ "gated": true }));
    let bind = json!({ "service_id": SERVICE, "plan_id": PLAN });
    let update = json!({ "service_id": SERVICE, "parameters": { "size": 2 } });
    let statuses = [
        harness.send("PUT", "a", &plain).await.status,
        harness
            .send("PUT", "a/service_bindings/b", &bind)
            .await
            .status,
        harness
            .send("PUT", "late?accepts_incomplete=true", &gated)
            .await
            .status,
    ];
    assert_eq!(statuses, [201, 201, 202]);
    // It starts only now that its 202 has arrived, and ends before the next request.
    std::fs::write(&gate, "open").expect("written");
    let ledger = harness.launch.ledger.clone();
    until("the end of the late provision", async || {
        done_in(&ledger) == 3
    })
    .await;
    let statuses = [
        harness.send("PATCH", "a", &update).await.status,
        harness
            .send(
                "DELETE",
                &format!("a/service_bindings/b?{ids}"),
                &Value::Null,
            )
            .await
            .status,
        harness
            .send("DELETE", &format!("a?{ids}"), &Value::Null)
            .await
            .status,
    ];
    assert_eq!(statuses, [200, 200, 200]);
    let pid = harness.victim.pid().expect("a process");
    harness.victim.kill().await.expect("it was alive");
    until("the end of the trace", async || {
        ends_with_kill_of(&read(&trace), pid)
    })
    .await;
    read_trace(&read(&trace))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn done_in(ledger: &Path) -> usize {
    read(ledger)
        .lines()
        .filter(|line| line.starts_with("done "))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_leaves_before_the_sync_that_covers_its_commit_has_returned() {
    if !can_trace("that no answer leaves before its sync") {
        return;
    }
    let report = trace_of_single_requests(&[]).await;
    assert_eq!(report.answers.len(), CHANGES, "{report:?}");
    assert_eq!(
        report.early(),
        Vec::<&sutler_crash::SentAnswer>::new(),
        "{report:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_before_their_sync_are_noticed_when_the_store_runs_with_normal() {
    if !can_trace("that early answers are noticed") {
        return;
    }
    let report = trace_of_single_requests(&["--answer-before-sync"]).await;
    assert_eq!(report.answers.len(), CHANGES, "{report:?}");
    assert_eq!(report.early().len(), CHANGES, "{report:?}");
}
