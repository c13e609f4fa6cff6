//! Cases: how a run ends by itself, at its deadline and when it is stopped.

use super::Candidate;
use super::fixture::{nothing_left_eventually, output_until, run, spec, status_until};
use crate::runner::{Exit, RunError, RunStatus};
use std::time::Duration;

/// Exit codes are reported unchanged.
pub async fn the_exit_code_of_the_entry_point_is_reported(candidate: &dyn Candidate) {
    for code in [0, 1, 8, 255] {
        let watched = run(candidate, &spec(candidate, &format!("exit {code}"))).await;
        assert_eq!(watched.status, RunStatus::Finished(Exit::Code(code)));
    }
}

/// A signal is reported as such, or as the code that a container engine has for it.
pub async fn a_signal_is_not_a_success(candidate: &dyn Candidate) {
    // Sent by a shell of its own: the first process of a container may not get it.
    let watched = run(candidate, &spec(candidate, "sh -c 'kill -KILL $$'")).await;
    let ended = matches!(
        watched.status,
        RunStatus::Finished(Exit::Signal(9) | Exit::Code(137))
    );
    assert!(ended, "{watched:?}");
}

/// Also without a watch, and if the run ignores the termination.
pub async fn a_deadline_ends_everything_the_run_started(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let mut spec = spec(candidate, "trap '' TERM; (sleep 1000 &) ; sleep 1000");
    spec.limits.deadline = Duration::from_millis(300);
    runner.start(&spec).await.expect("started");
    let status = status_until(&runner, spec.name, |status| *status != RunStatus::Running).await;
    assert_eq!(status, RunStatus::Finished(Exit::Deadline));
    nothing_left_eventually(candidate, spec.name).await;
}

/// The amount of output does not matter.
pub async fn a_flood_of_output_does_not_keep_a_run_from_its_deadline(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    // Enough writers that there is always more output.
    let mut spec = spec(candidate, "yes & yes & yes & yes & yes & yes & yes");
    spec.limits.deadline = Duration::from_millis(300);
    spec.limits.output = 100_000;
    runner.start(&spec).await.expect("started");
    let status = status_until(&runner, spec.name, |status| *status != RunStatus::Running).await;
    assert_eq!(status, RunStatus::Finished(Exit::Deadline));
    nothing_left_eventually(candidate, spec.name).await;
}

/// Including processes that left the session.
pub async fn a_stop_ends_everything_the_run_started(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let script =
        "trap 'echo told' TERM; (setsid sleep 1000 &) ; echo up; while :; do sleep 0.1; done";
    let spec = spec(candidate, script);
    runner.start(&spec).await.expect("started");
    output_until(&runner, spec.name, "up").await;
    runner.stop(spec.name).await.expect("stopped");
    assert_eq!(
        runner.status(spec.name).await.expect("looked"),
        RunStatus::Finished(Exit::Stopped)
    );
    nothing_left_eventually(candidate, spec.name).await;
    runner.stop(spec.name).await.expect("stopped already");
}

/// A daemon that a bundle starts is killed.
pub async fn leftover_processes_of_the_entry_point_are_ended(candidate: &dyn Candidate) {
    let spec = spec(candidate, "(setsid sleep 1000 &) ; (sleep 1000 &) ; exit 0");
    let watched = run(candidate, &spec).await;
    assert_eq!(watched.status, RunStatus::Finished(Exit::Code(0)));
    nothing_left_eventually(candidate, spec.name).await;
}

/// The reason is the error of the start, or of the run.
///
/// Regression: R31.
pub async fn what_cannot_be_run_is_refused_with_a_sentence(candidate: &dyn Candidate) {
    let runner = candidate.runner().await;
    let mut spec = spec(candidate, "exit 0");
    spec.runnable = candidate.missing();
    let sentence = match runner.start(&spec).await {
        Err(RunError::Refused(sentence)) => sentence,
        Err(other) => panic!("{other:?}"),
        Ok(()) => {
            let status =
                status_until(&runner, spec.name, |status| *status != RunStatus::Running).await;
            let failed = matches!(status, RunStatus::Finished(Exit::Code(125..=127)));
            assert!(failed, "{status:?}");
            let result = runner.result(spec.name).await.expect("read");
            result.error.expect("an error")
        }
    };
    assert!(sentence.ends_with('.') && sentence.len() > 40, "{sentence}");
    runner.remove(spec.name).await.expect("removed");
}
