//! When rotations, renewals and unbinds are due.

use super::answers::answer;
use super::fixtures::{DAY, NOW, context, facts, moment, osb_id, policy};
use super::states::binding;
use crate::lifecycle::binding::{
    Binding, Event, GenerationState, OVERLAP_MAX, PreparedTurn, RotationPolicy,
    RotationPolicyError, decide,
};
use proptest::prelude::*;
use std::time::Duration;

const HOUR: i64 = 3_600;

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).expect("not negative"))
}

/// A binding that was bound now, and what the broker says of its end.
fn bound(every: Option<i64>, overlap: i64, renew: Option<i64>, expires: Option<i64>) -> Binding {
    let mut it = binding("bound").expect("a binding");
    it.rotation = RotationPolicy::new(every.map(seconds), seconds(overlap)).ok();
    for generation in &mut it.generations {
        if let GenerationState::Current(details) = &mut generation.state {
            details.bound_at = moment(NOW);
            details.renew_before = renew.map(|after| moment(NOW + after));
            details.expires_at = expires.map(|after| moment(NOW + after));
        }
    }
    it
}

fn due_after(it: &Binding) -> Option<i64> {
    it.due().map(|due| due.as_second() - NOW)
}

#[test]
fn without_a_policy_a_binding_is_never_renewed() {
    let mut it = bound(None, HOUR, Some(DAY), Some(2 * DAY));
    it.rotation = None;
    assert_eq!(due_after(&it), None);
}

#[test]
fn a_binding_is_renewed_after_its_time() {
    assert_eq!(due_after(&bound(Some(DAY), HOUR, None, None)), Some(DAY));
    assert_eq!(due_after(&bound(None, HOUR, None, None)), None);
}

/// Holds: P-104.
#[test]
fn a_binding_is_renewed_shortly_before_the_broker_wants_it() {
    let it = bound(None, HOUR, Some(10 * DAY), Some(20 * DAY));
    assert_eq!(due_after(&it), Some(10 * DAY - HOUR));
    let short = bound(None, HOUR, Some(HOUR), None);
    assert_eq!(due_after(&short), Some(HOUR - HOUR / 10));
    let earlier = bound(Some(DAY), HOUR, Some(10 * DAY), None);
    assert_eq!(due_after(&earlier), Some(DAY));
}

#[test]
fn credentials_that_expire_are_replaced_before_the_overlap_begins() {
    let it = bound(None, 5 * HOUR, None, Some(10 * DAY));
    assert_eq!(due_after(&it), Some(10 * DAY - 6 * HOUR));
    let short = bound(None, 5 * HOUR, None, Some(6 * HOUR));
    assert_eq!(due_after(&short), Some(3 * HOUR), "not in the first half");
}

#[test]
fn a_binding_is_not_renewed_while_a_bind_or_a_delete_is_pending_or_there_is_no_room() {
    for state in ["rotation queued", "delete queued", "bound full", "gone"] {
        let mut it = binding(state).expect("a binding");
        it.rotation = RotationPolicy::new(Some(seconds(HOUR)), seconds(1)).ok();
        assert_eq!(it.renewal_due(), None, "{state}");
    }
}

#[test]
fn the_end_of_an_overlap_is_due_too() {
    let it = binding("bound retiring").expect("a binding");
    assert_eq!(due_after(&it), Some(DAY));
    assert_eq!(
        it.next_retirement().map(|(_, id)| id.clone()),
        Some(osb_id(1))
    );
}

/// T-89.
#[test]
fn failed_renewals_are_repeated_after_longer_and_longer_pauses() {
    let mut it = binding("bound renewal due").expect("a binding");
    let (policy, mut now) = (policy(), NOW);
    let mut pauses = Vec::new();
    for new in 0..7 {
        let context = context(moment(now), &policy, 50 + new);
        let step = |it: &Binding, event| {
            decide(Some(it.clone()), event, &context)
                .expect("not refused")
                .next
        };
        it = step(&it, Event::RenewalDue(facts()));
        let number = it.active().expect("a bind");
        it = step(&it, Event::Turn(number, PreparedTurn::Ready));
        it = step(&it, Event::Answer(number, Box::new(answer("rejected"))));
        let due = it.due().expect("it is due again").as_second();
        pauses.push((due - now) / HOUR);
        now = due;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 24, 24]);
}

#[test]
fn failed_unbinds_are_repeated_after_longer_and_longer_pauses() {
    let mut it = binding("bound retiring due").expect("a binding");
    let (policy, mut now) = (policy(), NOW);
    let mut pauses = Vec::new();
    for new in 0..3 {
        let context = context(moment(now), &policy, 50 + new);
        let step = |it: &Binding, event| {
            decide(Some(it.clone()), event, &context)
                .expect("not refused")
                .next
        };
        it = step(&it, Event::RetirementDue);
        let number = it.active().expect("an unbind");
        it = step(&it, Event::Turn(number, PreparedTurn::Ready));
        it = step(&it, Event::Answer(number, Box::new(answer("rejected"))));
        let due = it.due().expect("it is due again").as_second();
        pauses.push((due - now) / HOUR);
        now = due;
    }
    assert_eq!(pauses, [1, 2, 4]);
}

#[test]
fn a_policy_has_bounds() {
    let policy = |every: i64, overlap| RotationPolicy::new(Some(seconds(every)), overlap);
    assert!(policy(600, OVERLAP_MAX).is_ok());
    assert_eq!(policy(599, OVERLAP_MAX), Err(RotationPolicyError::TooOften));
    let longer = OVERLAP_MAX + Duration::from_nanos(1);
    assert_eq!(
        policy(600, longer),
        Err(RotationPolicyError::OverlapTooLong)
    );
    let stored = r#"{"every":{"secs":1,"nanos":0},"overlap":{"secs":1,"nanos":0}}"#;
    let read = serde_json::from_str::<RotationPolicy>(stored);
    let error = read.expect_err("too often").to_string();
    assert_eq!(
        error,
        "a binding must not be rotated more often than every 10 minutes"
    );
}

proptest! {
    /// Law: a renewal is never in the first half of the life of credentials, and never after their end.
    #[test]
    fn credentials_are_renewed_in_the_second_half_of_their_life(
        overlap in 0i64..30 * DAY,
        renew in prop::option::of(1i64..100 * DAY),
        expires in prop::option::of(1i64..100 * DAY),
    ) {
        let it = bound(None, overlap, renew, expires);
        match (due_after(&it), renew.or(expires)) {
            (Some(due), Some(life)) => prop_assert!(life / 2 <= due && due <= life),
            (due, _) => prop_assert_eq!(due, None),
        }
    }
}
