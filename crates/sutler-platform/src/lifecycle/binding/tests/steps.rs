//! Single steps of a binding, at the usual moment and with the usual choices.

use super::answers::answer;
use super::fixtures::{NOW, context, moment, policy};
use super::states::binding;
use crate::lifecycle::binding::{
    Binding, BindingCommand, BindingDecision, BindingEffect, BindingOrphan, BindingPolicy, Event,
    PreparedTurn, decide,
};
use crate::lifecycle::intent::IntentNumber;

/// The binding in a state of the table.
pub(super) fn state(name: &str) -> Binding {
    binding(name).expect("a binding")
}

/// Decides an event; new ids have the number.
pub(super) fn decided(it: Binding, event: Event, new: u64) -> BindingDecision {
    decided_with(it, event, new, &policy())
}

pub(super) fn decided_with(
    it: Binding,
    event: Event,
    new: u64,
    policy: &BindingPolicy,
) -> BindingDecision {
    decide(Some(it), event, &context(moment(NOW), policy, new)).expect("it is not refused")
}

pub(super) fn active(it: &Binding) -> IntentNumber {
    it.active().expect("an active intent")
}

/// The turn of the active intent.
pub(super) fn turn(it: Binding) -> BindingDecision {
    let number = active(&it);
    decided(it, Event::Turn(number, PreparedTurn::Ready), 50)
}

/// An answer to the active intent.
pub(super) fn answered(it: Binding, name: &str, new: u64) -> BindingDecision {
    let number = active(&it);
    decided(it, Event::Answer(number, Box::new(answer(name))), new)
}

pub(super) fn of_person(command: BindingCommand) -> Event {
    Event::Command(Box::new(command))
}

/// What a decision puts on the orphan ledger.
pub(super) fn orphans(decision: &BindingDecision) -> Vec<BindingOrphan> {
    let orphan = |effect: &BindingEffect| match effect {
        BindingEffect::RecordOrphan(orphan) => Some((**orphan).clone()),
        _ => None,
    };
    decision.effects.iter().filter_map(orphan).collect()
}
