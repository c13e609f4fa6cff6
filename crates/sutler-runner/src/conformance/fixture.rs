//! Helpers of the cases: build a run from a script, watch it, wait for a status.

use super::Candidate;
use crate::run_result::RunResult;
use crate::run_spec::{RunName, RunSpec, Vars};
use crate::runner::{Exit, RunError, RunEvent, RunStatus, Runner};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_bundle::{Action, RunLimits};
use tokio::sync::mpsc;
use uuid::Uuid;

/// How long a promised event may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for the file `go`, which `Candidate::let_go` creates.
pub(super) const UNTIL_GO: &str = "while [ ! -e \"$SUTLER_RESULT_DIR/go\" ]; do sleep 0.05; done\n";

/// A run spec of a shell that runs this script.
pub(super) fn spec(candidate: &dyn Candidate, script: &str) -> RunSpec {
    let environment = BTreeMap::from([("SCRIPT".to_owned(), script.to_owned())]);
    let name = RunName {
        operation: Uuid::new_v4(),
        attempt: 1,
    };
    RunSpec {
        name,
        action: Action::Provision,
        runnable: candidate.shell(),
        vars: vars(json!({})),
        state: None,
        binding_state: None,
        secrets: Vec::new(),
        environment,
        labels: BTreeMap::from([("bundle".to_owned(), "conformance".to_owned())]),
        idempotency_key: format!("key-of-{}", name.operation.simple()),
        limits: RunLimits {
            deadline: TIMEOUT,
            memory: 256 << 20,
            ..RunLimits::default()
        },
    }
}

pub(super) fn vars(value: Value) -> Vars {
    match value {
        Value::Object(object) => Vars(object),
        _ => Vars::default(),
    }
}

/// Events and end of a run.
#[derive(Debug)]
pub(super) struct WatchedRun {
    pub(super) status: RunStatus,
    pub(super) output: String,
}

/// Watches a run to its end.
pub(super) async fn watch(runner: &Arc<dyn Runner>, name: RunName) -> WatchedRun {
    let (lines, mut events) = mpsc::channel(4);
    let watching = tokio::spawn({
        let runner = Arc::clone(runner);
        async move { tokio::time::timeout(TIMEOUT, runner.watch(name, lines)).await }
    });
    let mut output = Vec::new();
    while let Some(line) = events.recv().await {
        if let RunEvent::Output(bytes) = line {
            output.extend_from_slice(&bytes);
        }
    }
    let status = watching.await.expect("watching does not panic");
    WatchedRun {
        status: status
            .expect("a run ends in time")
            .expect("a run can be watched"),
        output: String::from_utf8_lossy(&output).into_owned(),
    }
}

/// Starts a run and watches it to its end.
pub(super) async fn run(candidate: &dyn Candidate, spec: &RunSpec) -> WatchedRun {
    let runner = candidate.runner().await;
    runner.start(spec).await.expect("started");
    watch(&runner, spec.name).await
}

/// Runs to the end with exit code 0, and reads the result.
pub(super) async fn run_and_read(
    candidate: &dyn Candidate,
    spec: &RunSpec,
) -> Result<RunResult, RunError> {
    let watched = run(candidate, spec).await;
    assert_eq!(
        watched.status,
        RunStatus::Finished(Exit::Code(0)),
        "{watched:?}"
    );
    candidate.runner().await.result(spec.name).await
}

/// Output of a run that ends by itself with 0.
pub(super) async fn run_for_output(candidate: &dyn Candidate, spec: &RunSpec) -> String {
    let watched = run(candidate, spec).await;
    assert_eq!(
        watched.status,
        RunStatus::Finished(Exit::Code(0)),
        "{watched:?}"
    );
    watched.output
}

/// Polls the status of a run until the condition holds.
pub(super) async fn status_until(
    runner: &Arc<dyn Runner>,
    name: RunName,
    wanted: impl Fn(&RunStatus) -> bool,
) -> RunStatus {
    let from = Instant::now();
    loop {
        let status = runner.status(name).await.expect("looked");
        if wanted(&status) {
            return status;
        }
        assert!(from.elapsed() < TIMEOUT, "still {status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Watches in the background until the output of a run contains this word: then it is certainly running.
pub(super) async fn output_until(runner: &Arc<dyn Runner>, name: RunName, word: &str) {
    let (lines, mut events) = mpsc::channel(4);
    let watching = tokio::spawn({
        let runner = Arc::clone(runner);
        async move { runner.watch(name, lines).await }
    });
    let mut output = String::new();
    let listen = async {
        while !output.contains(word) {
            match events.recv().await {
                Some(RunEvent::Output(bytes)) => output.push_str(&String::from_utf8_lossy(&bytes)),
                Some(RunEvent::Progress(_)) => {}
                None => break,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, listen)
        .await
        .expect("said in time");
    assert!(output.contains(word), "only {output:?} was said");
    watching.abort();
}

/// Waits until nothing of a run is left.
pub(super) async fn nothing_left_eventually(candidate: &dyn Candidate, name: RunName) {
    let from = Instant::now();
    loop {
        let left = candidate.leftovers_of(name).await;
        if left == 0 {
            return;
        }
        assert!(from.elapsed() < TIMEOUT, "{left} left of {name}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
