//! Defines the words of `tests/transitions/breaker.txt`, and holds the rules to it.

use super::fixtures::{STATES, in_seconds, named, now, operator, statement};
use crate::lifecycle::breaker::{
    Breaker, BreakerDecision, BreakerEffect, BreakerEvent, BreakerEventError, BreakerNotice,
    BreakerReply, OpenBreaker, OpenCause, ProbeResult, Recovery, decide,
};
use crate::lifecycle::transition_table::{NextStates, RuleOutcome, TableRow, assert_holds};
use std::time::Duration;

const TABLE: &str = include_str!("../../../../tests/transitions/breaker.txt");

const EVENTS: [&str; 12] = [
    "5 unanswered",
    "401",
    "probe due",
    "probe due, too early",
    "probe answered",
    "probe unauthorized",
    "probe unanswered",
    "probe refused",
    "new credentials",
    "probe",
    "pause",
    "resume",
];

/// Seconds until the next probe, if its operation is claimed too early.
const PLANNED_SECONDS: u64 = 3;

/// Invariant I-11.
#[test]
fn every_breaker_in_every_state_meets_every_event_as_the_table_says() {
    assert_holds(TABLE, &STATES, &EVENTS, outcome);
}

fn outcome(row: &TableRow) -> RuleOutcome {
    let mut before = named(row.state);
    if row.event == "probe due, too early"
        && let Breaker::Open(open) = &mut before
    {
        open.next_probe = in_seconds(PLANNED_SECONDS);
    }
    let (answer, effects, next) = match decide(before.clone(), event(row.event), now(), 0) {
        Ok(BreakerDecision {
            next,
            effects,
            reply,
        }) => (reply_word(reply), effects, next),
        Err(refusal) => (refusal_word(refusal), Vec::new(), before.clone()),
    };
    let words = row.effects.split(", ").filter(|word| *word != "-");
    let effects_by_row: Vec<BreakerEffect> = words.map(effect_by_word).collect();
    let effects = match effects == effects_by_row {
        true => row.effects.to_owned(),
        false => format!("{effects:?}"),
    };
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

fn event(name: &str) -> BreakerEvent {
    match name {
        "5 unanswered" => BreakerEvent::Trip(OpenCause::Silence),
        "401" => BreakerEvent::Trip(OpenCause::Unauthorized),
        "probe due" | "probe due, too early" => BreakerEvent::ProbeTurn,
        "probe answered" => BreakerEvent::Probed(ProbeResult::Answered),
        "probe unauthorized" => BreakerEvent::Probed(ProbeResult::Unauthorized(statement())),
        "probe unanswered" => BreakerEvent::Probed(ProbeResult::Unanswered(statement())),
        "probe refused" => BreakerEvent::Probed(ProbeResult::Refused(statement())),
        "new credentials" => BreakerEvent::NewCredentials,
        "probe" => BreakerEvent::Probe,
        "pause" => BreakerEvent::Pause(operator()),
        "resume" => BreakerEvent::Resume,
        _ => panic!("no such event: {name}"),
    }
}

fn reply_word(reply: BreakerReply) -> &'static str {
    match reply {
        BreakerReply::Accepted => "accepted",
        BreakerReply::Unchanged => "already so",
        BreakerReply::Nothing => "-",
    }
}

fn refusal_word(refusal: BreakerEventError) -> &'static str {
    match refusal {
        BreakerEventError::Paused => "refused: paused",
        BreakerEventError::OutOfDate => "refused: out of date",
    }
}

fn effect_by_word(word: &str) -> BreakerEffect {
    match word {
        "close queue" => BreakerEffect::CloseQueue,
        "open queue" => BreakerEffect::OpenQueue,
        "send probe" => BreakerEffect::SendProbe,
        "end probe" => BreakerEffect::EndProbe,
        "start probe now" => BreakerEffect::StartProbe(Duration::ZERO),
        "start probe in 5 s" => BreakerEffect::StartProbe(Duration::from_secs(5)),
        "start probe in 20 s" => BreakerEffect::StartProbe(Duration::from_secs(20)),
        "probe again now" => BreakerEffect::ProbeAfter(Duration::ZERO),
        "probe again in 20 s" => BreakerEffect::ProbeAfter(Duration::from_secs(20)),
        "probe again at its time" => {
            BreakerEffect::ProbeAfter(Duration::from_secs(PLANNED_SECONDS))
        }
        _ => match word.strip_prefix("announce ") {
            Some(notice) => BreakerEffect::Announce(notice_by_word(notice)),
            None => panic!("no such effect: {word}"),
        },
    }
}

fn notice_by_word(word: &str) -> BreakerNotice {
    match word {
        "silence" => BreakerNotice::Open(OpenCause::Silence),
        "unauthorized" => BreakerNotice::Open(OpenCause::Unauthorized),
        "closed" => BreakerNotice::Closed,
        "paused" => BreakerNotice::Paused,
        "resumed" => BreakerNotice::Resumed,
        _ => panic!("no such announcement: {word}"),
    }
}

fn next_by_row(row: &TableRow, before: Breaker) -> Breaker {
    let was_open = match &before {
        Breaker::Open(open) => Some(open.clone()),
        Breaker::Paused { open, .. } => open.clone(),
        Breaker::Closed { .. } => None,
    };
    let paused = |open| Breaker::Paused {
        since: now(),
        by: operator(),
        open,
    };
    let open = || was_open.clone().expect("it is open");
    match row.next {
        "unchanged" => before,
        "closed" => Breaker::default(),
        "closed now" => Breaker::Closed {
            recovery: Some(Recovery {
                at: now(),
                failed_probes: 1,
            }),
        },
        "probe due now" => Breaker::Open(OpenBreaker {
            next_probe: now(),
            ..open()
        }),
        "probe due now, afresh" => Breaker::Open(OpenBreaker {
            next_probe: now(),
            failed_probes: 0,
            ..open()
        }),
        "paused (closed)" => paused(None),
        "paused (open)" => paused(Some(open())),
        words => Breaker::Open(opened(words, was_open)),
    }
}

/// `open after silence, first`, and the like.
fn opened(words: &str, was_open: Option<OpenBreaker>) -> OpenBreaker {
    let cause = match words.split(", ").next() {
        Some("open after silence") => OpenCause::Silence,
        Some("open after 401") => OpenCause::Unauthorized,
        other => panic!("no such state: {other:?}"),
    };
    let (since, failed_probes, seconds, last) = match words.split(", ").nth(1) {
        Some("first") => (now(), 0, 5, None),
        Some("again") => (now(), 2, 20, None),
        Some("one more") => {
            let since = was_open.expect("it is open").since;
            (since, 2, 20, Some(statement()))
        }
        other => panic!("no such state: {other:?}"),
    };
    OpenBreaker {
        since,
        cause,
        failed_probes,
        next_probe: in_seconds(seconds),
        last,
    }
}
