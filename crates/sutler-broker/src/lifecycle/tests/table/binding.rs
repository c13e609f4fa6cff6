//! Defines the words of `tests/transitions/binding.txt`.

use super::{DecidedRow, Row, command, effect_words, hold, refusal_words, reply_words};
use crate::lifecycle::binding::{Bind, Binding, BindingData, Event, Parent, Unbind, decide, fetch};
use crate::lifecycle::tests::fixtures::{
    BINDING_STATES, CREATE, NEW, OTHER, async_request, binding, binding_output, binding_spec, saved,
};
use crate::lifecycle::{Asynchrony, End};
use crate::refusal::Refusal;
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../../../tests/transitions/binding.txt");

const EVENTS: [&str; 58] = [
    "bind same, async accepted",
    "bind same, async not accepted",
    "bind same, async only, async accepted",
    "bind same, async only, async not accepted",
    "bind same, never async, async accepted",
    "bind other, async accepted",
    "bind other, async not accepted",
    "bind other, async only, async not accepted",
    "bind same, plan objects, async accepted",
    "bind other, plan objects, async accepted",
    "bind same, plan objects, async only, async not accepted",
    "bind same, instance busy, async accepted",
    "bind other, instance busy, async accepted",
    "bind same, instance busy, async only, async not accepted",
    "bind same, instance busy, plan objects, async accepted",
    "bind same, instance missing, async accepted",
    "bind other, instance missing, async accepted",
    "bind same, instance missing, async only, async not accepted",
    "unbind, async accepted",
    "unbind, async not accepted",
    "unbind, async only, async accepted",
    "unbind, async only, async not accepted",
    "unbind, never async, async accepted",
    "unbind, no ids, async accepted",
    "unbind, no ids, async only, async not accepted",
    "unbind, forced, async accepted",
    "unbind, forced, no ids, async accepted",
    "unbind, forced, async only, async not accepted",
    "unbind, instance busy, async accepted",
    "unbind, instance busy, async only, async not accepted",
    "unbind, instance busy, no ids, async accepted",
    "unbind, instance busy, cascade, async accepted",
    "unbind, instance missing, async accepted",
    "the current operation saves state",
    "the bind saves state",
    "another operation saves state",
    "the current operation succeeded",
    "the current operation failed",
    "the current operation refused",
    "the bind succeeded",
    "the bind failed",
    "the bind refused",
    "another operation succeeded",
    "another operation failed",
    "another operation refused",
    "the current operation is overdue",
    "the bind is overdue",
    "another operation is overdue",
    "retry, a create failed",
    "retry, a create failed, instance busy",
    "retry, a create failed, instance missing",
    "retry, a delete failed",
    "retry, a delete failed, instance busy",
    "retry, nothing failed",
    "cancel",
    "abandon",
    "purge",
    "fetch",
];

/// Holds: B-035, B-082, B-083, B-084, B-087, B-091, D-06.
#[test]
fn every_binding_in_every_state_meets_every_event_as_the_table_says() {
    hold(TABLE, &BINDING_STATES, &EVENTS, decided_row);
}

fn decided_row(row: &Row) -> DecidedRow {
    let before = binding(row.state);
    if row.event == "fetch" {
        return DecidedRow {
            answer: match fetch(&before) {
                Ok(data) if Some(data) == before.data() => "found".to_owned(),
                Ok(_) => "found another".to_owned(),
                Err(refusal) => refusal_words(&refusal).to_owned(),
            },
            effects: "-".to_owned(),
            next_differs: None,
        };
    }
    let (answer, effects, next) = match decide(before.clone(), event(row, &before)) {
        Ok(decision) => (
            reply_words(decision.reply, before.last()),
            effect_words(&decision.effects, "bind", "unbind"),
            decision.next,
        ),
        Err(refusal) => (
            refusal_words(&refusal).to_owned(),
            "-".to_owned(),
            before.clone(),
        ),
    };
    let wanted = next_state(row, before);
    let json = |state: &Binding| serde_json::to_string(state).expect("states are JSON");
    DecidedRow {
        answer,
        effects,
        next_differs: (next != wanted).then(|| (json(&next), json(&wanted))),
    }
}

/// The event a row names: its first words, then what is special about it.
fn event(row: &Row, before: &Binding) -> Event {
    let mut words = row.event.split(", ");
    let what = words.next().unwrap_or_default();
    let mut special: BTreeSet<&str> = words.collect();
    let parent = match (
        special.remove("instance busy"),
        special.remove("instance missing"),
    ) {
        (true, _) => Parent::Busy("The service instance is being changed."),
        (_, true) => Parent::Missing,
        (false, false) => Parent::Live,
    };
    if let Some(command) = command(what, &mut special) {
        assert!(special.is_empty(), "unknown words: {}", row.text);
        let new = NEW;
        return Event::Command {
            command,
            parent,
            new,
        };
    }
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
        "bind same" | "bind other" => Event::Bind(Box::new(Bind {
            wanted: binding_spec().into(),
            same: what == "bind same",
            parent,
            against: special
                .remove("plan objects")
                .then_some(Refusal::RequiresApp),
            async_request,
        })),
        "unbind" => Event::Unbind(Unbind {
            ids_given: !special.remove("no ids"),
            parent,
            cascade: special.remove("cascade"),
            force: special.remove("forced"),
            async_request,
        }),
        _ => occurrence(what, before),
    };
    assert!(
        special.is_empty(),
        "unknown words {special:?}: {}",
        row.text
    );
    event
}

fn occurrence(what: &str, before: &Binding) -> Event {
    let (operation, what) = if let Some(what) = what.strip_prefix("the current operation ") {
        (before.last().unwrap_or(OTHER), what)
    } else if let Some(what) = what.strip_prefix("the bind ") {
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
        "succeeded" => ended(End::Succeeded(binding_output())),
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
fn next_state(row: &Row, before: Binding) -> Binding {
    let succeeded = row.event.ends_with("succeeded");
    let last = before.last();
    let data = before.data().cloned();
    let known = || data.clone().expect("a state with something known of it");
    let started = |pending_create, was_live| Binding::Deleting {
        data: BindingData {
            last: NEW,
            ..known()
        },
        pending_create,
        was_live,
    };
    match row.next {
        "unchanged" => before,
        "unchanged, state saved" => with_bond(before, |data| data.state = Some(saved())),
        "creating" => Binding::Creating { data: asked_for() },
        "creating again" => Binding::Creating {
            data: BindingData {
                state: known().state,
                made: known().made,
                ..asked_for()
            },
        },
        "live" => Binding::Live {
            data: BindingData {
                made: known().last,
                ..with_result(known())
            },
        },
        "creating again (as kept)" => Binding::Creating {
            data: BindingData {
                last: NEW,
                ..known()
            },
        },
        "gone (purged)" => Binding::gone(NEW),
        "live (as before)" => Binding::Live { data: known() },
        "create-failed" => Binding::CreateFailed { data: known() },
        "deleting" => started(None, true),
        "deleting over a create" => started(last, false),
        "deleting a failed create" if row.state == "deleting over a create" => Binding::Deleting {
            data: match succeeded {
                true => with_result(known()),
                false => known(),
            },
            pending_create: None,
            was_live: false,
        },
        "deleting a failed create" => started(None, false),
        "gone" if row.event.ends_with("refused") => {
            Binding::refused(last.expect("an operation ended"))
        }
        "gone" => Binding::gone(last.expect("an operation ended")),
        unknown => panic!("no next state is called `{unknown}`: {}", row.text),
    }
}

fn asked_for() -> BindingData {
    BindingData {
        spec: binding_spec().into(),
        state: None,
        given: None,
        made: NEW,
        last: NEW,
    }
}

fn with_result(data: BindingData) -> BindingData {
    let made = binding_output();
    BindingData {
        state: made.state,
        given: Some(*made.given),
        ..data
    }
}

fn with_bond(mut at: Binding, touch: impl FnOnce(&mut BindingData)) -> Binding {
    match &mut at {
        Binding::Creating { data }
        | Binding::CreateFailed { data }
        | Binding::Live { data }
        | Binding::Deleting { data, .. } => touch(data),
        Binding::Absent | Binding::Gone { .. } => panic!("nothing is known of it"),
    }
    at
}
