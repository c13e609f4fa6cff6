//! Cases: start, adoption after a restart, loss, removal and listing of runs.

use super::Candidate;
use super::fixture::{
    UNTIL_GO, nothing_left_eventually, output_until, run, spec, status_until, watch,
};
use crate::run_spec::RunName;
use crate::runner::{Exit, RunError, RunStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

/// Its name is unknown.
pub async fn a_run_that_was_not_started_is_reported_as_never_started(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let name = RunName {
        operation: Uuid::new_v4(),
        attempt: 1,
    };
    assert_eq!(
        runner.status(name).await.expect("looked"),
        RunStatus::NeverStarted
    );
    let (lines, _) = mpsc::channel(1);
    assert_eq!(
        runner.watch(name, lines).await.expect("watched"),
        RunStatus::NeverStarted
    );
    runner.stop(name).await.expect("nothing to stop");
    runner.remove(name).await.expect("nothing to remove");
}

/// The status changes in order.
pub async fn a_run_is_first_running_and_then_finished(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let spec = spec(candidate, UNTIL_GO);
    runner.start(&spec).await.expect("started");
    assert_eq!(
        runner.status(spec.name).await.expect("looked"),
        RunStatus::Running
    );
    let early = runner.result(spec.name).await;
    assert!(matches!(early, Err(RunError::Refused(_))), "{early:?}");
    candidate.create_go_file(spec.name).await;
    let done = RunStatus::Finished(Exit::Code(0));
    assert_eq!(watch(&runner, spec.name).await.status, done);
    assert_eq!(runner.status(spec.name).await.expect("looked"), done);
}

/// Any number of concurrent starts, by any number of brokers.
pub async fn starting_a_run_again_changes_nothing(candidate: &dyn Candidate) {
    let spec = spec(candidate, &format!("echo once\n{UNTIL_GO}"));
    let mut starts = Vec::new();
    for _ in 0..4 {
        let (runner, spec) = (candidate.runner().await, spec.clone());
        starts.push(tokio::spawn(async move { runner.start(&spec).await }));
    }
    for start in starts {
        start.await.expect("no panic").expect("started");
    }
    let runner = candidate.runner().await;
    runner.start(&spec).await.expect("already there");
    candidate.create_go_file(spec.name).await;
    let watched = watch(&runner, spec.name).await;
    assert_eq!(watched.output.matches("once").count(), 1, "{watched:?}");
    runner.start(&spec).await.expect("already ended");
    assert_eq!(
        runner.status(spec.name).await.expect("looked"),
        watched.status
    );
}

/// The broker that started it has ended.
pub async fn another_broker_adopts_a_run_and_gets_its_output_from_the_beginning(
    candidate: &dyn Candidate,
) {
    let first = candidate.runner().await;
    let spec = spec(
        candidate,
        &format!("echo begun\n{UNTIL_GO}echo over\nexit 3"),
    );
    first.start(&spec).await.expect("started");
    output_until(&first, spec.name, "begun").await;
    drop(first);
    let second = candidate.runner().await;
    assert_eq!(
        second.status(spec.name).await.expect("looked"),
        RunStatus::Running
    );
    candidate.create_go_file(spec.name).await;
    let watched = watch(&second, spec.name).await;
    assert_eq!(watched.status, RunStatus::Finished(Exit::Code(3)));
    assert_eq!(watched.output, "begun\nover\n");
}

/// It ended while no broker was running.
pub async fn a_run_that_ended_unwatched_is_read_later(candidate: &dyn Candidate) {
    let first = candidate.runner().await;
    let spec = spec(
        candidate,
        "echo '{\"k\":\"v\"}' >\"$SUTLER_RESULT_DIR/state.json\"; echo said",
    );
    first.start(&spec).await.expect("started");
    status_until(&first, spec.name, |status| *status != RunStatus::Running).await;
    drop(first);
    let second = candidate.runner().await;
    let watched = watch(&second, spec.name).await;
    assert_eq!(
        (watched.status, watched.output.as_str()),
        (RunStatus::Finished(Exit::Code(0)), "said\n")
    );
    let result = second.result(spec.name).await.expect("read");
    assert_eq!(result.state.expect("state").0["k"], "v");
}

/// Its exit is not guessed.
pub async fn a_run_with_an_unknown_end_is_lost_and_leaves_nothing_running(
    candidate: &dyn Candidate,
) {
    let runner = candidate.runner().await;
    let script = "(sleep 1000 &) ; echo under way; sleep 1000";
    let spec = spec(candidate, script);
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "under way").await;
    candidate.lose(spec.name).await;
    let status = status_until(&runner, spec.name, |status| *status != RunStatus::Running).await;
    assert!(
        matches!(&status, RunStatus::Lost(why) if why.ends_with('.')),
        "{status:?}"
    );
    nothing_left_eventually(candidate, spec.name).await;
    assert!(matches!(
        watch(&runner, spec.name).await.status,
        RunStatus::Lost(_)
    ));
}

/// So that another attempt is safe.
pub async fn a_stop_of_a_lost_run_leaves_nothing_running(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let spec = spec(candidate, "(sleep 1000 &) ; echo under way; sleep 1000");
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "under way").await;
    candidate.lose(spec.name).await;
    runner.stop(spec.name).await.expect("stopped");
    assert_eq!(candidate.leftovers_of(spec.name).await, 0);
    let status = runner.status(spec.name).await.expect("looked");
    assert!(matches!(status, RunStatus::Lost(_)), "{status:?}");
}

/// It runs, but its result cannot be read: another attempt at the same time would create everything twice.
pub async fn a_stop_of_a_run_whose_directory_is_gone_leaves_nothing_running(
    candidate: &dyn Candidate,
) {
    let runner = candidate.runner().await;
    let script = "(setsid sleep 1000 &) ; echo under way; sleep 1000";
    let spec = spec(candidate, script);
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "under way").await;
    candidate.remove_run_dir(spec.name).await;
    runner.stop(spec.name).await.expect("stopped");
    // The call fails while the run is running, so it has ended.
    runner.remove(spec.name).await.expect("removed");
    assert_eq!(candidate.leftovers_of(spec.name).await, 0);
}

/// A cancelled operation does not wait for the start of its run.
pub async fn a_stop_ends_an_abandoned_start(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    for patience_ms in [0, 2, 20, 200] {
        let spec = spec(candidate, "sleep 1000");
        let patience = Duration::from_millis(patience_ms);
        let waited = tokio::time::timeout(patience, runner.start(&spec)).await;
        runner.stop(spec.name).await.expect("stopped");
        let status = runner.status(spec.name).await.expect("looked");
        let ended = matches!(
            status,
            RunStatus::NeverStarted | RunStatus::Finished(Exit::Stopped)
        );
        assert!(ended, "{waited:?} {status:?}");
        runner.remove(spec.name).await.expect("removed");
        assert_eq!(candidate.leftovers_of(spec.name).await, 0);
    }
}

/// A broker that is killed while it creates or removes a run leaves files with secrets.
pub async fn leftovers_of_interrupted_runs_are_swept_by_the_next_broker(candidate: &dyn Candidate) {
    let name = RunName {
        operation: Uuid::new_v4(),
        attempt: 1,
    };
    candidate.runner().await;
    candidate.leave_interrupted_runs().await;
    assert_ne!(candidate.leftovers_of(name).await, 0);
    candidate.runner().await;
    assert_eq!(candidate.leftovers_of(name).await, 0);
}

/// Neither names nor files are left.
pub async fn a_removed_run_is_not_listed_and_leaves_nothing(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let done = spec(candidate, "mkdir -p \"$HOME/a/b\"; chmod 0 \"$HOME/a\"");
    let under_way = spec(candidate, UNTIL_GO);
    run(candidate, &done).await;
    runner.start(&under_way).await.expect("started");
    let listed = runner.list().await.expect("listed");
    assert!(
        listed.contains(&done.name) && listed.contains(&under_way.name),
        "{listed:?}"
    );
    runner.remove(done.name).await.expect("removed");
    runner.remove(done.name).await.expect("removed again");
    let refused = runner.remove(under_way.name).await;
    assert!(matches!(refused, Err(RunError::Refused(_))), "{refused:?}");
    assert_eq!(runner.list().await.expect("listed"), [under_way.name]);
    assert_eq!(
        runner.status(done.name).await.expect("looked"),
        RunStatus::NeverStarted
    );
    nothing_left_eventually(candidate, done.name).await;
    runner.stop(under_way.name).await.expect("stopped");
    runner.remove(under_way.name).await.expect("removed");
    assert!(runner.list().await.expect("listed").is_empty());
}

/// Slow readers, and none.
pub async fn a_missing_reader_does_not_stop_a_run(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let spec = spec(
        candidate,
        "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done",
    );
    runner.start(&spec).await.expect("started");
    let (deaf, ears) = mpsc::channel(1);
    drop(ears);
    let status = runner.watch(spec.name, deaf).await.expect("watched");
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
    let watched = watch(&Arc::clone(&runner), spec.name).await;
    assert!(
        watched.output.ends_with("\n1999\n"),
        "{}",
        watched.output.len()
    );
}
