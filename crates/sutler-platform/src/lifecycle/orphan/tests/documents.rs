//! What a row of the ledger keeps and shows.

use super::answers::answers;
use super::fixtures::{STATES, in_flight, minutes_ago, named, now, person, reason, retried};
use crate::lifecycle::intent::BrokerStatement;
use crate::lifecycle::orphan::{
    ATTEMPTS_KEPT, AttemptLog, AttemptOutcome, DeleteStage, ForgetReason, ForgetReasonError,
    Orphan, OrphanDecision, OrphanEvent, OrphanState, decide,
};
use sutler_client::{Meaning, RetryCause};
use sutler_osb::DeleteResponse;

fn decided(row: Orphan, event: OrphanEvent) -> OrphanDecision {
    decide(Some(row), event, now()).expect("it is not refused")
}

fn answered(row: Orphan, meaning: Meaning<DeleteResponse>) -> Orphan {
    decided(row, OrphanEvent::Answer(Box::new(meaning))).next
}

#[test]
fn the_words_of_the_broker_are_kept_and_repeated_ones_are_counted() {
    let mut row = named("sending").expect("a row");
    for _ in 0..3 {
        row.state = in_flight(DeleteStage::Sending);
        row = answered(row, retried(RetryCause::Busy, None));
    }
    row.state = in_flight(DeleteStage::Sending);
    row = answered(row, answers("rejected").remove(0));
    let kept: Vec<_> = row
        .attempts
        .last
        .iter()
        .map(|it| (it.number, it.times, it.outcome))
        .collect();
    assert_eq!(
        kept,
        [
            (1, 3, AttemptOutcome::Later),
            (4, 1, AttemptOutcome::Rejected)
        ]
    );
    let words = row.attempts.last[1].statement.as_ref();
    let words = words.and_then(|it| it.description.as_deref());
    assert_eq!(words, Some("words of the broker"));
}

#[test]
fn every_attempt_shows_how_it_ended() {
    let sending = || named("sending").expect("a row");
    let outcome = |row: Orphan| row.attempts.last.back().map(|attempt| attempt.outcome);
    for (event, shown) in [
        ("gone", AttemptOutcome::Deleted),
        ("busy", AttemptOutcome::Later),
        ("overloaded", AttemptOutcome::Later),
        ("not sent", AttemptOutcome::NotSent),
        ("unauthorized", AttemptOutcome::Unauthorized),
        ("broker error", AttemptOutcome::BrokerError),
        ("half deleted", AttemptOutcome::BrokerError),
        ("incomplete", AttemptOutcome::Rejected),
        ("rejected", AttemptOutcome::Rejected),
        ("no answer", AttemptOutcome::Unknown),
        ("still there", AttemptOutcome::StillThere),
        ("another success", AttemptOutcome::NoProof),
    ] {
        for meaning in answers(event) {
            let row = answered(sending(), meaning);
            assert_eq!(outcome(row), Some(shown), "{event}");
        }
    }
    let row = decided(sending(), OrphanEvent::TakenOver).next;
    assert_eq!(outcome(row), Some(AttemptOutcome::Interrupted));
}

#[test]
fn the_first_attempt_and_the_last_ones_are_kept_with_short_texts() {
    let mut log = AttemptLog::default();
    for number in 0..100_u16 {
        let statement = BrokerStatement {
            status: Some(number),
            error: Some("é".repeat(5_000)),
            description: Some("é".repeat(5_000)),
        };
        log.add(now(), AttemptOutcome::Rejected, Some(statement));
    }
    assert_eq!(log.total, 100);
    assert_eq!(log.first.as_ref().map(|it| it.number), Some(1));
    assert_eq!(log.last.len(), ATTEMPTS_KEPT);
    assert_eq!(log.last.back().map(|it| it.number), Some(100));
    let bytes = serde_json::to_vec(&log).expect("JSON").len();
    assert!(bytes < 100_000, "{bytes}");
}

#[test]
fn a_reason_has_words_and_not_too_many() {
    let reason = |text: &str| ForgetReason::try_from(text.to_owned());
    assert_eq!(reason(" \n"), Err(ForgetReasonError::Empty));
    assert_eq!(reason(&"é".repeat(1_001)), Err(ForgetReasonError::TooLong));
    assert!(reason(&"é".repeat(1_000)).is_ok());
    assert!(serde_json::from_str::<ForgetReason>("\"\"").is_err());
}

#[test]
fn a_row_is_the_same_after_it_was_stored() {
    for state in STATES {
        let Some(mut orphan) = named(state) else {
            continue;
        };
        orphan.by = Some(person("owner"));
        orphan.attempts.add(now(), AttemptOutcome::Later, None);
        let stored = serde_json::to_string(&orphan).expect("JSON");
        let read: Orphan = serde_json::from_str(&stored).expect("an orphan");
        assert_eq!(read, orphan, "{state}");
    }
}

/// T-73: what a person forgets stays on the list.
#[test]
fn what_is_forgotten_names_who_when_and_why() {
    let forget = OrphanEvent::Forget {
        by: person("operator"),
        reason: reason(),
    };
    let decision = decided(named("needs operator").expect("a row"), forget);
    let forgotten = OrphanState::Forgotten {
        at: now(),
        by: person("operator"),
        reason: reason(),
    };
    assert_eq!(decision.next.state, forgotten);
    assert_eq!(decision.next.found, minutes_ago(60));
}
