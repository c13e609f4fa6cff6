//! Handwritten histories: valid ones that must be explained, and invalid ones that must not.

use super::{SearchEnd, explain};
use crate::chaos::history::{Call, ObservedReply, Progress, RecordedCall, Spec};
use crate::chaos::operation_ends::{EndedOperation, Names, OperationEnds};
use crate::platform::RequestMode;
use sutler_journal::Outcome::{self, Cancelled, Failed, Succeeded};

const SMALL: Spec = Spec {
    size: 1,
    fails: false,
};
const LARGE: Spec = Spec {
    size: 2,
    fails: false,
};

fn accepted(operation: &str) -> ObservedReply {
    ObservedReply::Accepted(operation.to_owned())
}

fn found(content: &str) -> ObservedReply {
    ObservedReply::Found(content.to_owned())
}

fn poll(operation: &str) -> Call {
    Call::Poll(None, operation.to_owned())
}

/// A request with the times of its start and response.
fn at(began: u64, ended: u64, call: Call, observed: ObservedReply) -> RecordedCall {
    RecordedCall {
        instance: "one".to_owned(),
        call,
        mode: RequestMode::Async,
        replica: 0,
        began,
        ended,
        observed,
    }
}

/// The same in synchronous mode.
fn waiting(began: u64, ended: u64, call: Call, observed: ObservedReply) -> RecordedCall {
    RecordedCall {
        mode: RequestMode::Sync,
        ..at(began, ended, call, observed)
    }
}

fn row(id: &str, binding: Option<usize>, verb: &str, outcome: Outcome) -> EndedOperation {
    EndedOperation {
        id: id.to_owned(),
        instance: "one".to_owned(),
        binding,
        verb: verb.to_owned(),
        outcome: Some(outcome),
        takeovers: 0,
        fence: 1,
    }
}

fn made() -> EndedOperation {
    row("p", None, "provision", Succeeded)
}

fn check(history: &[RecordedCall], rows: &[EndedOperation]) -> Result<SearchEnd, String> {
    let mut names = Names::default();
    let facts = OperationEnds::of(rows, &mut names);
    explain(history, &mut names, &facts).map_err(|violation| violation.to_string())
}

#[track_caller]
fn good(history: &[RecordedCall], rows: &[EndedOperation]) {
    assert_eq!(check(history, rows), Ok(SearchEnd::Explained));
}

#[track_caller]
fn bad(history: &[RecordedCall], rows: &[EndedOperation], culprit: &str) {
    let sentence = check(history, rows).expect_err("nothing explains this");
    assert!(sentence.contains(culprit), "{sentence}");
}

#[test]
fn a_complete_life_is_explained() {
    let rows = [
        made(),
        row("u", None, "update", Succeeded),
        row("b", Some(0), "bind", Succeeded),
        row("d", None, "deprovision", Succeeded),
        row("c", Some(0), "unbind", Succeeded),
    ];
    let history = [
        at(0, 1, Call::Provision(SMALL), accepted("p")),
        at(2, 3, Call::Provision(SMALL), accepted("p")),
        at(4, 5, poll("p"), ObservedReply::Polled(Progress::Running)),
        at(6, 7, Call::Update(2), ObservedReply::Busy),
        at(8, 9, poll("p"), ObservedReply::Polled(Progress::Succeeded)),
        at(10, 11, Call::Fetch, found("1")),
        at(12, 13, Call::Provision(LARGE), ObservedReply::Conflict),
        at(14, 15, Call::Update(2), accepted("u")),
        at(16, 17, Call::Fetch, ObservedReply::Busy),
        at(18, 19, Call::Fetch, found("2")),
        waiting(
            20,
            25,
            Call::Bind(0),
            ObservedReply::Done(Some("s".to_owned())),
        ),
        at(26, 27, Call::FetchBinding(0), found("s")),
        at(28, 29, Call::Deprovision, accepted("d")),
        at(30, 31, Call::Bind(1), ObservedReply::Busy),
        at(32, 33, Call::FetchBinding(0), ObservedReply::Missing),
        at(34, 35, Call::Fetch, ObservedReply::Missing),
        at(36, 37, Call::Deprovision, ObservedReply::Gone),
    ];
    good(&history, &rows);
}

#[test]
fn an_acknowledged_create_that_is_not_there_is_noticed() {
    let history = [
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        at(6, 7, Call::Fetch, ObservedReply::Missing),
    ];
    bad(&history, &[made()], "Fetch");
}

#[test]
fn an_acknowledged_delete_that_did_not_happen_is_noticed() {
    let history = [
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        waiting(6, 9, Call::Deprovision, ObservedReply::Done(None)),
        at(10, 11, Call::Fetch, found("1")),
    ];
    bad(
        &history,
        &[made(), row("d", None, "deprovision", Succeeded)],
        "Fetch",
    );
}

#[test]
fn a_lost_update_is_noticed() {
    let history = [
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        waiting(6, 9, Call::Update(2), ObservedReply::Done(None)),
        at(10, 11, Call::Fetch, found("1")),
    ];
    bad(
        &history,
        &[made(), row("u", None, "update", Succeeded)],
        "Fetch",
    );
}

#[test]
fn a_stale_read_after_a_newer_one_is_noticed() {
    let rows = [made(), row("u", None, "update", Succeeded)];
    let mut history = vec![
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        at(6, 30, Call::Update(2), ObservedReply::Unknown),
        at(10, 11, Call::Fetch, found("2")),
    ];
    good(&history, &rows);
    history.push(at(12, 13, Call::Fetch, found("1")));
    bad(&history, &rows, "Fetch");
}

#[test]
fn an_unknown_outcome_may_have_happened_or_not_and_also_late() {
    let begun = at(0, 9, Call::Provision(SMALL), ObservedReply::Unknown);
    let missing = at(10, 11, Call::Fetch, ObservedReply::Missing);
    let there = at(20, 21, Call::Fetch, found("1"));
    good(std::slice::from_ref(&begun), &[]);
    good(&[begun.clone(), missing.clone()], &[]);
    good(&[begun, missing.clone(), there.clone()], &[made()]);
    // A resource that was never requested cannot exist.
    bad(&[missing, there], &[made()], "Fetch");
}

#[test]
fn many_unknown_outcomes_are_decided() {
    let mut history = Vec::new();
    for n in 0..60 {
        let call = match n % 4 {
            0 => Call::Provision(SMALL),
            1 => Call::Update(2),
            2 => Call::Bind(0),
            _ => Call::Deprovision,
        };
        history.push(at(n, n + 9, call, ObservedReply::Unknown));
    }
    let rows = [
        made(),
        row("u", None, "update", Succeeded),
        row("b", Some(0), "bind", Succeeded),
        row("c", Some(0), "unbind", Succeeded),
        row("d", None, "deprovision", Succeeded),
    ];
    history.push(at(100, 101, Call::Fetch, found("2")));
    good(&history, &rows);
    history.push(at(102, 103, Call::Fetch, found("7")));
    bad(&history, &rows, "Fetch");
}

#[test]
fn a_concurrently_repeated_request_starts_one_operation() {
    let both = |first: &str, second: &str| {
        [
            at(0, 9, Call::Provision(SMALL), accepted(first)),
            at(1, 8, Call::Provision(SMALL), accepted(second)),
        ]
    };
    good(&both("p", "p"), &[made()]);
    let rows = [made(), row("q", None, "provision", Succeeded)];
    bad(&both("p", "q"), &rows, "Provision");
}

#[test]
fn two_replicas_that_accept_one_id_for_different_requests_are_noticed() {
    let rows = [made(), row("q", None, "provision", Succeeded)];
    let history = [
        at(0, 9, Call::Provision(SMALL), accepted("p")),
        at(1, 8, Call::Provision(LARGE), accepted("q")),
    ];
    bad(&history, &rows, "Provision");
}

#[test]
fn a_binding_to_an_instance_that_is_being_deleted_is_noticed() {
    let rows = [
        made(),
        row("d", None, "deprovision", Succeeded),
        row("b", Some(0), "bind", Succeeded),
    ];
    let history = [
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        at(6, 7, Call::Deprovision, accepted("d")),
        at(8, 9, Call::Bind(0), accepted("b")),
    ];
    bad(&history, &rows, "Bind");
}

#[test]
fn other_credentials_than_before_are_noticed() {
    let rows = [made(), row("b", Some(0), "bind", Succeeded)];
    let history = [
        waiting(0, 5, Call::Provision(SMALL), ObservedReply::Done(None)),
        waiting(
            6,
            9,
            Call::Bind(0),
            ObservedReply::Done(Some("s".to_owned())),
        ),
        at(10, 11, Call::FetchBinding(0), found("t")),
    ];
    bad(&history, &rows, "FetchBinding");
}

#[test]
fn an_operation_that_ended_and_runs_again_is_noticed() {
    let history = [
        at(0, 1, Call::Provision(SMALL), accepted("p")),
        at(2, 3, poll("p"), ObservedReply::Polled(Progress::Succeeded)),
        at(4, 5, poll("p"), ObservedReply::Polled(Progress::Running)),
    ];
    bad(&history, &[made()], "Poll");
}

#[test]
fn a_delete_over_a_create_ends_both_and_leaves_nothing() {
    let rows = [
        row("p", None, "provision", Cancelled),
        row("d", None, "deprovision", Succeeded),
    ];
    let mut history = vec![
        at(0, 1, Call::Provision(SMALL), accepted("p")),
        at(2, 3, Call::Deprovision, accepted("d")),
        at(4, 5, poll("p"), ObservedReply::Polled(Progress::Running)),
        at(6, 7, poll("d"), ObservedReply::Polled(Progress::Running)),
        at(8, 9, poll("p"), ObservedReply::Polled(Progress::Failed)),
        at(
            10,
            11,
            poll("d"),
            ObservedReply::Polled(Progress::Succeeded),
        ),
    ];
    good(&history, &rows);
    history.push(at(12, 13, Call::Fetch, found("1")));
    bad(&history, &rows, "Fetch");
}

#[test]
fn a_create_that_failed_is_not_there_and_can_be_repeated() {
    let fails = Spec {
        size: 1,
        fails: true,
    };
    let rows = [
        row("p", None, "provision", Failed),
        row("q", None, "provision", Succeeded),
    ];
    let mut history = vec![
        at(0, 1, Call::Provision(fails), accepted("p")),
        at(2, 3, poll("p"), ObservedReply::Polled(Progress::Failed)),
        at(4, 5, Call::Fetch, ObservedReply::Missing),
        at(6, 7, Call::Provision(SMALL), accepted("q")),
        at(8, 9, Call::Fetch, found("1")),
    ];
    good(&history, &rows);
    history.truncate(3);
    history.push(at(6, 7, Call::Fetch, found("1")));
    bad(&history, &rows, "Fetch");
}

#[test]
fn an_answer_that_no_such_request_may_get_is_noticed() {
    let unexpected = ObservedReply::Unexpected("418".to_owned());
    bad(&[at(0, 1, Call::Fetch, unexpected)], &[], "418");
    let history = [waiting(0, 1, Call::Provision(SMALL), accepted("p"))];
    bad(&history, &[made()], "Provision");
}
