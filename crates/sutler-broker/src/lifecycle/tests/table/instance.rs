//! Defines the words of `tests/transitions/instance.txt`.

use super::{DecidedRow, Row, command, effect_words, hold, refusal_words, reply_words};
use crate::lifecycle::binding::Parent;
use crate::lifecycle::instance::{
    Change, Event, Instance, InstanceData, Provision, Update, UpdateFacts, decide, fetch, parent,
};
use crate::lifecycle::tests::fixtures::{
    CREATE, INSTANCE_STATES, NEW, OTHER, async_request, change, changed_spec, instance,
    instance_output, saved, spec, value,
};
use crate::lifecycle::{Asynchrony, End};
use crate::refusal::Refusal;
use serde_json::json;
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../../../tests/transitions/instance.txt");

const EVENTS: [&str; 73] = [
    "provision same, async accepted",
    "provision same, async not accepted",
    "provision same, async only, async accepted",
    "provision same, async only, async not accepted",
    "provision same, never async, async accepted",
    "provision same, maintenance conflict, async accepted",
    "provision same, maintenance conflict, async only, async not accepted",
    "provision same, plan objects, async accepted",
    "provision same, plan objects, maintenance conflict, async accepted",
    "provision other, async accepted",
    "provision other, async not accepted",
    "provision other, async only, async not accepted",
    "provision other, never async, async accepted",
    "provision other, maintenance conflict, async accepted",
    "provision other, plan objects, async accepted",
    "update parameters, async accepted",
    "update parameters, async not accepted",
    "update parameters, async only, async accepted",
    "update parameters, async only, async not accepted",
    "update parameters, never async, async accepted",
    "update plan, async accepted",
    "update plan, plan not updateable, async accepted",
    "update parameters, plan not updateable, async accepted",
    "update context only, allowed, async accepted",
    "update context only, not allowed, async accepted",
    "update context only, allowed, not offered, async accepted",
    "update maintenance, async accepted",
    "update maintenance, maintenance conflict, async accepted",
    "update maintenance, maintenance conflict, async only, async not accepted",
    "update nothing, async accepted",
    "update nothing, async only, async not accepted",
    "update nothing, plan objects, async accepted",
    "update to what is already so, plan not updateable, async accepted",
    "update parameters, plan objects, async accepted",
    "update parameters, plan objects, maintenance conflict, async only, async not accepted",
    "update parameters, of another service, async accepted",
    "update parameters, of another service, async only, async not accepted",
    "update parameters, not offered, async accepted",
    "update as the running one, async accepted",
    "update as the running one, async not accepted",
    "update as the running one, async only, async not accepted",
    "update as the running one, plan objects, async accepted",
    "deprovision, async accepted",
    "deprovision, async not accepted",
    "deprovision, async only, async accepted",
    "deprovision, async only, async not accepted",
    "deprovision, never async, async accepted",
    "deprovision, forced, async accepted",
    "deprovision, forced, async only, async not accepted",
    "the current operation saves state",
    "the provision saves state",
    "another operation saves state",
    "the current operation succeeded",
    "the current operation failed",
    "the current operation refused",
    "the provision succeeded",
    "the provision failed",
    "the provision refused",
    "another operation succeeded",
    "another operation failed",
    "another operation refused",
    "the current operation is overdue",
    "the provision is overdue",
    "another operation is overdue",
    "retry, a create failed",
    "retry, an update failed",
    "retry, a delete failed",
    "retry, nothing failed",
    "cancel",
    "abandon",
    "purge",
    "fetch",
    "seen by a binding",
];

/// Holds: B-035, B-037, B-082, B-083, B-084, B-087, B-091, D-06.
#[test]
fn every_instance_in_every_state_meets_every_event_as_the_table_says() {
    hold(TABLE, &INSTANCE_STATES, &EVENTS, decided_row);
}

fn decided_row(row: &Row) -> DecidedRow {
    let before = instance(row.state);
    match row.event {
        "fetch" => read(match fetch(&before) {
            Ok(data) if Some(data) == before.data() => "found",
            Ok(_) => "found another",
            Err(refusal) => refusal_words(&refusal),
        }),
        "seen by a binding" => read(match parent(&before) {
            (None, Parent::Missing) => "missing",
            (Some(_), Parent::Live) => "live",
            (Some(_), Parent::Busy(_)) => "busy",
            (None, _) | (_, Parent::Missing) => "a contradiction",
        }),
        _ => decided(row, before),
    }
}

fn read(answer: &str) -> DecidedRow {
    DecidedRow {
        answer: answer.to_owned(),
        effects: "-".to_owned(),
        next_differs: None,
    }
}

fn decided(row: &Row, before: Instance) -> DecidedRow {
    let (answer, effects, next) = match decide(before.clone(), event(row, &before)) {
        Ok(decision) => (
            reply_words(decision.reply, before.last()),
            effect_words(&decision.effects, "provision", "deprovision"),
            decision.next,
        ),
        Err(refusal) => (
            refusal_words(&refusal).to_owned(),
            "-".to_owned(),
            before.clone(),
        ),
    };
    let wanted = next_state(row, before);
    let json = |state: &Instance| serde_json::to_string(state).expect("states are JSON");
    DecidedRow {
        answer,
        effects,
        next_differs: (next != wanted).then(|| (json(&next), json(&wanted))),
    }
}

/// The event a row names: its first words, then what is special about it.
fn event(row: &Row, before: &Instance) -> Event {
    let mut words = row.event.split(", ");
    let what = words.next().unwrap_or_default();
    let mut special: BTreeSet<&str> = words.collect();
    if let Some(command) = command(what, &mut special) {
        assert!(special.is_empty(), "unknown words: {}", row.text);
        return Event::Command { command, new: NEW };
    }
    special.remove("not allowed");
    let accepts_incomplete = special.remove("async accepted");
    let known = special.remove("async not accepted")
        || accepts_incomplete
        || what.starts_with("the ")
        || what.starts_with("another ");
    assert!(
        known,
        "a request has `async accepted` or `async not accepted`: {}",
        row.text
    );
    let rule = match (special.remove("async only"), special.remove("never async")) {
        (true, _) => Asynchrony::Required,
        (_, true) => Asynchrony::Never,
        (false, false) => Asynchrony::Preferred,
    };
    let async_request = async_request(rule, accepts_incomplete);
    let event = match what {
        "provision same" | "provision other" => Event::Provision(Box::new(Provision {
            wanted: spec().into(),
            same: what == "provision same",
            against: objection(&mut special),
            maintenance_conflict: special.remove("maintenance conflict"),
            dashboard_url: Some("https://dashboard/new".to_owned()),
            async_request,
        })),
        "deprovision" => Event::Deprovision {
            async_request,
            force: special.remove("forced"),
        },
        _ => match what.strip_prefix("update ") {
            Some(update) => Event::Update(Box::new(Update {
                service_id: value(json!(match special.remove("of another service") {
                    true => "queue",
                    false => "database",
                })),
                change: change_of(update).into(),
                against: objection(&mut special),
                facts: UpdateFacts {
                    offered: !special.remove("not offered"),
                    plan_updateable: !special.remove("plan not updateable"),
                    context_updates: special.remove("allowed"),
                    maintenance_conflict: special.remove("maintenance conflict"),
                },
                dashboard_url: Some("https://dashboard/new".to_owned()),
                async_request,
            })),
            None => occurrence(what, before),
        },
    };
    assert!(
        special.is_empty(),
        "unknown words {special:?}: {}",
        row.text
    );
    event
}

fn objection(special: &mut BTreeSet<&str>) -> Option<Refusal> {
    let invalid = || Refusal::Invalid("The parameters do not fit.".to_owned());
    special.remove("plan objects").then(invalid)
}

fn change_of(update: &str) -> Change {
    let none = Change::default();
    match update {
        "parameters" => Change {
            parameters: Some(value(json!({"size": 7}))),
            ..none
        },
        "plan" => Change {
            plan: Some((value(json!("huge")), "huge@1".to_owned())),
            ..none
        },
        "context only" => Change {
            context: Some(value(json!({"platform": "kubernetes"}))),
            ..none
        },
        "maintenance" => Change {
            maintenance_version: Some("2.0.0".to_owned()),
            ..none
        },
        "nothing" => none,
        "to what is already so" => Change {
            plan: Some((spec().plan_id, spec().plan)),
            parameters: Some(value(json!({"size": 1}))),
            context: spec().context,
            maintenance_version: spec().maintenance_version,
        },
        "as the running one" => change(),
        unknown => panic!("no update is of `{unknown}`"),
    }
}

fn occurrence(what: &str, before: &Instance) -> Event {
    let (operation, what) = if let Some(what) = what.strip_prefix("the current operation ") {
        (before.last().unwrap_or(OTHER), what)
    } else if let Some(what) = what.strip_prefix("the provision ") {
        (CREATE, what)
    } else if let Some(what) = what.strip_prefix("another operation ") {
        (OTHER, what)
    } else {
        panic!("nothing is called `{what}`")
    };
    let ended = |end| Event::Ended { operation, end };
    match what {
        "saves state" => Event::Saved {
            operation,
            state: saved(),
        },
        "succeeded" => ended(End::Succeeded(instance_output())),
        "failed" => ended(End::Failed),
        "refused" => ended(End::Refused),
        "is overdue" => Event::Overdue {
            operation,
            cleanup: NEW,
        },
        unknown => panic!("no operation ever {unknown}"),
    }
}

/// The state a row asks for, in full.
fn next_state(row: &Row, before: Instance) -> Instance {
    let succeeded = row.event.ends_with("succeeded");
    let last = before.last();
    let data = before.data().cloned();
    let known = || data.clone().expect("a state with something known of it");
    match row.next {
        "unchanged" => before,
        "unchanged, state saved" => with_thing(before, |data| data.state = Some(saved())),
        "creating" => Instance::Creating { data: asked_for() },
        "creating again" => Instance::Creating {
            data: InstanceData {
                state: known().state,
                made: known().made,
                ..asked_for()
            },
        },
        "live" => Instance::Live {
            data: InstanceData {
                made: known().last,
                ..with_result(known())
            },
        },
        "live (changed)" => Instance::Live {
            data: InstanceData {
                spec: changed_spec().into(),
                dashboard_url: Some("https://dashboard/2".to_owned()),
                ..with_result(known())
            },
        },
        "live (as before)" if succeeded => Instance::Live {
            data: with_result(known()),
        },
        "live (as before)" => Instance::Live { data: known() },
        "create-failed" => Instance::CreateFailed { data: known() },
        "updating" => Instance::Updating {
            data: started(known()),
            change: change_of(
                row.event
                    .split(", ")
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches("update "),
            )
            .into(),
            dashboard_url: Some("https://dashboard/new".to_owned()),
            given_up: false,
        },
        "creating again (as kept)" => Instance::Creating {
            data: started(known()),
        },
        "updating (again)" => Instance::Updating {
            data: started(known()),
            change: change().into(),
            dashboard_url: Some("https://dashboard/new".to_owned()),
            given_up: false,
        },
        "purging" => Instance::purging(NEW),
        "updating (given up)" => instance("updating (given up)"),
        next if next.starts_with("deleting") => deleting(next, known(), row.state, succeeded),
        "gone" if row.event.ends_with("refused") => {
            Instance::refused(last.expect("an operation ended"))
        }
        "gone" => Instance::gone(last.expect("an operation ended")),
        unknown => panic!("no next state is called `{unknown}`: {}", row.text),
    }
}

fn deleting(next: &str, data: InstanceData, from: &str, succeeded: bool) -> Instance {
    let (pending_create, was_live) = match next {
        "deleting" => (None, true),
        "deleting a failed create" => (None, false),
        "deleting over a create" => (Some(data.last), false),
        unknown => panic!("no next state is called `{unknown}`"),
    };
    let data = match (from == "deleting over a create", succeeded) {
        (false, _) => started(data),
        (true, true) => with_result(data),
        (true, false) => data,
    };
    Instance::Deleting {
        data,
        pending_create,
        was_live,
    }
}

fn asked_for() -> InstanceData {
    InstanceData {
        spec: spec().into(),
        state: None,
        dashboard_url: Some("https://dashboard/new".to_owned()),
        metadata: None,
        made: NEW,
        last: NEW,
    }
}

fn started(data: InstanceData) -> InstanceData {
    InstanceData { last: NEW, ..data }
}

fn with_result(data: InstanceData) -> InstanceData {
    let made = instance_output();
    InstanceData {
        state: made.state,
        metadata: made.metadata,
        ..data
    }
}

fn with_thing(mut at: Instance, touch: impl FnOnce(&mut InstanceData)) -> Instance {
    match &mut at {
        Instance::Creating { data }
        | Instance::CreateFailed { data }
        | Instance::Live { data }
        | Instance::Updating { data, .. }
        | Instance::Deleting { data, .. } => touch(data),
        Instance::Absent | Instance::Gone { .. } => panic!("nothing is known of it"),
    }
    at
}
