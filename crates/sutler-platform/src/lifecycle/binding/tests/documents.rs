//! What a binding keeps and shows.

use super::fixtures::{add_ended, bare, credentials};
use super::states::{STATES, binding};
use crate::lifecycle::binding::{
    ANSWER_BYTES_MAX, AnswerTooLongError, BindingBody, CredentialsAnswer, Event, IntentChange,
    Observation, PreparedTurn,
};
use crate::lifecycle::binding::{Binding, BindingPhase, ENDED_KEPT};
use crate::lifecycle::instance::ConditionStatus;
use crate::lifecycle::intent::{IntentEnd, IntentNumber};
use sutler_osb::BindResponse;

#[test]
fn credentials_are_never_shown() {
    let mut it = bare();
    super::fixtures::add_current(&mut it, 1);
    assert!(!format!("{it:?}").contains("CANARY"));
    let found = Observation::Found(BindingBody::Fit(super::fixtures::details("x")));
    let event = Event::Turn(IntentNumber(1), PreparedTurn::Observed(found));
    assert!(!format!("{event:?}").contains("CANARY"));
    assert_eq!(format!("{:?}", credentials("x")), "CredentialsAnswer(…)");
}

#[test]
fn the_answer_to_a_bind_has_a_bound() {
    let around = r#"{"syslog_drain_url":""}"#.len();
    let answer = |length| {
        CredentialsAnswer::try_from(BindResponse {
            syslog_drain_url: Some("x".repeat(length - around)),
            ..BindResponse::default()
        })
    };
    assert!(answer(ANSWER_BYTES_MAX).is_ok());
    assert_eq!(answer(ANSWER_BYTES_MAX + 1), Err(AnswerTooLongError));
}

#[test]
fn every_state_can_be_stored_and_read() {
    for it in STATES.iter().filter_map(|state| binding(state)) {
        let stored = serde_json::to_string(&it).expect("it can be stored");
        let read: Binding = serde_json::from_str(&stored).expect("it can be read");
        assert_eq!(read, it);
    }
}

#[test]
fn only_the_last_ended_intents_are_kept() {
    let mut it = bare();
    for number in 1..=100 {
        add_ended(&mut it, number, IntentChange::Delete, IntentEnd::Succeeded);
    }
    it.pending = binding("create queued").expect("a binding").pending;
    it.pending[0].number = IntentNumber(101);
    let policy = super::fixtures::policy();
    let now = super::fixtures::moment(super::fixtures::NOW);
    let context = super::fixtures::context(now, &policy, 50);
    let mut transition = crate::lifecycle::binding::transition::Transition::of(it, &context);
    transition.end(IntentNumber(101), IntentEnd::Succeeded);
    assert_eq!(transition.next.ended.len(), ENDED_KEPT);
    assert_eq!(transition.next.ended[0].number, IntentNumber(82));
}

#[test]
fn conditions_follow_from_the_document() {
    let so = |holds| match holds {
        true => ConditionStatus::True,
        false => ConditionStatus::False(""),
    };
    let word = |condition| match condition {
        ConditionStatus::False(_) => so(false),
        other => other,
    };
    for (state, phase, ready, stalled, rotating) in [
        ("new", BindingPhase::New, false, true, false),
        ("create queued", BindingPhase::Binding, false, false, false),
        ("create held", BindingPhase::Binding, false, true, false),
        ("bound", BindingPhase::Bound, true, false, false),
        ("bound stalled", BindingPhase::Bound, true, true, false),
        ("rotation polling", BindingPhase::Bound, true, false, true),
        ("rotation held", BindingPhase::Bound, true, true, true),
        ("delete polling", BindingPhase::Deleting, true, false, false),
        (
            "delete over create",
            BindingPhase::Deleting,
            false,
            false,
            false,
        ),
        ("gone", BindingPhase::Gone, false, false, false),
    ] {
        let it = binding(state).expect("a binding");
        let conditions = it.conditions();
        assert_eq!(it.phase(), phase, "{state}");
        assert_eq!(word(conditions.ready), so(ready), "{state}: ready");
        assert_eq!(word(conditions.stalled), so(stalled), "{state}: stalled");
        assert_eq!(word(conditions.rotating), so(rotating), "{state}: rotating");
        let is_deleting = phase == BindingPhase::Deleting;
        assert_eq!(
            word(conditions.deleting),
            so(is_deleting),
            "{state}: deleting"
        );
    }
}
