//! Lives of instances, one after the other, until one of them passes unharmed.

use super::fixture::Fixture;
use super::kill_loop::Victim;
use super::platform::{ACTIONS, Platform};
use super::run_log::{self, RunRecord};
use serde_json::Value;
use std::collections::BTreeSet;

/// No action has so many steps that it takes more lives; if it seems so, something runs in circles.
const LIFECYCLES_MAX: usize = 200;

/// What runs change outside of the broker, and how it is seen there.
pub(super) trait ServiceUnderTest {
    /// What a provision and an update ask for.
    fn parameters(&self) -> [Value; 2];

    /// Counts what there is after an action, and tries the credentials of the last bind.
    fn check(&self, action: &str, credentials: &Value);

    /// What runs left there.
    fn leftovers(&self) -> Vec<String>;

    /// The runs since the last time, by their own word.
    fn take_runs(&self) -> Vec<RunRecord>;
}

/// Leads lives until one comes to no step at which nobody was killed yet.
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

/// One life; how often somebody was killed.
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

/// Every action was run, and only as often as it had to be.
fn check_runs(victim: Victim, runs: &[RunRecord], kills: u32) {
    run_log::check(runs);
    for action in ACTIONS {
        let of_action: Vec<&RunRecord> = runs.iter().filter(|run| run.action == action).collect();
        let done = of_action.iter().filter(|run| run.exit == Some(0)).count();
        assert!(done > 0, "no {action} was done: {runs:#?}");
        let operations = of_action.iter().map(|run| &run.operation);
        let operations = operations.collect::<BTreeSet<_>>().len();
        // An update that was done before its answer was heard is asked for again, and is another operation.
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
