//! Rules that a table of single states and events cannot show: histories of several people, bounds, and choices of a
//! broker.

use super::fixtures::{
    NOW, context, disk, facts, instance, moment, operation, osb_id, person, policy, said, small,
};
use super::meanings::{failed, rejected, retry, succeeded};
use crate::lifecycle::instance::{
    BindingsFound, ChangeFacts, ConditionStatus, Event, Exposure, Instance, InstanceCommand,
    InstanceDecision, InstanceEffect, InstanceEventError, InstancePolicy, InstanceReply,
    IntentChange, PENDING_MAX, PreparedTurn, ResourceDetails, decide,
};
use crate::lifecycle::intent::{
    CancelledBy, DependencyReason, HoldReason, IntentCause, IntentEnd, IntentNumber, IntentState,
    OnFailure,
};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use crate::spec::Spec;
use crate::spec::samples::{label_patch, plan, plan_patch, spec};
use serde_json::json;
use sutler_client::{CleanupDuty, Meaning, RetryCause, Success};

/// An instance under decisions that must not be refused.
struct Lane {
    instance: Instance,
    policy: InstancePolicy,
    next: u64,
    /// Largest disk that the plan's schema allows.
    disk_max: u64,
    now: i64,
}

impl Lane {
    fn in_state(state: &str) -> Self {
        Self {
            instance: instance(state).expect("an instance"),
            policy: policy(),
            next: 100,
            disk_max: 1_000,
            now: NOW,
        }
    }

    fn decide(&mut self, event: Event) -> Result<InstanceDecision, InstanceEventError> {
        self.next += 1;
        let disk_max = self.disk_max;
        let fits = move |spec: &Spec| {
            let disk = spec.parameters.as_map().get("disk");
            disk.and_then(serde_json::Value::as_u64).unwrap_or(0) <= disk_max
        };
        let context = context(moment(self.now), &self.policy, self.next, &fits);
        let decision = decide(Some(self.instance.clone()), event, &context)?;
        self.instance = decision.next.clone();
        Ok(decision)
    }

    fn command(&mut self, command: InstanceCommand) -> Result<InstanceReply, InstanceEventError> {
        let decision = self.decide(Event::Command(Box::new(command)))?;
        Ok(decision.reply)
    }

    /// Accepts a change. Returns its number.
    fn accept(&mut self, command: InstanceCommand) -> u64 {
        match self.command(command) {
            Ok(InstanceReply::Accepted(number)) => number.0,
            other => panic!("it is not accepted: {other:?}"),
        }
    }

    fn send(&mut self, number: u64) -> Vec<InstanceEffect> {
        let turn = Event::Turn(IntentNumber(number), PreparedTurn::Ready);
        self.decide(turn).expect("its turn").effects
    }

    fn answer(&mut self, number: u64, meaning: Meaning<ResourceDetails>) -> Vec<InstanceEffect> {
        let event = Event::Answer(IntentNumber(number), Box::new(meaning));
        self.decide(event).expect("its answer").effects
    }

    fn state(&self, number: u64) -> Option<&IntentState> {
        let intent = self.instance.intent(IntentNumber(number));
        intent.map(|it| &it.state)
    }

    fn end(&self, number: u64) -> Option<&IntentEnd> {
        let mut ended = self.instance.ended.iter();
        let ended = ended.find(|it| it.number == IntentNumber(number));
        ended.map(|it| &it.end)
    }
}

fn patch(by: &str, size: u64) -> InstanceCommand {
    InstanceCommand::Patch(disk(size), facts(by))
}

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
    let long = "x".repeat(200_000);
    let label = |name: &str| InstanceCommand::Patch(label_patch(name, Some(&long)), facts(name));
    lane.accept(label("one"));
    assert_eq!(
        lane.command(label("two")),
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
fn a_create_whose_answer_is_lost_is_sent_again_and_then_left_to_the_ledger() {
    let mut lane = Lane::in_state("create sending");
    let taken_over = Event::Turn(IntentNumber(1), PreparedTurn::TakenOver);
    lane.decide(taken_over).expect("taken over");
    assert!(lane.send(1).contains(&InstanceEffect::Send));
    let effects = lane.answer(1, failed(CleanupDuty::Mitigate));
    let orphan = InstanceEffect::RecordOrphan(
        osb_id(1),
        OrphanCause::DoubtfulCreate,
        CleanupMode::Automatic,
    );
    assert!(effects.contains(&orphan), "{effects:?}");
    assert_eq!(lane.instance.exposure, Exposure::OnLedger);
}

#[test]
fn a_failed_create_is_left_to_a_person_if_the_broker_is_set_up_so() {
    let mut lane = Lane::in_state("create sending");
    lane.policy.manual_cleanup = true;
    let effects = lane.answer(1, failed(CleanupDuty::Mitigate));
    let orphan =
        InstanceEffect::RecordOrphan(osb_id(1), OrphanCause::FailedCreate, CleanupMode::Manual);
    assert!(effects.contains(&orphan), "{effects:?}");
    assert!(!lane.instance.waits_for_orphan);
}

#[test]
fn a_delete_that_overtakes_a_doubtful_create_is_confirmed_later() {
    let mut lane = Lane::in_state("create sending");
    lane.decide(Event::Turn(IntentNumber(1), PreparedTurn::TakenOver))
        .expect("taken over");
    let delete = lane.accept(InstanceCommand::Delete {
        by: person("ann"),
        cascade: false,
        bindings: Vec::new(),
    });
    lane.send(delete);
    let late = |effects: &[InstanceEffect]| {
        effects.iter().any(|it| {
            matches!(
                it,
                InstanceEffect::RecordOrphan(_, OrphanCause::LateCreate, _)
            )
        })
    };
    let mut much_later = Lane {
        now: NOW + 121,
        ..Lane::in_state("live")
    };
    much_later.instance = lane.instance.clone();
    assert!(late(
        &lane.answer(delete, Meaning::Succeeded(Success::Gone))
    ));
    assert!(!late(
        &much_later.answer(delete, Meaning::Succeeded(Success::Gone))
    ));
}

#[test]
fn wrong_credentials_of_a_broker_end_nothing() {
    for state in ["create sending", "update sending", "delete sending"] {
        let mut lane = Lane::in_state(state);
        lane.now = NOW + 1_000_000;
        let number = lane.instance.active().expect("active").0;
        lane.answer(number, retry(RetryCause::Unauthorized));
        assert!(lane.state(number).is_some(), "{state}");
    }
}

#[test]
fn a_delete_with_cascade_unbinds_in_the_name_of_its_author() {
    let mut lane = Lane::in_state("live");
    let delete = lane.accept(InstanceCommand::Delete {
        by: person("ben"),
        cascade: true,
        bindings: vec!["app-db".to_owned()],
    });
    let found = PreparedTurn::Bindings(BindingsFound::Left);
    let decision = lane
        .decide(Event::Turn(IntentNumber(delete), found))
        .expect("its turn");
    assert!(
        decision
            .effects
            .contains(&InstanceEffect::Unbind(person("ben")))
    );
}

#[test]
fn a_name_is_an_update_where_the_broker_wants_to_know_it() {
    let name = crate::spec::SpecPatch {
        name: Some("other".to_owned()),
        ..Default::default()
    };
    for (context_updates, is_update) in [(false, false), (true, true)] {
        let mut lane = Lane::in_state("live");
        lane.policy.context_updates = context_updates;
        let number = lane.accept(InstanceCommand::Patch(name.clone(), facts("ann")));
        let intent = lane.instance.intent(IntentNumber(number)).expect("pending");
        assert_eq!(matches!(intent.change, IntentChange::Update(_)), is_update);
    }
}
