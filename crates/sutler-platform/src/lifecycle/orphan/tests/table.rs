//! Defines the words of `tests/transitions/orphan.txt`, and holds the rules to it.

use super::answers::{ANSWERS, answers};
use super::fixtures::{
    MINUTE, STATES, found, in_flight, in_minutes, named, now, person, reason, waiting,
};
use crate::lifecycle::orphan::{
    AttemptLog, CleanupMode, DeleteRound, DeleteStage, OperatorReason, Orphan, OrphanDecision,
    OrphanEffect, OrphanEvent, OrphanEventError, OrphanReply, OrphanResult, OrphanState, TRIES_MAX,
    WAITS_MAX, decide,
};
use crate::lifecycle::transition_table::{NextStates, RuleOutcome, TableRow, assert_holds};
use std::time::Duration;

const TABLE: &str = include_str!("../../../../tests/transitions/orphan.txt");

const OTHER_EVENTS: [&str; 9] = [
    "found, automatic",
    "found, manual",
    "turn",
    "turn, too early",
    "taken over",
    "gone, sent too early",
    "broker gone",
    "retry",
    "forget",
];

/// Minutes from now until the guard of what is found, and of a DELETE that was sent too early.
const GUARD_MINUTES: u64 = 2;
/// Minutes from now until what is planned, if a turn comes too early.
const PLANNED_MINUTES: u64 = 3;

/// Holds: P-010, P-153.
#[test]
fn every_orphan_in_every_state_meets_every_event_as_the_table_says() {
    let events = [&ANSWERS[..], &OTHER_EVENTS[..]].concat();
    assert_holds(TABLE, &STATES, &events, outcome);
}

/// What the rules decide for a row. All variants of its event must lead to the same.
fn outcome(row: &TableRow) -> RuleOutcome {
    let outcomes: Vec<RuleOutcome> = variants(row.event)
        .into_iter()
        .map(|event| outcome_of(row, event))
        .collect();
    let first = outcomes.first().expect("an event has a variant").clone();
    let other = outcomes.into_iter().find(|outcome| *outcome != first);
    other.unwrap_or(first)
}

fn outcome_of(row: &TableRow, event: OrphanEvent) -> RuleOutcome {
    let before = before(row);
    let (answer, effects, next) = match decide(before.clone(), event, now()) {
        Ok(OrphanDecision {
            next,
            effects,
            reply,
        }) => (reply_word(reply), effects, Some(next)),
        Err(refusal) => (refusal_word(refusal), Vec::new(), before.clone()),
    };
    let effects = match effects == effects_by_row(row, before.as_ref()) {
        true => row.effects.to_owned(),
        false => format!("{effects:?}"),
    };
    // What is shown of the attempts is proved by `rules.rs`.
    let next = next.map(without_attempts);
    let by_row = next_by_row(row, before);
    let next_differs = (next != by_row).then(|| NextStates {
        by_rules: format!("{next:?}"),
        by_row: format!("{by_row:?}"),
    });
    RuleOutcome {
        answer: answer.to_owned(),
        effects,
        next_differs,
    }
}

fn without_attempts(mut orphan: Orphan) -> Orphan {
    orphan.attempts = AttemptLog::default();
    orphan
}

/// The state of a row, as its event needs it.
fn before(row: &TableRow) -> Option<Orphan> {
    let mut orphan = named(row.state)?;
    match row.event {
        "gone, sent too early" => orphan.guarded_until = in_minutes(GUARD_MINUTES),
        "turn, too early" => match &mut orphan.state {
            OrphanState::Due { at: planned }
            | OrphanState::InFlight {
                stage: DeleteStage::Unknown { again: planned },
                ..
            } => *planned = in_minutes(PLANNED_MINUTES),
            _ => {}
        },
        _ => {}
    }
    Some(orphan)
}

/// The events that a name of the table stands for.
fn variants(event: &str) -> Vec<OrphanEvent> {
    match event {
        "found, automatic" => vec![newly_found(CleanupMode::Automatic)],
        "found, manual" => vec![newly_found(CleanupMode::Manual)],
        "turn" | "turn, too early" => vec![OrphanEvent::Turn],
        "taken over" => vec![OrphanEvent::TakenOver],
        "broker gone" => vec![OrphanEvent::BrokerGone],
        "retry" => vec![OrphanEvent::Retry],
        "forget" => vec![OrphanEvent::Forget {
            by: person("operator"),
            reason: reason(),
        }],
        _ => {
            let meanings = answers(event.trim_end_matches(", sent too early"));
            let answer = |meaning| OrphanEvent::Answer(Box::new(meaning));
            meanings.into_iter().map(answer).collect()
        }
    }
}

/// A resource that nothing waits for, whose create may still arrive.
fn newly_found(cleanup: CleanupMode) -> OrphanEvent {
    let mut new = found(cleanup);
    new.guarded_until = Some(in_minutes(GUARD_MINUTES));
    new.waiting = None;
    OrphanEvent::Found(Box::new(new))
}

fn reply_word(reply: OrphanReply) -> &'static str {
    match reply {
        OrphanReply::Noted => "noted",
        OrphanReply::Joined => "joined",
        OrphanReply::Accepted => "accepted",
        OrphanReply::Unchanged => "already so",
        OrphanReply::Nothing => "-",
    }
}

fn refusal_word(refusal: OrphanEventError) -> &'static str {
    match refusal {
        OrphanEventError::NotFound => "refused: not found",
        OrphanEventError::Sending => "refused: sending",
        OrphanEventError::Done => "refused: done",
        OrphanEventError::OutOfDate => "refused: out of date",
    }
}

fn effects_by_row(row: &TableRow, before: Option<&Orphan>) -> Vec<OrphanEffect> {
    let words = row.effects.split(", ").filter(|word| *word != "-");
    words
        .map(|word| effect_by_word(row, word, before))
        .collect()
}

fn effect_by_word(row: &TableRow, word: &str, before: Option<&Orphan>) -> OrphanEffect {
    let guard = Duration::from_secs(60 * GUARD_MINUTES);
    match word {
        "start now" => OrphanEffect::Start(Duration::ZERO),
        "start at the guard" => OrphanEffect::Start(guard),
        "send" => OrphanEffect::Send,
        "poll" => OrphanEffect::Poll,
        "poll after" => OrphanEffect::PollAfter(None),
        "again now" => OrphanEffect::AgainAfter(Duration::ZERO),
        "again at the guard" => OrphanEffect::AgainAfter(guard),
        "again at its time" => OrphanEffect::AgainAfter(time_left(before)),
        "end" => OrphanEffect::End,
        "notify deleted" => OrphanEffect::NotifyInstance(waiting(), OrphanResult::Deleted),
        "notify left to operator" => {
            OrphanEffect::NotifyInstance(waiting(), OrphanResult::LeftToOperator)
        }
        "alert" => OrphanEffect::Alert(match row.next {
            "needs operator (tries)" => OperatorReason::TriesUsedUp,
            "needs operator (waits)" => OperatorReason::AlwaysBusy,
            next => panic!("no alert leads to: {next}"),
        }),
        _ => {
            let minutes = word
                .strip_prefix("again in ")
                .and_then(|rest| rest.strip_suffix(" min"));
            let minutes = minutes.and_then(|number| number.parse::<u32>().ok());
            let minutes = minutes.unwrap_or_else(|| panic!("no such effect: {word}"));
            OrphanEffect::AgainAfter(MINUTE * minutes)
        }
    }
}

/// Time until what the row plans.
fn time_left(before: Option<&Orphan>) -> Duration {
    let state = before.map(|orphan| &orphan.state);
    match state {
        Some(
            OrphanState::Due { at: planned }
            | OrphanState::InFlight {
                stage: DeleteStage::Unknown { again: planned },
                ..
            },
        ) => now().duration_until(*planned).unsigned_abs(),
        _ => panic!("it plans nothing: {before:?}"),
    }
}

fn next_by_row(row: &TableRow, before: Option<Orphan>) -> Option<Orphan> {
    match row.next {
        "unchanged" => return before,
        "due at the guard" | "deferred" => return Some(new_by_row(row)),
        _ => {}
    }
    let mut next = before.expect("only a finding begins a row");
    if row.next == "unchanged, guard moved" {
        next.guarded_until = in_minutes(GUARD_MINUTES);
        next.waiting = None;
        return Some(next);
    }
    next.round = round_by_row(row, next.round);
    next.state = state_by_row(row);
    Some(next)
}

fn round_by_row(row: &TableRow, DeleteRound { tries, waits }: DeleteRound) -> DeleteRound {
    let (tries, waits) = match row.next {
        "due, try counted" | "unknown, try counted" | "unknown now, try counted" => {
            (tries + 1, waits)
        }
        "due, wait counted" => (tries, waits + 1),
        "due anew" | "unknown anew" => (0, 0),
        "needs operator (tries)" => (TRIES_MAX, waits),
        "needs operator (waits)" => (tries, WAITS_MAX),
        _ => (tries, waits),
    };
    DeleteRound { tries, waits }
}

fn state_by_row(row: &TableRow) -> OrphanState {
    let due = |minutes| OrphanState::Due {
        at: in_minutes(minutes),
    };
    let unknown = |minutes| {
        in_flight(DeleteStage::Unknown {
            again: in_minutes(minutes),
        })
    };
    let given_up = |reason| OrphanState::NeedsOperator {
        since: now(),
        reason,
    };
    match row.next {
        "due at the guard again" => due(GUARD_MINUTES),
        "due, nothing counted" => due(5),
        "due, try counted" => due(8),
        "due, wait counted" => due(4),
        "due anew" => due(0),
        "unknown, try counted" => unknown(8),
        "unknown now, try counted" | "unknown anew" => unknown(0),
        "sending" => OrphanState::InFlight {
            sent: now(),
            stage: DeleteStage::Sending,
        },
        "polling" => in_flight(DeleteStage::Polling { since: now() }),
        "needs operator (tries)" => given_up(OperatorReason::TriesUsedUp),
        "needs operator (waits)" => given_up(OperatorReason::AlwaysBusy),
        "needs operator (broker gone)" => given_up(OperatorReason::BrokerGone),
        "done" => OrphanState::Done { at: now() },
        "forgotten" => OrphanState::Forgotten {
            at: now(),
            by: person("operator"),
            reason: reason(),
        },
        other => panic!("no such state: {other}"),
    }
}

/// The row that a new finding begins.
fn new_by_row(row: &TableRow) -> Orphan {
    let mut orphan = named("due").expect("a row");
    orphan.found = now();
    orphan.waiting = None;
    orphan.guarded_until = in_minutes(GUARD_MINUTES);
    orphan.round = DeleteRound::default();
    orphan.state = match row.next {
        "due at the guard" => OrphanState::Due {
            at: in_minutes(GUARD_MINUTES),
        },
        "deferred" => OrphanState::Deferred,
        other => panic!("a new row is not: {other}"),
    };
    orphan
}
