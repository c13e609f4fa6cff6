//! What the table cannot show: ids, targets, authors, causes, and events that follow one another.

use super::answers::answer;
use super::fixtures::{NOW, context, create_request, facts, moment, osb_id, person, policy};
use super::states::awaited;
use super::steps::{active, answered, decided, decided_with, of_person, orphans, state, turn};
use crate::lifecycle::binding::{
    BindFacts, Binding, BindingCommand, BindingEventError, BindingPhase, Event, GenerationPhase,
    GenerationState, IntentCause, IntentChange, RotateRequest, TargetResource, decide,
};
use crate::lifecycle::instance::SECRETS_MAX;
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::orphan::{CleanupMode, OrphanResult};
use crate::spec::ParameterSource;
use sutler_osb::NonEmptyText;

fn rotate(facts: BindFacts) -> Event {
    of_person(BindingCommand::Rotate(RotateRequest {
        by: person("ben"),
        idempotency_key: None,
        facts,
    }))
}

fn target(it: &Binding) -> Option<String> {
    let deletion = it.deletion.as_ref().expect("a delete");
    deletion.target.as_ref().map(|id| id.as_str().to_owned())
}

fn created(chosen: Option<u64>) -> Binding {
    let mut request = create_request(facts());
    request.osb_id = chosen.map(osb_id);
    let create = of_person(BindingCommand::Create(Box::new(request)));
    let decision = decide(None, create, &context(moment(NOW), &policy(), 10));
    decision.expect("it is created").next
}

/// Every secret is one write of the commit that ends the binding, and a commit has a hundred.
#[test]
fn a_binding_of_more_secrets_than_its_end_can_free_is_refused() {
    let mut request = create_request(facts());
    let sources = (0..=SECRETS_MAX).map(|n| ParameterSource {
        secret: format!("secret-{n}"),
        key: None,
        watch: false,
    });
    request.spec.parameter_sources = sources.collect();
    let create = of_person(BindingCommand::Create(Box::new(request)));
    let refused = decide(None, create, &context(moment(NOW), &policy(), 10));
    let Err(BindingEventError::Violations(violations)) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!(violations[0].pointer, "/parametersFrom");
}

fn ids(it: &Binding) -> Vec<&str> {
    it.generations.iter().map(|it| it.osb_id.as_str()).collect()
}

/// Source: T-87, I-10.
#[test]
fn a_delete_unbinds_what_was_replaced_first_and_the_current_generation_last() {
    let mut it = turn(state("delete several")).next;
    assert_eq!(target(&it).as_deref(), Some("osb-1"));
    assert_eq!(
        it.generation_phase(&osb_id(1)),
        Some(GenerationPhase::Unbinding)
    );
    it = answered(it, "gone", 51).next;
    assert_eq!(target(&it), None);
    it = turn(it).next;
    assert_eq!(target(&it).as_deref(), Some("osb-4"));
    it = answered(it, "rejected", 52).next;
    assert_eq!(ids(&it), ["osb-4"]);
    assert_eq!(
        it.generation_phase(&osb_id(4)),
        Some(GenerationPhase::Current)
    );
    assert_eq!(it.phase(), BindingPhase::Bound);
}

#[test]
fn a_delete_over_a_rotation_unbinds_the_new_generation_first() {
    let it = turn(state("delete over rotation")).next;
    assert_eq!(target(&it).as_deref(), Some("osb-2"));
    let it = answered(it, "rejected", 51).next;
    assert_eq!(it.active(), Some(IntentNumber(2)), "the rotation goes on");
}

#[test]
fn with_manual_cleanup_the_ledger_keeps_what_failed_and_nothing_waits_for_it() {
    let mut policy = policy();
    policy.manual_cleanup = true;
    let it = state("create sending");
    let event = Event::Answer(active(&it), Box::new(answer("failed, mitigate")));
    let decision = decided_with(it, event, 50, &policy);
    let orphan = orphans(&decision).pop().expect("an orphan");
    assert_eq!(orphan.cleanup, CleanupMode::Manual);
    assert!(!decision.next.waits_for_orphan);
}

/// T-71.
#[test]
fn a_failed_bind_is_repeated_three_times_in_the_name_of_its_author_each_under_a_new_id() {
    let mut it = created(None);
    let mut used = vec!["osb-10".to_owned()];
    for new in 20..23 {
        it = answered(turn(it).next, "failed, mitigate", 60).next;
        let deleted = Event::OrphanSettled(awaited(Some(&it)), OrphanResult::Deleted);
        it = decided(it, deleted, new).next;
        let bind = it.pending_bind().expect("it is repeated");
        assert_eq!(bind.author, person("ann"));
        assert!(matches!(bind.cause, IntentCause::AutoRetry(_)));
        used.extend(ids(&it).into_iter().map(str::to_owned));
    }
    assert_eq!(used, ["osb-10", "osb-20", "osb-21", "osb-22"]);
    it = answered(turn(it).next, "failed, mitigate", 61).next;
    let deleted = Event::OrphanSettled(awaited(Some(&it)), OrphanResult::Deleted);
    it = decided(it, deleted, 70).next;
    assert_eq!(it.pending, []);
    assert_eq!(it.phase(), BindingPhase::New);
}

#[test]
fn an_orphan_of_an_earlier_bind_is_not_taken_for_the_one_that_is_waited_for() {
    let it = answered(turn(created(None)).next, "failed, mitigate", 60).next;
    let first = awaited(Some(&it));
    let deleted = Event::OrphanSettled(first.clone(), OrphanResult::Deleted);
    let it = decided(it, deleted.clone(), 20).next;
    let it = answered(turn(it).next, "failed, mitigate", 61).next;
    assert!(it.waits_for_orphan && it.awaited_orphan != Some(first));
    let policy = policy();
    let late = decide(Some(it), deleted, &context(moment(NOW), &policy, 62));
    assert_eq!(late.err(), Some(BindingEventError::OutOfDate));
}

/// Holds: P-007.
#[test]
fn a_chosen_id_is_used_until_it_may_exist_at_the_broker_for_nothing() {
    let it = created(Some(5));
    assert_eq!(ids(&it), ["osb-5"]);
    let mut it = answered(turn(it).next, "rejected", 60).next;
    let retry = |it: &Binding| {
        let last = it.ended.back().expect("it ended").number;
        of_person(BindingCommand::Retry(last, person("ben"), facts()))
    };
    let event = retry(&it);
    it = decided(it, event, 61).next;
    assert_eq!(ids(&it), ["osb-5"], "the broker never had it");
    it = answered(turn(it).next, "failed, mitigate", 62).next;
    let event = retry(&it);
    it = decided(it, event, 63).next;
    assert_eq!(ids(&it), ["osb-63"]);
    let it = answered(turn(created(Some(5))).next, "succeeded", 60).next;
    let it = decided(it, rotate(facts()), 64).next;
    assert_eq!(ids(&it), ["osb-5", "osb-64"]);
}

/// Holds: P-111.
#[test]
fn a_rotation_names_its_predecessor_only_while_that_works() {
    let rotatable = || BindFacts {
        rotatable: true,
        ..facts()
    };
    let predecessor = |expires_at: i64| {
        let mut it = answered(state("create sending"), "succeeded", 50).next;
        for generation in &mut it.generations {
            if let GenerationState::Current(details) = &mut generation.state {
                details.expires_at = Some(moment(expires_at));
            }
        }
        let next = decided(it, rotate(rotatable()), 51).next;
        let bind = next.pending_bind().and_then(|it| it.change.bind());
        bind.and_then(|bind| bind.predecessor.clone())
    };
    assert_eq!(predecessor(NOW + 1), Some(osb_id(1)));
    assert_eq!(predecessor(NOW), None);
}

/// Holds: P-105.
#[test]
fn an_application_is_named_once_and_by_all_later_binds() {
    let it = answered(turn(created(None)).next, "requires app", 50).next;
    assert_eq!(it.spec.target, TargetResource::Application);
    let refused = answered(turn(it.clone()).next, "requires app", 51).next;
    assert_eq!(refused.pending, []);
    let it = answered(turn(it).next, "succeeded", 52).next;
    let it = decided(it, rotate(facts()), 53).next;
    assert_eq!(it.spec.target, TargetResource::Application);
}

#[test]
fn a_binding_of_a_route_names_no_application() {
    let mut it = turn(created(None)).next;
    let route: NonEmptyText = "app.example".try_into().expect("a text");
    it.spec.target = TargetResource::Route(route);
    let it = answered(it, "requires app", 50).next;
    assert_eq!(it.pending, []);
    assert!(matches!(it.spec.target, TargetResource::Route(_)));
}

#[test]
fn the_expiry_chore_acts_in_the_name_of_the_author_of_the_binding() {
    let mut due = state("bound renewal due");
    due.author = person("cem");
    let renewed = decided(due, Event::RenewalDue(facts()), 50).next;
    let mut due = state("bound retiring due");
    due.author = person("cem");
    let retired = decided(due, Event::RetirementDue, 50).next;
    for (it, cause) in [
        (renewed, IntentCause::Renewal),
        (retired, IntentCause::Retirement),
    ] {
        assert_eq!(it.pending[0].author, person("cem"));
        assert_eq!(it.pending[0].cause, cause);
    }
}

/// T-54: the deletion of an instance ends if one of its bindings cannot be deleted.
#[test]
fn a_delete_that_failed_shows_whether_the_deletion_of_the_instance_caused_it() {
    let failed = |command| {
        let it = decided(state("bound"), of_person(command), 50).next;
        answered(turn(it).next, "rejected", 51).next
    };
    let cascade = failed(BindingCommand::Cascade(person("ben")));
    assert_eq!(cascade.failed_cascade(), Some(moment(NOW)));
    assert_eq!(
        cascade.ended.back().expect("it ended").author,
        person("ben")
    );
    let alone = failed(BindingCommand::Delete(person("ben")));
    assert_eq!(alone.failed_cascade(), None);
    let again = decided(
        cascade,
        of_person(BindingCommand::Cascade(person("ben"))),
        52,
    )
    .next;
    assert_eq!(again.failed_cascade(), None);
}

#[test]
fn a_rotation_of_a_full_binding_is_refused_with_what_to_do() {
    let policy = policy();
    let context = context(moment(NOW), &policy, 50);
    let refused = decide(Some(state("bound full")), rotate(facts()), &context);
    let refused = refused.expect_err("there is no room");
    assert_eq!(refused, BindingEventError::TooManyGenerations);
    assert_eq!(
        refused.to_string(),
        "4 generations of the credentials exist already; wait until replaced ones are unbound, or \
         shorten the overlap"
    );
}

#[test]
fn a_delete_waits_for_the_unbind_of_a_retiring_generation_and_does_not_repeat_it() {
    let it = answered(state("delete behind retirement polling"), "gone", 50).next;
    assert_eq!(ids(&it), ["osb-4"]);
    let it = turn(it).next;
    assert_eq!(target(&it).as_deref(), Some("osb-4"));
    assert!(matches!(it.pending[0].change, IntentChange::Delete));
    assert!(matches!(it.pending[0].state, IntentState::Sending { .. }));
}
