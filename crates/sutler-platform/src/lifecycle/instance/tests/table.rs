//! Holds the rules to `tests/transitions/instance.txt`: every row, and a row for every state and event.

use super::fixtures::{
    NOW, STATES, context, disk, facts, instance, moment, osb_id, person, policy, request_key, small,
};
use super::meanings::{failed, message, retry, succeeded};
use super::words;
use crate::lifecycle::instance::{
    BindingsFound, ChangeFacts, CreateRequest, Event, FetchedInstance, Instance, InstanceCommand,
    InstanceEventError, Observation, PreparedTurn, ResourceDetails, Source, decide,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanResult;
use crate::lifecycle::transition_table::{NextStates, RuleOutcome, TableRow, assert_holds};
use crate::preflight::Violation;
use crate::spec::samples::label_patch;
use crate::spec::{Spec, SpecPatch};
use sutler_client::{
    AcceptedOperation, CleanupDuty, Meaning, NextQuestion, PollUpdate, RejectionReason, RetryCause,
    Success,
};
use uuid::Uuid;

const TABLE: &str = include_str!("../../../../tests/transitions/instance.txt");

const EVENTS: [&str; 61] = [
    "create",
    "adopt",
    "patch",
    "patch, by Ann",
    "patch, local",
    "patch, no difference",
    "patch, violations",
    "patch, another revision",
    "patch, accepted before",
    "replace",
    "apply",
    "touch",
    "delete",
    "delete, cascade",
    "delete, bindings",
    "delete, waits",
    "undelete",
    "cancel",
    "cancel delete",
    "resume",
    "retry",
    "rollback",
    "abandon",
    "follow",
    "protect",
    "turn ready",
    "turn nothing to do",
    "turn unresolved",
    "turn unfit",
    "turn taken over",
    "turn too often",
    "turn bindings left",
    "turn bindings stuck",
    "turn observed, in progress",
    "turn observed, ours",
    "turn observed, absent",
    "turn observed, not now",
    "another intent's turn",
    "answer succeeded",
    "answer gone",
    "answer accepted",
    "answer in progress",
    "answer rejected",
    "answer rejected, unusable",
    "answer busy",
    "answer overloaded",
    "answer unauthorized too late",
    "answer too late",
    "answer half deleted",
    "answer unknown",
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
    "fetched",
];

/// Source: P-007, P-051, P-055, P-060, P-094, P-095, P-096, P-122, P-123, D-34, D-35, D-36, D-38, D-39, D-40, D-41, D-43.
/// Holds: P-007, P-051, P-055, P-060, P-094, P-095, P-096, P-122, P-123.
#[test]
fn every_instance_in_every_state_meets_every_event_as_the_table_says() {
    assert_holds(TABLE, &STATES, &EVENTS, outcome);
}

fn outcome(row: &TableRow) -> RuleOutcome {
    let before = instance(row.state);
    let mut policy = policy();
    policy.delete_waits_for_update = row.event == "delete, waits";
    let is_late = row.event.ends_with("too late");
    let now = moment(if is_late { NOW + 90_000 } else { NOW });
    let fits = |_: &Spec| true;
    let context = context(now, &policy, 20, &fits);
    let event = event(row.event, before.as_ref());
    let (answer, effects, changes) = match decide(before.clone(), event, &context) {
        Err(refusal) => (words::refusal(&refusal).to_owned(), Vec::new(), Vec::new()),
        Ok(decision) => {
            let base = before.unwrap_or_else(|| created_from(&decision.next));
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

/// What a new instance is compared with.
fn created_from(next: &Instance) -> Instance {
    let mut base = instance("new").expect("an instance");
    base.osb_id = next.osb_id.clone();
    base.exposure = next.exposure.clone();
    base.usable = next.usable;
    base.source = next.source.clone();
    base
}

/// The effects, in the order of the row if they are the same.
fn in_rows_order(effects: &[String], row: &str) -> String {
    let mut sorted = effects.to_vec();
    sorted.sort();
    let mut wanted: Vec<&str> = split(row);
    wanted.sort_unstable();
    if sorted == wanted {
        return row.to_owned();
    }
    match effects {
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

/// The words of a cell. `orphan: failed create` is one of them.
fn split(cell: &str) -> Vec<&str> {
    match cell {
        "-" => Vec::new(),
        cell => cell.split(", ").collect(),
    }
}

/// The orphan that it waits for is settled, or that of its last id if it waits for none.
fn settled(before: Option<&Instance>, result: OrphanResult) -> Event {
    let awaited = before.and_then(Instance::awaited_orphan);
    let osb_id = awaited.or(before.map(|it| &it.osb_id)).cloned();
    Event::OrphanSettled(osb_id.unwrap_or_else(|| self::osb_id(1)), result)
}

fn event(name: &str, before: Option<&Instance>) -> Event {
    let active = before.and_then(Instance::active);
    let number = active.unwrap_or(IntentNumber(99));
    if let Some(turn) = name.strip_prefix("turn ") {
        return Event::Turn(number, prepared(turn));
    }
    if let Some(answer) = name.strip_prefix("answer ") {
        return Event::Answer(number, Box::new(meaning(answer)));
    }
    if let Some(answer) = name.strip_prefix("poll under, ") {
        let under = before.and_then(|it| {
            let is_polled = |state: &IntentState| matches!(state, IntentState::Polling { .. });
            let polled = it.pending.iter().find(|intent| is_polled(&intent.state));
            polled.filter(|_| it.deletion.is_some())
        });
        let under = under.filter(|intent| !intent.change.is_delete());
        let number = under.map_or(IntentNumber(99), |intent| intent.number);
        let answer = match answer {
            "succeeded" => Meaning::Succeeded(Success::Polled),
            "in progress" => meaning("in progress"),
            "rejected" => meaning("rejected"),
            "failed" => meaning("failed, mitigate"),
            other => panic!("no such answer: {other}"),
        };
        return Event::Answer(number, Box::new(answer));
    }
    match name {
        "another intent's turn" => Event::Turn(IntentNumber(98), PreparedTurn::Ready),
        "orphan deleted" => settled(before, OrphanResult::Deleted),
        "orphan left" => settled(before, OrphanResult::LeftToOperator),
        "fetched" => {
            let spec = small().apply(&disk(20));
            let details = ResourceDetails::default();
            Event::Fetched(Box::new(FetchedInstance { spec, details }))
        }
        command => Event::Command(Box::new(self::command(command, before))),
    }
}

fn command(name: &str, before: Option<&Instance>) -> InstanceCommand {
    let first = before.and_then(|it| it.pending.first()).map(|it| it.number);
    let of_user = before.and_then(|it| it.pending.iter().find(|it| !it.change.is_delete()));
    let deletion = before.and_then(|it| it.deletion.as_ref());
    let last = before.and_then(|it| it.ended.back()).map(|it| it.number);
    let none = IntentNumber(99);
    let shown = before.map_or_else(small, |it| it.projection().spec);
    let wanted = shown.apply(&disk(30));
    let delete = |cascade, bindings: &[&str]| InstanceCommand::Delete {
        by: person("ben"),
        cascade,
        bindings: bindings.iter().map(|it| (*it).to_owned()).collect(),
    };
    match name {
        "create" => InstanceCommand::Create(create_request()),
        "adopt" => InstanceCommand::Adopt(create_request()),
        "patch" => InstanceCommand::Patch(disk(30), facts("ben")),
        "patch, by Ann" => InstanceCommand::Patch(disk(30), facts("ann")),
        "patch, local" => InstanceCommand::Patch(label_patch("team", Some("y")), facts("cem")),
        "patch, no difference" => InstanceCommand::Patch(SpecPatch::default(), facts("ben")),
        "patch, violations" => InstanceCommand::Patch(disk(30), broken()),
        "patch, another revision" => {
            let mut facts = facts("ben");
            facts.request.if_revision = Some(7);
            InstanceCommand::Patch(disk(30), facts)
        }
        "patch, accepted before" => {
            let mut facts = facts("ben");
            facts.request.idempotency_key = Some(request_key("again"));
            InstanceCommand::Patch(disk(30), facts)
        }
        "replace" => InstanceCommand::Replace(wanted, facts("ben")),
        "apply" => InstanceCommand::Apply("git".to_owned(), wanted, facts("ben")),
        "touch" => InstanceCommand::Touch(facts("ben")),
        "delete" | "delete, waits" => delete(false, &[]),
        "delete, cascade" => delete(true, &["app-db"]),
        "delete, bindings" => delete(false, &["app-db"]),
        "undelete" => InstanceCommand::Undelete(person("ben")),
        "cancel" => InstanceCommand::Cancel(of_user.map_or(none, |it| it.number), person("ann")),
        "cancel delete" => {
            InstanceCommand::Cancel(deletion.map_or(none, |it| it.number), person("ben"))
        }
        "resume" => InstanceCommand::Resume(first.unwrap_or(none), facts("ben")),
        "retry" => InstanceCommand::Retry(last.unwrap_or(none), facts("ben")),
        "rollback" => InstanceCommand::Rollback(IntentNumber(1), facts("ben")),
        "abandon" => InstanceCommand::Abandon(person("ann").into()),
        "follow" => InstanceCommand::Follow(Some(Source {
            object: "c/ns/db".to_owned(),
            uid: "u".to_owned(),
            generation: 1,
        })),
        "protect" => InstanceCommand::Protect(true),
        other => panic!("no such command: {other}"),
    }
}

fn create_request() -> CreateRequest {
    CreateRequest {
        namespace: "app".to_owned(),
        broker: Uuid::from_u128(5),
        service: "postgresql".try_into().expect("an id"),
        spec: small(),
        osb_id: Some(osb_id(4)),
        source: None,
        facts: facts("ann"),
    }
}

fn broken() -> ChangeFacts {
    ChangeFacts {
        violations: vec![Violation {
            pointer: "/plan".to_owned(),
            sentence: "the plan cannot be changed; choose another one".to_owned(),
            rule: "P-090",
        }],
        ..facts("ben")
    }
}

fn prepared(name: &str) -> PreparedTurn {
    match name {
        "ready" => PreparedTurn::Ready,
        "nothing to do" => PreparedTurn::NothingToDo,
        "unresolved" => PreparedTurn::Unresolved("the secret is missing".to_owned()),
        "unfit" => PreparedTurn::Unfit(vec!["disk is too large".to_owned()]),
        "taken over" => PreparedTurn::TakenOver,
        "too often" => PreparedTurn::TakenOverTooOften,
        "bindings left" => PreparedTurn::Bindings(BindingsFound::Left),
        "bindings stuck" => PreparedTurn::Bindings(BindingsFound::Stuck("app-db".to_owned())),
        "observed, in progress" => PreparedTurn::Observed(Observation::InProgress),
        "observed, ours" => PreparedTurn::Observed(Observation::Ours(ResourceDetails::default())),
        "observed, absent" => PreparedTurn::Observed(Observation::AbsentOrUnreadable),
        "observed, not now" => PreparedTurn::Observed(Observation::NotNow),
        other => panic!("no such turn: {other}"),
    }
}

fn meaning(name: &str) -> Meaning<ResourceDetails> {
    let rejected_as = |usable| Meaning::Rejected {
        reason: RejectionReason::Refused,
        message: message(400, usable),
        update_repeatable: true,
    };
    match name {
        "succeeded" => succeeded(),
        "gone" => Meaning::Succeeded(Success::Gone),
        "accepted" => Meaning::Polling {
            update: PollUpdate::Accepted(AcceptedOperation::default()),
            after: None,
        },
        "in progress" => Meaning::Polling {
            update: PollUpdate::InProgress(None),
            after: None,
        },
        "rejected" => rejected_as(true),
        "rejected, unusable" => rejected_as(false),
        "busy" => retry(RetryCause::Busy),
        "overloaded" | "too late" => retry(RetryCause::Overloaded),
        "unauthorized too late" => retry(RetryCause::Unauthorized),
        "half deleted" => retry(RetryCause::HalfDeleted),
        "unknown" => Meaning::Unknown {
            question: NextQuestion::SendAgain,
            message: message(200, true),
        },
        "failed, mitigate" => failed(CleanupDuty::Mitigate),
        "failed, delete first" => failed(CleanupDuty::DeleteBeforeForgetting),
        "failed, uncertain" => failed(CleanupDuty::Uncertain),
        "failed, still there" => failed(CleanupDuty::StillThere),
        other => panic!("no such answer: {other}"),
    }
}

#[test]
fn a_refusal_for_a_user_says_what_to_do() {
    assert_eq!(
        InstanceEventError::Deleting.to_string(),
        "the instance is being deleted; undelete it first"
    );
}
