//! Crash test: a real broker, a real bundle and a real server, and a SIGKILL at every step.
//!
//! Steps are not sampled. The broker and all processes it starts run under a tracer
//! (`kill_at_every_step/traced_broker.rs`). Every call with an effect that a later process can observe is a
//! step (`kill_at_every_step/syscall_steps.rs`), and a process that reaches a step at which nothing was
//! killed before is killed there (`kill_at_every_step/kill_loop.rs`). A lifecycle
//! (`kill_at_every_step/lifecycles.rs`) takes an instance from provision to deprovision as a platform does
//! (`kill_at_every_step/platform.rs`). Its effects are counted in the server and in a log that every run
//! writes to (`kill_at_every_step/run_log.rs`). When a whole lifecycle reaches no new step, there was a kill
//! at every step.
//!
//! `SUTLER_TEST_KILLS=all` also kills at every step of every recovery, and at each removal of a file.

mod fixture;
mod kill_loop;
mod lifecycles;
mod platform;
mod postgres_bundle;
mod redis_bundle;
mod run_log;
mod syscall_steps;
mod traced_broker;

use kill_loop::{Coverage, Victim};
use std::sync::Arc;
use sutler_servers::print_line;

/// Number of concurrent lifecycles.
const WORKERS: usize = 2;

/// Kills at every step, in several concurrent lifecycles.
fn kill_at_every_step(victim: Victim, least: usize, run: fn(Victim, &Arc<Coverage>)) {
    let coverage = Arc::new(Coverage::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            let coverage = coverage.clone();
            scope.spawn(move || run(victim, &coverage));
        }
    });
    print_line(&coverage.report(victim));
    for action in platform::ACTIONS {
        let kills = coverage.kills_during(action);
        assert!(kills >= least, "only {kills} kills during {action}");
    }
}

/// Runs the bundle as processes.
fn kill_processes(victim: Victim, least: usize) {
    if traced_broker::can_trace() && postgres_bundle::is_available() {
        kill_at_every_step(victim, least, postgres_bundle::run_all);
    }
}

/// Regression: R6, R8.
#[test]
fn a_broker_killed_at_every_step_runs_every_action_once_and_loses_nothing() {
    kill_processes(Victim::Broker, 18);
}

#[test]
fn a_run_whose_supervisor_is_killed_at_any_step_is_ended_and_run_again() {
    kill_processes(Victim::Supervisor, 6);
}

#[test]
fn a_broker_and_a_supervisor_killed_together_leave_nothing_behind_and_skip_nothing() {
    kill_processes(Victim::Both, 6);
}

/// Regression: R6, R8.
#[test]
fn a_broker_killed_at_every_step_makes_one_container_for_every_action_and_leaves_none() {
    if traced_broker::can_trace() && redis_bundle::is_available() {
        kill_at_every_step(Victim::Broker, 12, redis_bundle::run_all);
    }
}
