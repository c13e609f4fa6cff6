//! Lifecycles of instances, one after the other, until one of them has no kill.

use super::fixture::Fixture;
use super::kill_loop::Victim;
use super::platform::{ACTIONS, Platform};
use super::run_log::{self, RunRecord};
use serde_json::Value;
use std::collections::BTreeSet;

/// Limit against an endless loop; no action needs more lifecycles.
const LIFECYCLES_MAX: usize = 200;

/// The server that runs of the bundle change, and how its state is checked.
pub(super) trait ServiceUnderTest {
    /// Parameters of the provision and of the update.
    fn parameters(&self) -> [Value; 2];

    /// Counts the resources after an action, and tries the credentials of the last bind.
    fn check(&self, action: &str, credentials: &Value);

    /// Leftovers of runs.
    fn leftovers(&self) -> Vec<String>;

    /// Runs since the last call, as recorded by the runs themselves.
    fn take_runs(&self) -> Vec<RunRecord>;
}

/// Repeats the lifecycle until one reaches no step without an earlier kill.
pub(super) fn run_until_no_kill(
    mut fixture: Fixture,
    service: &dyn ServiceUnderTest,
    victim: Victim,
) {
    for number in 0..LIFECYCLES_MAX {
        let kills = run_lifecycle(&mut fixture, service, number);
        check_runs(victim, &service.take_runs(), kills);
        fixture.until_traces_end();
        if kills == 0 {
            fixture.close();
            return;
        }
    }
    panic!("there are always more steps");
}

/// Runs one lifecycle; returns the number of kills.
fn run_lifecycle(fixture: &mut Fixture, service: &dyn ServiceUnderTest, number: usize) -> u32 {
    let platform = Platform::new(fixture, format!("life-{number}"), service.parameters());
    let mut kills = 0;
    let mut credentials = Value::Null;
    for action in ACTIONS {
        fixture.kill_loop.begin(action);
        platform.until_done(fixture, action);
        fixture.until_nothing_is_left(&|| service.leftovers());
        kills += fixture.kill_loop.end();
        if action == "bind" {
            credentials = platform.credentials(fixture);
        }
        service.check(action, &credentials);
    }
    kills
}

/// Checks that every action ran, and only as often as necessary.
fn check_runs(victim: Victim, runs: &[RunRecord], kills: u32) {
    run_log::check(runs);
    for action in ACTIONS {
        let of_action: Vec<&RunRecord> = runs.iter().filter(|run| run.action == action).collect();
        let done = of_action.iter().filter(|run| run.exit == Some(0)).count();
        assert!(done > 0, "no {action} was done: {runs:#?}");
        let operations = of_action.iter().map(|run| &run.operation);
        let operations = operations.collect::<BTreeSet<_>>().len();
        // An update whose response was lost is sent again, and is another operation.
        let repeats = if action == "update" {
            kills as usize
        } else {
            0
        };
        assert!(
            operations <= 1 + repeats,
            "{action} more than once: {runs:#?}"
        );
        let again = of_action.iter().filter(|run| run.attempt > 1).count();
        match victim {
            Victim::Broker => assert_eq!(again, 0, "a run was made again: {runs:#?}"),
            Victim::Supervisor | Victim::Both => assert!(again <= 1, "{runs:#?}"),
        }
    }
}
