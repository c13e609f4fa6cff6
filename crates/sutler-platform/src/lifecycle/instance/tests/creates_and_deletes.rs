//! Creates and deletes that a table cannot show: what goes to the ledger, and what waits for it.

use super::fixtures::{NOW, disk, facts, osb_id, person, small};
use super::meanings::{failed, message, retry};
use crate::lifecycle::instance::{
    BindingsFound, Event, Exposure, InstanceCommand, InstanceEffect, InstanceEventError,
    IntentChange, Origin, PreparedTurn,
};
use crate::lifecycle::intent::{IntentEnd, IntentNumber};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause, OrphanResult};
use sutler_client::{CleanupDuty, Meaning, NextQuestion, RetryCause, Success};

use super::lane::{Lane, orphans, patch};

#[test]
fn a_create_whose_answer_is_lost_is_sent_again_and_then_left_to_the_ledger() {
    let mut lane = Lane::in_state("create sending");
    let taken_over = Event::Turn(IntentNumber(1), PreparedTurn::TakenOver);
    lane.decide(taken_over).expect("taken over");
    assert!(lane.send(1).contains(&InstanceEffect::Send));
    let effects = lane.answer(1, failed(CleanupDuty::Mitigate));
    assert_eq!(
        orphans(&effects),
        [(
            osb_id(1),
            OrphanCause::DoubtfulCreate,
            CleanupMode::Automatic
        )]
    );
    assert_eq!(lane.instance.exposure, Exposure::OnLedger);
}

#[test]
fn a_failed_create_is_left_to_a_person_if_the_broker_is_set_up_so() {
    let mut lane = Lane::in_state("create sending");
    lane.policy.manual_cleanup = true;
    let effects = lane.answer(1, failed(CleanupDuty::Mitigate));
    assert_eq!(
        orphans(&effects),
        [(osb_id(1), OrphanCause::FailedCreate, CleanupMode::Manual)]
    );
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
        orphans(effects)
            .iter()
            .any(|it| it.1 == OrphanCause::LateCreate)
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

#[test]
fn a_create_under_a_chosen_id_waits_until_the_ledger_has_deleted_what_may_exist() {
    let mut lane = Lane::in_state("new may exist");
    lane.instance.osb_id_is_chosen = true;
    let create = lane.accept(InstanceCommand::Retry(IntentNumber(1), facts("ben")));
    assert_eq!(lane.instance.osb_id, osb_id(1));
    assert_eq!(lane.instance.active(), None);
    lane.settle(OrphanResult::LeftToOperator);
    assert_eq!(lane.instance.active(), None);
    lane.settle(OrphanResult::Deleted);
    assert_eq!(lane.instance.active(), Some(IntentNumber(create)));
}

#[test]
fn a_change_while_a_create_will_be_repeated_goes_behind_the_older_ones() {
    let mut lane = Lane::in_state("create sending");
    lane.accept(patch("ann", 50));
    lane.answer(1, failed(CleanupDuty::Mitigate));
    lane.accept(patch("ben", 100));
    let shown = lane.instance.projection().spec;
    assert_eq!(shown, small().apply(&disk(100)));
    lane.settle(OrphanResult::Deleted);
    let create = lane.instance.active().expect("the create is repeated");
    assert_eq!(
        lane.instance.intent(create).map(|it| &it.author),
        Some(&person("ann"))
    );
}

#[test]
fn a_create_that_was_taken_back_is_not_repeated_in_the_name_of_another_person() {
    let mut lane = Lane::in_state("new on ledger");
    let create = lane.accept(patch("ben", 20));
    lane.command(InstanceCommand::Cancel(IntentNumber(create), person("ben")))
        .expect("taken back");
    lane.settle(OrphanResult::Deleted);
    assert_eq!(lane.instance.pending, []);
}

#[test]
fn an_orphan_of_an_earlier_create_is_not_taken_for_the_one_that_is_waited_for() {
    let mut lane = Lane::in_state("create sending");
    let first = lane.instance.osb_id.clone();
    lane.answer(1, failed(CleanupDuty::Mitigate));
    lane.settle(OrphanResult::LeftToOperator);
    let again = lane.accept(InstanceCommand::Retry(IntentNumber(1), facts("ben")));
    lane.send(again);
    lane.answer(again, failed(CleanupDuty::Mitigate));
    assert!(lane.instance.waits_for_orphan);
    let before = lane.instance.clone();
    // A person asked for another round of the first one.
    let late = lane.decide(Event::OrphanSettled(first, OrphanResult::Deleted));
    assert_eq!(late.err(), Some(InstanceEventError::OutOfDate));
    assert_eq!(lane.instance, before);
    lane.settle(OrphanResult::Deleted);
    assert!(!lane.instance.waits_for_orphan);
}

#[test]
fn an_abandoned_instance_that_existed_before_is_left_to_a_person() {
    let mut lane = Lane::in_state("live");
    lane.instance.origin = Origin::Adopted;
    let abandon = InstanceCommand::Abandon(person("ann").into());
    let decision = lane
        .decide(Event::Command(Box::new(abandon)))
        .expect("abandoned");
    let expected = (osb_id(1), OrphanCause::Abandoned, CleanupMode::Manual);
    assert_eq!(orphans(&decision.effects), [expected]);
}

#[test]
fn silence_beyond_the_time_for_all_attempts_ends_an_intent() {
    for (state, left) in [
        ("update sending", true),
        ("delete sending", true),
        ("create sending", false),
    ] {
        let mut lane = Lane::in_state(state);
        let number = lane.instance.active().expect("active").0;
        lane.now = NOW + 90_000;
        let unknown = Meaning::Unknown {
            question: NextQuestion::SendAgain,
            message: message(504, true),
        };
        lane.answer(number, unknown);
        assert!(
            matches!(lane.end(number), Some(IntentEnd::Failed(_))),
            "{state}"
        );
        assert_eq!(lane.instance.confirmed().is_some(), left, "{state}");
    }
}

#[test]
fn a_failed_delete_is_not_repeated_while_the_instance_is_protected() {
    let mut lane = Lane::in_state("delete sending");
    lane.answer(9, failed(CleanupDuty::StillThere));
    lane.command(InstanceCommand::Protect(true))
        .expect("protected");
    let retry = InstanceCommand::Retry(IntentNumber(9), facts("ben"));
    assert_eq!(lane.command(retry), Err(InstanceEventError::Protected));
}

#[test]
fn a_new_name_is_taken_at_once_and_the_old_one_freed_when_it_is_confirmed() {
    let named = |name: &str| crate::spec::SpecPatch {
        name: Some(name.to_owned()),
        ..Default::default()
    };
    let mut lane = Lane::in_state("live");
    let change = Box::new(InstanceCommand::Patch(named("other"), facts("ann")));
    let accepted = lane.decide(Event::Command(change)).expect("accepted");
    let taken = InstanceEffect::TakeName("other".to_owned());
    assert!(accepted.effects.contains(&taken), "{:?}", accepted.effects);
    let effects = lane.send(2);
    assert!(
        effects.contains(&InstanceEffect::FreeName("db".to_owned())),
        "{effects:?}"
    );
    let abandon = Box::new(InstanceCommand::Abandon(person("ann").into()));
    let effects = lane
        .decide(Event::Command(abandon))
        .expect("abandoned")
        .effects;
    let freed = effects
        .iter()
        .filter(|it| matches!(it, InstanceEffect::FreeName(_)));
    assert_eq!(
        freed.collect::<Vec<_>>(),
        [&InstanceEffect::FreeName("other".to_owned())]
    );
}
