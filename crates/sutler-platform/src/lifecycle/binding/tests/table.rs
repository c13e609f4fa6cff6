//! Holds the rules to `tests/transitions/binding.txt`: every row, and a row for every state and event.

use super::answers::{answer, unfit};
use super::fixtures::{
    NOW, context, create_request, details, facts, moment, person, policy, request_key,
};
use super::states::{STATES, awaited, binding};
use super::words;
use crate::lifecycle::binding::{
    BindFacts, Binding, BindingBody, BindingCommand, Event, InstanceReadiness, Observation,
    PreparedTurn, RotateRequest, decide,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanResult;
use crate::lifecycle::transition_table::{NextStates, RuleOutcome, TableRow, assert_holds};
use crate::preflight::Violation;

const TABLE: &str = include_str!("../../../../tests/transitions/binding.txt");

const EVENTS: [&str; 68] = [
    "create",
    "create, instance not live",
    "create, instance deleting",
    "create, instance unusable",
    "create, instance gone",
    "create, violations",
    "delete",
    "cascade",
    "undelete",
    "cancel",
    "cancel delete",
    "resume",
    "retry",
    "rotate",
    "rotate, rotatable",
    "rotate, violations",
    "rotate, instance deleting",
    "rotate, instance unusable",
    "rotate, accepted before",
    "abandon",
    "renewal due",
    "renewal due, instance unusable",
    "retirement due",
    "instance live",
    "turn ready",
    "turn unresolved",
    "turn unfit",
    "turn taken over",
    "turn too often",
    "turn instance not ready",
    "turn instance busy",
    "turn instance gone",
    "turn observed, in progress",
    "turn observed, found",
    "turn observed, unfit",
    "turn observed, absent",
    "turn observed, not now",
    "turn observed, not now, too late",
    "another intent's turn",
    "answer succeeded",
    "answer unfit",
    "answer fetch",
    "answer polled",
    "answer gone",
    "answer accepted",
    "answer in progress",
    "answer rejected",
    "answer requires app",
    "answer requires app, not allowed",
    "answer busy",
    "answer overloaded",
    "answer unauthorized too late",
    "answer too late",
    "answer half deleted",
    "answer unknown",
    "answer unknown, look first",
    "answer unknown, too late",
    "answer unknown, look first, too late",
    "answer failed, mitigate",
    "answer failed, delete first",
    "answer failed, uncertain",
    "answer failed, still there",
    "poll under, succeeded",
    "poll under, in progress",
    "poll under, rejected",
    "poll under, failed",
    "orphan deleted",
    "orphan left",
];

/// Source: P-007, P-051, P-055, P-059 to P-061, P-100 to P-106, P-110, P-111, P-120 to P-123, P-130 to P-153, D-34 to D-43.
/// Holds: P-007, P-051, P-055, P-059, P-060, P-061, P-102, P-105, P-111, P-122, P-123, P-151, P-152, P-153.
#[test]
fn every_binding_in_every_state_meets_every_event_as_the_table_says() {
    assert_holds(TABLE, &STATES, &EVENTS, outcome);
}

fn outcome(row: &TableRow) -> RuleOutcome {
    let before = binding(row.state);
    let mut policy = policy();
    policy.may_name_application = !row.event.ends_with("not allowed");
    let is_late = row.event.ends_with("too late");
    let now = moment(if is_late { NOW + 90_000 } else { NOW });
    let context = context(now, &policy, 20);
    let event = event(row.event, before.as_ref());
    let (answer, effects, changes) = match decide(before.clone(), event, &context) {
        Err(refusal) => (words::refusal(&refusal).to_owned(), Vec::new(), Vec::new()),
        Ok(decision) => {
            let base = before.unwrap_or_else(super::fixtures::bare);
            let answer = words::reply(&decision.reply).to_owned();
            let effects = words::effects(&base, &decision);
            (answer, effects, words::changes(&base, &decision.next))
        }
    };
    RuleOutcome {
        answer,
        effects: in_rows_order(&effects, row.effects),
        next_differs: differs(&changes, row.next),
    }
}

/// The effects, in the order of the row if they are the same.
fn in_rows_order(effects: &[String], row: &str) -> String {
    let mut sorted = effects.to_vec();
    sorted.sort();
    let mut wanted: Vec<&str> = split(row);
    wanted.sort_unstable();
    match effects {
        _ if sorted == wanted => row.to_owned(),
        [] => "-".to_owned(),
        some => some.join(", "),
    }
}

fn differs(changes: &[String], row: &str) -> Option<NextStates> {
    let mut sorted = changes.to_vec();
    sorted.sort();
    let mut wanted: Vec<&str> = match row {
        "unchanged" => Vec::new(),
        row => split(row),
    };
    wanted.sort_unstable();
    (sorted != wanted).then(|| NextStates {
        by_rules: changes.join(", "),
        by_row: row.to_owned(),
    })
}

/// The words of a cell.
fn split(cell: &str) -> Vec<&str> {
    match cell {
        "-" => Vec::new(),
        cell => cell.split(", ").collect(),
    }
}

fn event(name: &str, before: Option<&Binding>) -> Event {
    let active = before.and_then(Binding::active);
    let number = active.unwrap_or(IntentNumber(99));
    if let Some(turn) = name.strip_prefix("turn ") {
        return Event::Turn(number, prepared(turn));
    }
    if let Some(name) = name.strip_prefix("answer ") {
        return Event::Answer(number, Box::new(answer(name)));
    }
    if let Some(name) = name.strip_prefix("poll under, ") {
        let number = before.and_then(under_delete).unwrap_or(IntentNumber(99));
        let name = match name {
            "succeeded" => "fetch",
            "failed" => "failed, mitigate",
            other => other,
        };
        return Event::Answer(number, Box::new(answer(name)));
    }
    match name {
        "another intent's turn" => Event::Turn(IntentNumber(98), PreparedTurn::Ready),
        "renewal due" => Event::RenewalDue(facts()),
        "renewal due, instance unusable" => {
            Event::RenewalDue(with_instance(InstanceReadiness::Unusable))
        }
        "retirement due" => Event::RetirementDue,
        "instance live" => Event::InstanceLive,
        "orphan deleted" => Event::OrphanSettled(awaited(before), OrphanResult::Deleted),
        "orphan left" => Event::OrphanSettled(awaited(before), OrphanResult::LeftToOperator),
        command => Event::Command(Box::new(self::command(command, before))),
    }
}

/// What is polled below a delete.
fn under_delete(it: &Binding) -> Option<IntentNumber> {
    let is_polled = |state: &IntentState| matches!(state, IntentState::Polling { .. });
    let polled = it.pending_bind().filter(|intent| is_polled(&intent.state));
    polled.filter(|_| it.deletion.is_some()).map(|it| it.number)
}

fn command(name: &str, before: Option<&Binding>) -> BindingCommand {
    let none = IntentNumber(99);
    let other = before.and_then(|it| it.pending.iter().find(|it| !it.change.is_delete()));
    let first = other.map_or(none, |it| it.number);
    let deletion = before.and_then(|it| it.deletion.as_ref());
    let last = before.and_then(|it| it.ended.back()).map(|it| it.number);
    let ben = || person("ben");
    let create = |facts| BindingCommand::Create(Box::new(create_request(facts)));
    let rotate = |facts| rotation(facts, "new");
    match name {
        "create" => create(facts()),
        "create, instance not live" => create(with_instance(InstanceReadiness::NotLiveYet)),
        "create, instance deleting" => create(with_instance(InstanceReadiness::Deleting)),
        "create, instance unusable" => create(with_instance(InstanceReadiness::Unusable)),
        "create, instance gone" => create(with_instance(InstanceReadiness::Gone)),
        "create, violations" => create(broken()),
        "delete" => BindingCommand::Delete(ben()),
        "cascade" => BindingCommand::Cascade(ben()),
        "undelete" => BindingCommand::Undelete(ben()),
        "cancel" => BindingCommand::Cancel(first, person("ann")),
        "cancel delete" => BindingCommand::Cancel(deletion.map_or(none, |it| it.number), ben()),
        "resume" => BindingCommand::Resume(first, ben(), facts()),
        "retry" => BindingCommand::Retry(last.unwrap_or(none), ben(), facts()),
        "rotate" => rotate(facts()),
        "rotate, rotatable" => rotate(BindFacts {
            rotatable: true,
            ..facts()
        }),
        "rotate, violations" => rotate(broken()),
        "rotate, instance deleting" => rotate(with_instance(InstanceReadiness::Deleting)),
        "rotate, instance unusable" => rotate(with_instance(InstanceReadiness::Unusable)),
        "rotate, accepted before" => rotation(facts(), "again"),
        "abandon" => BindingCommand::Abandon(person("ann").into()),
        other => panic!("no such command: {other}"),
    }
}

fn rotation(facts: BindFacts, key: &str) -> BindingCommand {
    BindingCommand::Rotate(RotateRequest {
        by: person("ben"),
        idempotency_key: Some(request_key(key)),
        facts,
    })
}

fn with_instance(instance: InstanceReadiness) -> BindFacts {
    BindFacts {
        instance,
        ..facts()
    }
}

fn broken() -> BindFacts {
    BindFacts {
        violations: vec![Violation {
            pointer: "/instance".to_owned(),
            sentence: "the plan cannot be bound; choose another one".to_owned(),
            rule: "P-100",
        }],
        ..facts()
    }
}

fn prepared(name: &str) -> PreparedTurn {
    match name {
        "ready" => PreparedTurn::Ready,
        "unresolved" => PreparedTurn::Unresolved("the secret is missing".to_owned()),
        "unfit" => PreparedTurn::Unfit(vec!["the role is unknown".to_owned()]),
        "taken over" => PreparedTurn::TakenOver,
        "too often" => PreparedTurn::TakenOverTooOften,
        "instance not ready" => PreparedTurn::InstanceNotReady,
        "instance busy" => PreparedTurn::InstanceBusy,
        "instance gone" => PreparedTurn::InstanceGone,
        "observed, in progress" => PreparedTurn::Observed(Observation::InProgress),
        "observed, found" => {
            PreparedTurn::Observed(Observation::Found(BindingBody::Fit(details("new"))))
        }
        "observed, unfit" => PreparedTurn::Observed(Observation::Found(unfit())),
        "observed, absent" => PreparedTurn::Observed(Observation::AbsentOrUnreadable),
        "observed, not now" | "observed, not now, too late" => {
            PreparedTurn::Observed(Observation::NotNow)
        }
        other => panic!("no such turn: {other}"),
    }
}
