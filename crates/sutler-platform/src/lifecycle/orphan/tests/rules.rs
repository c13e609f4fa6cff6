//! Single behaviours of the ledger's rules that no row of the table shows.

use super::answers::answers;
use super::fixtures::{
    MINUTE, found, in_flight, in_minutes, key, named, now, person, retried, row, waiting,
};
use crate::lifecycle::orphan::{
    CleanupMode, DeleteStage, NewOrphan, Orphan, OrphanCause, OrphanDecision, OrphanEffect,
    OrphanEvent, OrphanReply, OrphanResult, OrphanState, RETRY_AFTER_MAX, TRIES_MAX, WAITS_MAX,
    decide, late_create_guard,
};
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::{Meaning, RetryAfter, RetryCause};
use sutler_osb::{DeleteResponse, OperationKind};

fn decided(row: Orphan, event: OrphanEvent, at: Timestamp) -> OrphanDecision {
    decide(Some(row), event, at).expect("it is not refused")
}

fn answered(row: Orphan, meaning: Meaning<DeleteResponse>) -> OrphanDecision {
    decided(row, OrphanEvent::Answer(Box::new(meaning)), now())
}

fn sending() -> Orphan {
    named("sending").expect("a row")
}

/// The time until the next DELETE.
fn pause(decision: &OrphanDecision) -> Duration {
    match decision.effects[..] {
        [OrphanEffect::AgainAfter(pause)] => pause,
        ref other => panic!("it is not repeated: {other:?}"),
    }
}

/// The pauses of a row whose every DELETE gets this answer, in minutes, until an operator is needed.
fn pauses(cause: RetryCause) -> Vec<u64> {
    let found = OrphanEvent::Found(Box::new(found(CleanupMode::Automatic)));
    let mut row = decide(None, found, now()).expect("it is found").next;
    let mut at = now();
    let mut minutes = Vec::new();
    loop {
        let sent = decided(row, OrphanEvent::Turn, at);
        assert_eq!(sent.effects, [OrphanEffect::Send]);
        let answer = OrphanEvent::Answer(Box::new(retried(cause, None)));
        let decision = decided(sent.next, answer, at);
        if matches!(decision.next.state, OrphanState::NeedsOperator { .. }) {
            return minutes;
        }
        let wait = pause(&decision);
        minutes.push(wait.as_secs() / 60);
        at = at.checked_add(wait).expect("a moment");
        row = decision.next;
    }
}

#[test]
fn eleven_tries_take_thirty_four_hours() {
    let minutes = pauses(RetryCause::BrokerError);
    assert_eq!(minutes, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
    assert_eq!(minutes.len() + 1, TRIES_MAX as usize);
    assert_eq!(minutes.iter().sum::<u64>() / 60, 34);
}

#[test]
fn a_broker_that_is_always_busy_is_shown_to_an_operator_after_a_week() {
    let minutes = pauses(RetryCause::Busy);
    assert_eq!(minutes[..7], [2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(minutes.len() + 1, WAITS_MAX as usize);
    let days = minutes.iter().sum::<u64>() / (24 * 60);
    assert!((6..=7).contains(&days), "{days}");
}

/// Invariant I-11.
#[test]
fn a_broker_that_is_not_reached_or_refuses_the_credentials_ends_nothing() {
    let mut row = sending();
    for _ in 0..1_000 {
        for cause in [RetryCause::NotSent, RetryCause::Unauthorized] {
            let decision = answered(row.clone(), retried(cause, None));
            assert_eq!(pause(&decision), 5 * MINUTE);
            assert_eq!(decision.next.round, row.round);
            row = decision.next;
            row.state = in_flight(DeleteStage::Sending);
        }
    }
}

#[test]
fn the_wish_of_the_broker_lengthens_a_pause_up_to_a_day() {
    let wish = |cause, after| pause(&answered(sending(), retried(cause, Some(after))));
    let wait = |seconds| RetryAfter::Wait(Duration::from_secs(seconds));
    assert_eq!(wish(RetryCause::BrokerError, wait(1)), 8 * MINUTE);
    assert_eq!(wish(RetryCause::BrokerError, wait(1_200)), 20 * MINUTE);
    assert_eq!(wish(RetryCause::Overloaded, wait(7_200)), 120 * MINUTE);
    assert_eq!(wish(RetryCause::Busy, wait(u64::MAX)), RETRY_AFTER_MAX);
    let at = RetryAfter::At(in_minutes(30).as_second());
    assert_eq!(wish(RetryCause::Busy, at), 30 * MINUTE);
    let past = RetryAfter::At(0);
    assert_eq!(wish(RetryCause::Busy, past), 4 * MINUTE);
}

/// Holds: P-057.
#[test]
fn the_wish_of_the_broker_for_polls_is_passed_on() {
    let wish = Some(RetryAfter::Wait(MINUTE));
    for (state, event) in [("sending", "accepted"), ("polling", "in progress")] {
        for mut meaning in answers(event) {
            if let Meaning::Polling { after, .. } = &mut meaning {
                *after = wish;
            }
            let decision = answered(named(state).expect("a row"), meaning);
            assert_eq!(decision.effects, [OrphanEffect::PollAfter(wish)]);
        }
    }
}

/// T-58.
#[test]
fn a_late_create_is_deleted_only_when_no_process_can_send_it_any_more() {
    let (answer_within, lease) = (Duration::from_secs(60), Duration::from_secs(30));
    let guard = late_create_guard(now(), answer_within, lease);
    assert_eq!(guard, in_minutes(2));
    let new = NewOrphan {
        cause: OrphanCause::LateCreate,
        waiting: None,
        guarded_until: Some(guard),
        ..found(CleanupMode::Automatic)
    };
    let found = decide(None, OrphanEvent::Found(Box::new(new)), now()).expect("it is found");
    assert_eq!(found.effects, [OrphanEffect::Start(2 * MINUTE)]);

    // A person cannot wait: the DELETE is sent, and is no proof.
    let retried = decided(found.next, OrphanEvent::Retry, now());
    let sent = decided(retried.next, OrphanEvent::Turn, now());
    assert_eq!(sent.effects, [OrphanEffect::Send]);
    let gone = || OrphanEvent::Answer(Box::new(answers("gone").remove(0)));
    let early = decided(sent.next, gone(), in_minutes(1));
    assert_eq!(early.effects, [OrphanEffect::AgainAfter(MINUTE)]);

    // After the guard it is a proof, and nothing waits for it.
    let sent = decided(early.next, OrphanEvent::Turn, guard);
    assert_eq!(sent.effects, [OrphanEffect::Send]);
    let done = decided(sent.next, gone(), guard);
    assert_eq!(done.effects, [OrphanEffect::End]);
    assert_eq!(done.next.state, OrphanState::Done { at: guard });
}

/// T-58: the answer may come long after the guard, the DELETE was sent before it.
#[test]
fn a_delete_that_was_sent_too_early_proves_nothing_however_late_its_answer_is() {
    let mut row = named("polling").expect("a row");
    row.guarded_until = now();
    let decision = decided(
        row,
        OrphanEvent::Answer(Box::new(answers("gone").remove(0))),
        in_minutes(600),
    );
    assert_eq!(pause(&decision), Duration::ZERO);
    assert_eq!(
        decision.next.state,
        OrphanState::Due {
            at: in_minutes(600)
        }
    );
}

/// T-71.
#[test]
fn what_waits_is_notified_and_stays_known_for_a_notice_that_was_lost() {
    let decision = answered(sending(), answers("gone").remove(0));
    let deleted = OrphanEffect::NotifyInstance(waiting(), OrphanResult::Deleted);
    assert_eq!(decision.effects, [OrphanEffect::End, deleted]);
    assert_eq!(decision.next.waiting, Some(waiting()));
}

#[test]
fn an_orphan_that_is_abandoned_later_keeps_its_round_and_names_the_person() {
    let new = NewOrphan {
        cause: OrphanCause::Abandoned,
        by: Some(person("owner")),
        waiting: None,
        ..found(CleanupMode::Automatic)
    };
    let before = named("needs operator").expect("a row");
    let decision = decided(before.clone(), OrphanEvent::Found(Box::new(new)), now());
    assert_eq!(decision.reply, OrphanReply::Joined);
    assert_eq!(decision.next.by, Some(person("owner")));
    assert_eq!(decision.next.waiting, None);
    assert_eq!(decision.next.state, before.state);
    assert_eq!(decision.next.cause, OrphanCause::FailedCreate);
}

#[test]
fn what_is_found_again_keeps_the_attempts_of_the_first_time() {
    let done = answered(sending(), answers("gone").remove(0)).next;
    let found = OrphanEvent::Found(Box::new(found(CleanupMode::Automatic)));
    let again = decided(done.clone(), found, in_minutes(5));
    assert_eq!(again.next.attempts, done.attempts);
    assert_eq!(again.next.attempts.total, 1);
    assert_eq!(again.next.found, in_minutes(5));
    assert_eq!(again.effects, [OrphanEffect::Start(Duration::ZERO)]);
}

/// P-053: the poll names the service and the plan of the DELETE.
/// Holds: P-053.
#[test]
fn an_instance_is_deprovisioned_and_a_binding_is_unbound() {
    let mut orphan = row(OrphanState::Deferred);
    assert_eq!(orphan.key.kind(), OperationKind::Deprovision);
    let operation = orphan.delete_operation(None);
    assert_eq!(operation.kind(), OperationKind::Deprovision);
    assert_eq!(operation.ids(), (&key().instance, None));
    assert_eq!(*operation.offered(), orphan.offered());

    let binding = "b-1".to_owned().try_into().expect("an id");
    orphan.key.binding = Some(binding);
    assert_eq!(orphan.key.kind(), OperationKind::Unbind);
    let operation = orphan.delete_operation(None);
    assert_eq!(operation.kind(), OperationKind::Unbind);
    assert_eq!(operation.ids().1, orphan.key.binding.as_ref());
}
