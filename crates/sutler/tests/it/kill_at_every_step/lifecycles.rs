//! Lives of instances, one after the other, until one of them passes unharmed.

use super::fixture::Fixture;
use super::kill_loop::Victim;
use super::platform::{ACTIONS, Platform};
use super::run_log::{self, RunRecord};
use serde_json::Value;
use std::collections::BTreeSet;

/// No action has so many steps that it takes more lives; if it seems so, something runs in circles.
const LIVES_MAX: usize = 200;

/// What runs change outside of the broker, and how it is seen there.
pub(super) trait World {
    /// What a provision and an update ask for.
    fn parameters(&self) -> [Value; 2];

    /// Counts what there is after an action, and tries the credentials of the last bind.
    fn check(&self, action: &str, credentials: &Value);

    /// What runs left there.
    fn left(&self) -> Vec<String>;

    /// The runs since the last time, by their own word.
    fn signed(&self) -> Vec<RunRecord>;
}

/// Leads lives until one comes to no step at which nobody was killed yet.
pub(super) fn lead(mut house: Fixture, world: &dyn World, victim: Victim) {
    for number in 0..LIVES_MAX {
        let kills = life(&mut house, world, number);
        check_runs(victim, &world.signed(), kills);
        house.until_traces_end();
        if kills == 0 {
            house.close();
            return;
        }
    }
    panic!("there are always more steps");
}

/// One life; how often somebody was killed.
fn life(house: &mut Fixture, world: &dyn World, number: usize) -> u32 {
    let platform = Platform::new(house, format!("life-{number}"), world.parameters());
    let mut kills = 0;
    let mut credentials = Value::Null;
    for action in ACTIONS {
        house.hunt.begin(action);
        platform.until_done(house, action);
        house.until_nothing_is_left(&|| world.left());
        kills += house.hunt.end();
        if action == "bind" {
            credentials = platform.credentials(house);
        }
        world.check(action, &credentials);
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
