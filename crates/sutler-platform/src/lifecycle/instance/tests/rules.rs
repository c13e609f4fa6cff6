//! Rules that a table of single states and events cannot show: histories of several people, bounds, and choices of a
//! broker.

use super::fixtures::{disk, facts, operation, person, said, small};
use super::meanings::{rejected, succeeded};
use crate::lifecycle::instance::{
    ChangeFacts, ConditionStatus, InstanceCommand, InstanceEffect, InstanceEventError,
    InstanceReply, PENDING_MAX,
};
use crate::lifecycle::intent::{
    CancelledBy, DependencyReason, HoldReason, IntentCause, IntentEnd, IntentNumber, IntentState,
    OnFailure,
};
use crate::spec::Spec;
use crate::spec::samples::{label_patch, parameters_patch, plan, plan_patch, spec};
use serde_json::json;
use sutler_client::{Meaning, Success};

use super::lane::{Lane, patch};

/// The worked example of the facts about Service Catalog.
#[test]
fn a_forbidden_plan_change_drops_out_and_nobody_is_locked() {
    let mut lane = Lane::in_state("live");
    let plan_change = lane.accept(InstanceCommand::Patch(plan_patch("large"), facts("ben")));
    let disk_change = lane.accept(patch("ann", 50));
    let label = InstanceCommand::Patch(label_patch("team", Some("x")), facts("cem"));
    let label = lane.accept(label);
    assert_eq!((plan_change, disk_change, label), (2, 3, 4));
    let shown = lane.instance.projection().spec;
    assert_eq!(shown.plan, plan("large"));
    assert_eq!(lane.instance.conditions().ready, ConditionStatus::True);
    assert_eq!(
        lane.instance.conditions().synced,
        ConditionStatus::False("Pending")
    );

    assert!(lane.send(2).contains(&InstanceEffect::Send));
    let effects = lane.answer(2, rejected(403));
    assert_eq!(lane.end(2), Some(&IntentEnd::Rejected(said(403))));
    assert_eq!(lane.end(4), Some(&IntentEnd::Succeeded));
    let reason = HoldReason::DependsOn {
        dropped: IntentNumber(2),
        because: DependencyReason::PlanChange,
    };
    assert_eq!(lane.state(3), Some(&IntentState::OnHold(reason)));
    assert!(
        !effects
            .iter()
            .any(|it| matches!(it, InstanceEffect::Wake(_)))
    );
    let shown = lane.instance.projection().spec;
    assert_eq!(shown, small().apply(&label_patch("team", Some("x"))));
    let conditions = lane.instance.conditions();
    assert_eq!(conditions.ready, ConditionStatus::True);
    assert_eq!(conditions.synced, ConditionStatus::False("OnHold"));
    assert_eq!(conditions.stalled, ConditionStatus::True);
    assert_eq!(lane.instance.generation, 4);

    let resumed = lane.accept(InstanceCommand::Resume(IntentNumber(3), facts("ann")));
    assert_eq!(resumed, 5);
    assert_eq!(lane.end(3), Some(&IntentEnd::Superseded(IntentNumber(5))));
    let intent = lane.instance.intent(IntentNumber(5)).expect("pending");
    assert_eq!(intent.author, person("ann"));
    assert_eq!(intent.cause, IntentCause::Resume(IntentNumber(3)));
    lane.send(5);
    lane.answer(5, succeeded());
    let confirmed = lane.instance.confirmed().expect("live").spec.clone();
    assert_eq!(
        confirmed,
        small()
            .apply(&label_patch("team", Some("x")))
            .apply(&disk(50))
    );
    assert_eq!(lane.instance.conditions().synced, ConditionStatus::True);
}

#[test]
fn a_forbidden_delete_leaves_everything_and_others_go_on() {
    let mut lane = Lane::in_state("live");
    let change = lane.accept(patch("ann", 50));
    let own = lane.accept(InstanceCommand::Patch(
        label_patch("team", Some("b")),
        facts("ben"),
    ));
    let delete = lane.accept(InstanceCommand::Delete {
        by: person("ben"),
        cascade: false,
        bindings: Vec::new(),
    });
    assert_eq!(lane.state(change), Some(&IntentState::Suspended));
    lane.send(delete);
    let effects = lane.answer(delete, rejected(403));
    assert!(effects.contains(&InstanceEffect::Wake(operation(101))));
    assert_eq!(
        lane.state(change),
        Some(&IntentState::Queued { last: None })
    );
    let by_delete = IntentEnd::Cancelled(CancelledBy::Delete(IntentNumber(delete)));
    assert_eq!(lane.end(own), Some(&by_delete));
    assert_eq!(lane.instance.conditions().ready, ConditionStatus::True);
    assert!(lane.instance.deletion.is_none());
}

#[test]
fn a_rejected_change_is_not_sent_again_unless_something_is_different() {
    let mut lane = Lane::in_state("live");
    let first = lane.accept(patch("git", 50));
    lane.send(first);
    lane.answer(first, rejected(400));
    for _ in 0..100 {
        let again = lane.command(InstanceCommand::Apply(
            "git".to_owned(),
            small().apply(&disk(50)),
            facts("git"),
        ));
        assert_eq!(
            again,
            Err(InstanceEventError::RejectedBefore(IntentNumber(first)))
        );
    }
    let with = |change: &dyn Fn(&mut ChangeFacts)| {
        let mut facts = facts("git");
        change(&mut facts);
        InstanceCommand::Patch(disk(50), facts)
    };
    let mut other_catalog = Lane {
        instance: lane.instance.clone(),
        ..Lane::in_state("live")
    };
    other_catalog.accept(with(&|facts| facts.catalog_revision = 2));
    lane.accept(with(&|facts| facts.request.forced = true));
}

#[test]
fn the_33rd_pending_change_is_refused_and_a_delete_is_not() {
    let mut lane = Lane::in_state("live");
    for number in 0..PENDING_MAX {
        let author = format!("author-{number}");
        lane.accept(patch(&author, 100 + number as u64));
    }
    assert_eq!(
        lane.command(patch("one-more", 7)),
        Err(InstanceEventError::TooManyPending)
    );
    let delete = lane.accept(InstanceCommand::Delete {
        by: person("ann"),
        cascade: false,
        bindings: Vec::new(),
    });
    let effects = lane.send(delete);
    assert!(effects.contains(&InstanceEffect::Send));
    let effects = lane.answer(delete, Meaning::Succeeded(Success::Gone));
    let ends = effects
        .iter()
        .filter(|it| matches!(it, InstanceEffect::End(..)));
    assert_eq!(ends.count(), PENDING_MAX + 1);
}

#[test]
fn patches_over_the_bound_of_bytes_are_refused() {
    let mut lane = Lane::in_state("live");
    let change = |name: &str| {
        let patch = parameters_patch(json!({"text": name.repeat(33_000)}));
        InstanceCommand::Patch(patch, facts(name))
    };
    lane.accept(change("one"));
    lane.accept(change("two"));
    assert_eq!(
        lane.command(change("ten")),
        Err(InstanceEventError::TooManyPending)
    );
}

#[test]
fn a_halting_change_holds_everything_behind_it() {
    let mut lane = Lane::in_state("live");
    let mut halting = facts("ann");
    halting.request.on_failure = OnFailure::Halt;
    let first = lane.accept(InstanceCommand::Patch(disk(20), halting));
    let label = lane.accept(InstanceCommand::Patch(
        label_patch("a", Some("b")),
        facts("ben"),
    ));
    lane.send(first);
    lane.answer(first, rejected(400));
    let halted = IntentState::OnHold(HoldReason::HaltedBy(IntentNumber(first)));
    assert_eq!(lane.state(label), Some(&halted));
}

#[test]
fn a_change_that_fits_no_schema_without_the_dropped_one_is_held() {
    let mut lane = Lane::in_state("live");
    lane.disk_max = 15;
    let first = lane.accept(InstanceCommand::Patch(plan_patch("large"), facts("ben")));
    let later = lane.accept(patch("cem", 50));
    lane.instance.pending[1].stands_on.clear();
    lane.send(first);
    lane.answer(first, rejected(403));
    let reason = HoldReason::DependsOn {
        dropped: IntentNumber(first),
        because: DependencyReason::SchemaMismatch,
    };
    assert_eq!(lane.state(later), Some(&IntentState::OnHold(reason)));
}

#[test]
fn an_exclusive_broker_refuses_a_second_change_while_one_is_pending() {
    let mut lane = Lane::in_state("live");
    lane.policy.exclusive = true;
    lane.accept(patch("ann", 20));
    assert_eq!(
        lane.command(patch("ben", 30)),
        Err(InstanceEventError::Busy)
    );
}

#[test]
fn two_managers_never_undo_each_other() {
    let mut lane = Lane::in_state("live");
    let with_disk = small().apply(&disk(40));
    let mut with_label = spec("small", json!({}));
    with_label.labels.insert("team".to_owned(), "x".to_owned());
    let apply = |name: &str, spec: &Spec| {
        InstanceCommand::Apply(name.to_owned(), spec.clone(), facts(name))
    };
    lane.accept(apply("disk", &with_disk));
    lane.accept(apply("label", &with_label));
    for _ in 0..5 {
        assert_eq!(
            lane.command(apply("disk", &with_disk)),
            Ok(InstanceReply::Done)
        );
        assert_eq!(
            lane.command(apply("label", &with_label)),
            Ok(InstanceReply::Done)
        );
    }
    let shown = lane.instance.projection().spec;
    assert_eq!(shown.parameters, with_disk.parameters);
    assert_eq!(shown.labels, with_label.labels);
}

#[test]
fn a_rollback_leads_back_to_what_an_intent_confirmed() {
    let mut lane = Lane::in_state("live");
    for size in [20, 30] {
        let number = lane.accept(patch("ann", size));
        lane.send(number);
        lane.answer(number, succeeded());
    }
    let back = lane.accept(InstanceCommand::Rollback(IntentNumber(2), facts("ben")));
    assert_eq!(lane.instance.projection().spec, small().apply(&disk(20)));
    lane.send(back);
    lane.answer(back, succeeded());
    assert_eq!(
        lane.command(InstanceCommand::Rollback(IntentNumber(77), facts("ben"))),
        Err(InstanceEventError::NotKept(IntentNumber(77)))
    );
}

#[test]
fn the_same_command_with_a_key_begins_one_intent() {
    let mut lane = Lane::in_state("new");
    let mut keyed = facts("ben");
    keyed.request.idempotency_key = Some("k".to_owned());
    let first = lane.command(InstanceCommand::Patch(disk(20), keyed.clone()));
    let again = lane.command(InstanceCommand::Retry(IntentNumber(1), keyed));
    assert_eq!(first, Ok(InstanceReply::Accepted(IntentNumber(2))));
    assert_eq!(again, Ok(InstanceReply::AcceptedBefore(IntentNumber(2))));
}
