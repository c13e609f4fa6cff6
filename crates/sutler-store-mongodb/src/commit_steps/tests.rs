//! Steps of commits and their evaluation, without a server.

use super::{CommitSteps, StepResult, StepRole, StepsResult};
use bytes::Bytes;
use mongodb::bson::Document as Bsons;
use sutler_journal::{
    Commit, CommitId, Due, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue,
    Realm, StaleItem, Start, Term, Version, WorkerId, Write,
};
use uuid::Uuid;

const THING: Kind = Kind::new("thing");

fn key(id: &str) -> Key {
    let realm = Realm::new("test").expect("a realm");
    Key::new(&realm, THING, &[id]).expect("a key")
}

fn body() -> Bytes {
    Bytes::from_static(b"body")
}

fn read() -> Version {
    Version(CommitId(Uuid::from_u128(7)))
}

fn plan(commit: &Commit) -> CommitSteps {
    CommitSteps::of(commit, |_, _| WorkerId(Uuid::nil())).expect("a plan")
}

/// Effect of each step, and the part of the commit it belongs to.
fn outline(commit: &Commit) -> Vec<(String, StepRole)> {
    let verb = |wire_form: &Bsons| wire_form.keys().next().cloned().unwrap_or_default();
    let steps = plan(commit).steps;
    steps
        .iter()
        .map(|it| (verb(&it.wire_form), it.role))
        .collect()
}

fn check(commit: &Commit, expected: &[(&str, StepRole)]) {
    let found = outline(commit);
    let found: Vec<(&str, StepRole)> = found.iter().map(|(verb, role)| (&**verb, *role)).collect();
    assert_eq!(found, expected, "{commit:?}");
}

const RECORD: (&str, StepRole) = ("update", StepRole::Record);

fn must(n: usize) -> StepRole {
    StepRole::Must(StaleItem::Expect(n))
}

fn fits(n: usize) -> StepRole {
    StepRole::Must(StaleItem::Write(n))
}

#[test]
fn a_write_and_its_expectation_are_one_step() {
    let made = Commit::new().insert(key("a"), Vec::new(), body());
    check(&made, &[RECORD, ("insert", must(0))]);
    let replaced = Commit::new().replace(key("a"), read(), Vec::new(), body());
    check(&replaced, &[RECORD, ("update", must(0))]);
    let removed = Commit::new().remove(key("a"), read());
    check(&removed, &[RECORD, ("delete", must(0))]);
}

#[test]
fn a_read_document_is_written_to_detect_conflicts() {
    let unchanged = Commit::new().unchanged(key("a"), read());
    check(&unchanged, &[RECORD, ("update", must(0))]);
    let absent = Commit::new().absent(key("a"));
    check(
        &absent,
        &[RECORD, ("insert", must(0)), ("delete", StepRole::Whatever)],
    );
}

#[test]
fn a_claim_is_a_lease_that_lives_and_an_operation_that_runs() {
    let id = OperationId(Uuid::nil());
    let memo = Commit::new()
        .advance(id, Next::Same, None, None)
        .fenced(id, Fence(3));
    check(
        &memo,
        &[
            RECORD,
            ("update", must(0)),
            ("update", must(0)),
            ("update", fits(0)),
        ],
    );
}

#[test]
fn contradicting_expectations_are_each_checked() {
    let both = Commit::new()
        .insert(key("a"), Vec::new(), body())
        .unchanged(key("a"), read());
    let steps = outline(&both);
    let roles: Vec<StepRole> = steps.into_iter().map(|it| it.1).collect();
    assert_eq!(
        roles,
        [
            StepRole::Record,
            must(0),
            StepRole::Whatever,
            must(1),
            fits(0)
        ]
    );
    let same = Commit::new()
        .replace(key("a"), read(), Vec::new(), body())
        .unchanged(key("a"), read());
    check(&same, &[RECORD, ("update", must(0))]);
}

#[test]
fn the_first_step_without_a_match_is_the_stale_item() {
    let commit = Commit::new()
        .unchanged(key("a"), read())
        .insert(key("b"), Vec::new(), body());
    let plan = plan(&commit);
    let one = StepResult::Count(1);
    let judged = |results: &[StepResult]| plan.evaluate(results);
    assert_eq!(
        judged(&[one.clone(), StepResult::Count(0), one.clone()]),
        StepsResult::Stale(StaleItem::Expect(0))
    );
    let taken = StepResult::Error(super::DUPLICATE_KEY);
    assert_eq!(
        judged(&[one.clone(), one.clone(), taken.clone()]),
        StepsResult::Stale(StaleItem::Expect(1))
    );
    assert_eq!(judged(&[taken]), StepsResult::Repeated);
    assert_eq!(
        judged(&[one.clone(), one.clone(), one.clone()]),
        StepsResult::Fits(None)
    );
    assert!(matches!(
        judged(std::slice::from_ref(&one)),
        StepsResult::Odd(_)
    ));
    assert!(matches!(
        judged(&[one, StepResult::Error(1)]),
        StepsResult::Odd(_)
    ));
}

#[test]
fn the_record_is_corrected_for_steps_without_a_match() {
    let id = OperationId(Uuid::nil());
    let commit = Commit::new()
        .write(Write::Remove(key("a")))
        .write(Write::Cancel(id))
        .write(Write::Wake(id));
    let plan = plan(&commit);
    let judged = |counts: [i64; 3]| {
        let mut results = vec![StepResult::Count(1)];
        results.extend(counts.map(StepResult::Count));
        match plan.evaluate(&results) {
            StepsResult::Fits(None) => None,
            StepsResult::Fits(Some(step)) => {
                let set = step
                    .get_document("updateMods")
                    .and_then(|it| it.get_document("$set"));
                let left = set
                    .and_then(|it| it.get_array("about"))
                    .expect("what is left");
                Some(left.len())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(judged([1, 1, 1]), None);
    assert_eq!(judged([1, 0, 1]), None, "another step touched it");
    assert_eq!(judged([0, 1, 1]), Some(1));
    assert_eq!(judged([0, 0, 0]), Some(0));
}

#[test]
fn a_changed_subject_stays_in_the_record_if_a_later_step_matches_nothing() {
    let id = OperationId(Uuid::nil());
    let done = Next::Done(Outcome::Succeeded);
    let other = OperationId(Uuid::from_u128(1));
    for late in [Write::Cancel(id), Write::Wake(id)] {
        let commit = Commit::new()
            .write(Write::Cancel(other))
            .advance(id, done, None, None)
            .write(late);
        let judged = plan(&commit).evaluate(&[1, 1, 1, 0].map(StepResult::Count));
        assert_eq!(judged, StepsResult::Fits(None), "{commit:?}");
    }
}

#[test]
fn a_term_has_one_value() {
    let terms = |second: &str| vec![Term::new("a", "x"), Term::new("a", second)];
    let plan = |second| {
        let commit = Commit::new().insert(key("a"), terms(second), body());
        CommitSteps::of(&commit, |_, _| WorkerId(Uuid::nil()))
    };
    assert!(plan("x").is_ok(), "said twice");
    assert!(plan("y").is_err());
}

#[test]
fn only_claimable_operations_cause_a_wakeup() {
    let start = |start: Start| {
        Commit::new().start(NewOperation {
            id: OperationId(Uuid::nil()),
            lane: key("a"),
            verb: "provision",
            queue: Queue::named("work"),
            start,
            detail: body(),
            request: body(),
        })
    };
    assert!(start(Start::Ready(Due::Now)).is_worth_a_hint());
    assert!(!start(Start::Waiting).is_worth_a_hint());
    assert!(!start(Start::Claimed(WorkerId(Uuid::nil()))).is_worth_a_hint());
}
