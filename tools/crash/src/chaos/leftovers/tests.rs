//! One consistent history, and each rule violated once.

use super::{FinalState, check_leftovers};
use crate::chaos::executions::{Executions, KnownClaims};
use crate::chaos::external_world::ExternalWorld;
use crate::chaos::history::{Call, ObservedReply, RecordedCall, Spec};
use crate::chaos::operation_ends::EndedOperation;
use crate::platform::RequestMode;
use crate::violation::CheckResult;
use sutler_journal::{Outcome, Stats};

struct Case {
    history: Vec<RecordedCall>,
    left: FinalState,
    executions: Executions,
    world: ExternalWorld,
}

fn recorded(call: Call, observed: ObservedReply) -> RecordedCall {
    RecordedCall {
        instance: "one".to_owned(),
        call,
        mode: RequestMode::Async,
        replica: 0,
        began: 0,
        ended: 1,
        observed,
    }
}

fn row(id: &str, binding: Option<usize>, verb: &str) -> EndedOperation {
    EndedOperation {
        id: id.to_owned(),
        instance: "one".to_owned(),
        binding,
        verb: verb.to_owned(),
        outcome: Some(Outcome::Succeeded),
        takeovers: 0,
        fence: 1,
    }
}

/// One existing instance that was never bound.
fn one_instance() -> Case {
    let spec = Spec {
        size: 1,
        fails: false,
    };
    let mut case = Case {
        history: vec![recorded(
            Call::Provision(spec),
            ObservedReply::Accepted("p".to_owned()),
        )],
        left: FinalState {
            rows: vec![row("p", None, "provision")],
            stats: Stats {
                accepted: 1,
                terminal: 1,
                ..Stats::default()
            },
            ..FinalState::default()
        },
        executions: Executions::default(),
        world: ExternalWorld::default(),
    };
    case.left
        .lifecycle
        .insert("one".to_owned(), "live".to_owned());
    case.world.resources.insert("one".to_owned());
    case.executions.ended.insert("p".to_owned());
    case
}

fn check(it: &Case) -> CheckResult<()> {
    check_leftovers(&it.history, &it.left, &it.executions, &it.world)
}

#[track_caller]
fn broken(change: impl FnOnce(&mut Case), culprit: &str) {
    let mut case = one_instance();
    check(&case).expect("it adds up");
    change(&mut case);
    let sentence = check(&case).expect_err("a rule is broken").to_string();
    assert!(sentence.contains(culprit), "{sentence}");
}

#[test]
fn an_acknowledged_operation_that_is_not_there_is_noticed() {
    broken(|it| it.left.rows.clear(), "is lost");
    broken(|it| it.left.rows[0].verb = "update".to_owned(), "is lost");
}

#[test]
fn an_operation_that_is_not_finished_is_noticed() {
    broken(|it| it.left.rows[0].outcome = None, "stuck");
}

#[test]
fn an_operation_that_failed_without_a_reason_is_noticed() {
    let fail = |it: &mut Case| it.left.rows[0].outcome = Some(Outcome::Failed);
    broken(fail, "without a reason");
    let mut given_up = one_instance();
    fail(&mut given_up);
    (given_up.left.rows[0].takeovers, given_up.left.rows[0].fence) = (6, 7);
    check(&given_up).expect("it was given up");
}

#[test]
fn an_operation_that_was_given_up_too_early_is_noticed() {
    let given_up = |it: &mut Case| {
        it.left.rows[0].outcome = Some(Outcome::Failed);
        (it.left.rows[0].takeovers, it.left.rows[0].fence) = (6, 7);
    };
    let released = |it: &mut Case| {
        given_up(it);
        let (kept, released) = (0, [3].into());
        let known = KnownClaims { kept, released };
        it.executions.known_claims.insert("p".to_owned(), known);
    };
    broken(
        released,
        "taken over 6 times, and its 7 claims show at most 5",
    );
}

#[test]
fn an_end_that_is_forgotten_is_noticed() {
    broken(
        |it| it.executions.ended.extend(["q".to_owned()]),
        "ended, and is lost",
    );
}

#[test]
fn an_operation_without_a_request_is_noticed() {
    let more = |it: &mut Case| it.left.rows.push(row("q", None, "provision"));
    broken(more, "asked for at most 1");
    let unbind = |it: &mut Case| it.left.rows.push(row("q", Some(0), "unbind"));
    broken(unbind, "asked for at most 0");
}

#[test]
fn counts_that_do_not_add_up_are_noticed() {
    broken(|it| it.left.stats.accepted = 2, "add up");
}

#[test]
fn an_orphan_in_the_world_is_noticed() {
    broken(
        |it| it.world.resources.extend(["one/left".to_owned()]),
        "not removed",
    );
    broken(|it| it.left.lifecycle.clear(), "not removed");
}

#[test]
fn a_live_instance_without_a_resource_is_noticed() {
    broken(|it| it.world.resources.clear(), "never made");
}

/// The same instance, removed by an operation that ended like this, after so many takeovers.
fn removed_but_live(outcome: Outcome, takeovers: u32) -> Case {
    let mut case = one_instance();
    let mut deprovision = row("d", None, "deprovision");
    deprovision.outcome = Some(outcome);
    (deprovision.takeovers, deprovision.fence) = (takeovers, u64::from(takeovers) + 1);
    case.left.rows.push(deprovision);
    (case.left.stats.accepted, case.left.stats.terminal) = (2, 2);
    let accepted = ObservedReply::Accepted("d".to_owned());
    case.history.push(recorded(Call::Deprovision, accepted));
    case.world.resources.clear();
    case.world
        .removed_by
        .insert("one".to_owned(), ["d".to_owned()].into());
    case
}

#[test]
fn a_delete_that_is_given_up_may_have_removed_its_instance() {
    let given_up = removed_but_live(Outcome::Failed, 6);
    check(&given_up).expect("nobody knows how far its hook came");
}

#[test]
fn a_live_instance_that_was_removed_otherwise_is_noticed() {
    let succeeded = check(&removed_but_live(Outcome::Succeeded, 6)).expect_err("it is not live");
    let sentence = succeeded.to_string();
    assert!(
        sentence.contains("although d removed it and ended as Some(Succeeded)"),
        "{sentence}"
    );
    let mut twice = removed_but_live(Outcome::Failed, 6);
    let removers = twice.world.removed_by.get_mut("one").expect("it is there");
    removers.insert("unknown".to_owned());
    let sentence = check(&twice).expect_err("another removed it too");
    assert!(sentence.to_string().contains("although unknown removed it"));
}
