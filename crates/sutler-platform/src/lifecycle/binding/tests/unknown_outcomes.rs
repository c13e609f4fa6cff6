//! Requests whose outcome is not known: what they may have done is never forgotten.

use super::fixtures::{NOW, facts, moment, osb_id, person};
use super::steps::{answered, decided, of_person, orphans, state, turn};
use crate::lifecycle::binding::{
    Binding, BindingCommand, BindingDecision, BindingPhase, BindingReply,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanCause;

fn commanded(it: Binding, command: BindingCommand) -> BindingDecision {
    decided(it, of_person(command), 50)
}

/// T-58.
#[test]
fn a_generation_that_is_gone_while_its_bind_may_still_arrive_is_unbound_once_more() {
    let it = commanded(
        state("create unknown"),
        BindingCommand::Delete(person("ben")),
    );
    let decision = answered(turn(it.next).next, "gone", 52);
    let orphan = orphans(&decision).pop().expect("an orphan");
    assert_eq!(orphan.cause, OrphanCause::LateCreate);
    assert_eq!(orphan.guarded_until, Some(moment(NOW - 10 + 120)));
    assert_eq!(decision.next.phase(), BindingPhase::Gone);
}

#[test]
fn a_success_in_doubt_keeps_the_guard_against_an_earlier_attempt() {
    for (state_name, guarded) in [("create sending in doubt", 1), ("create sending", 0)] {
        let it = answered(state(state_name), "succeeded", 52).next;
        let it = commanded(it, BindingCommand::Delete(person("ben"))).next;
        let decision = answered(turn(it).next, "gone", 52);
        assert_eq!(orphans(&decision).len(), guarded, "{state_name}");
    }
}

#[test]
fn a_bind_in_doubt_that_is_resumed_keeps_its_id_and_its_doubt() {
    let resume = BindingCommand::Resume(IntentNumber(1), person("ben"), facts());
    let it = commanded(state("create held in doubt"), resume).next;
    assert_eq!(it.generations.len(), 1);
    assert!(it.pending[0].in_doubt && it.generation(&osb_id(1)).is_some());
    let decision = answered(turn(it).next, "rejected", 52);
    assert_eq!(
        orphans(&decision).len(),
        1,
        "an earlier attempt may have had an effect"
    );
}

/// T-29.
#[test]
fn a_delete_in_doubt_is_not_taken_back_before_the_broker_refuses() {
    let it = answered(state("delete sending in doubt"), "busy", 52).next;
    assert!(matches!(it.pending[0].state, IntentState::Queued { .. }));
    let noted = commanded(it, BindingCommand::Undelete(person("ann")));
    assert_eq!(noted.reply, BindingReply::Noted);
    let it = answered(turn(noted.next).next, "rejected", 52).next;
    assert_eq!(it.phase(), BindingPhase::Bound);
}

/// I-5.
#[test]
fn a_bind_in_doubt_below_a_refused_delete_of_its_author_is_not_forgotten() {
    let mut it = state("delete over rotation sending");
    it.pending[0].state = IntentState::Suspended;
    it.pending[0].in_doubt = true;
    let it = answered(it, "rejected", 52).next;
    assert_eq!(it.pending, [], "its author deleted the binding after it");
    let leftover = it.generation(&osb_id(2)).expect("a leftover");
    assert!(leftover.may_exist() && leftover.bound().is_none());
    let decision = commanded(it, BindingCommand::Abandon(person("ben").into()));
    assert_eq!(orphans(&decision).len(), 2);
}
