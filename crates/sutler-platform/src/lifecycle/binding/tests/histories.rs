//! Random histories of a binding: the invariants of `world.rs` hold after every step.
//!
//! People and the expiry chore interfere, operations are claimed, binds arrive late. The broker is in `broker.rs`.

use super::fixtures::{facts, osb_id, person, request_key};
use super::world::World;
use crate::lifecycle::binding::{
    BindFacts, BindingCommand, BindingEffect, BindingEventError, Event, InstanceReadiness,
    PreparedTurn, RotateRequest,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanResult;
use proptest::prelude::*;

impl World {
    /// A person or the expiry chore asks for something.
    fn command(&mut self, which: u8, detail: u8) {
        let by = person(["ann", "ben", "cem"][usize::from(detail) % 3]);
        let it = &self.binding;
        let first = it.pending.first().map_or(IntentNumber(1), |it| it.number);
        let held = it.pending.iter();
        let held = held
            .clone()
            .find(|it| matches!(it.state, IntentState::OnHold(_)));
        let held = held.map_or(first, |it| it.number);
        let last = it.ended.back().map_or(IntentNumber(1), |it| it.number);
        let facts = BindFacts {
            rotatable: detail.is_multiple_of(2),
            instance: match detail % 8 {
                0 => InstanceReadiness::NotLiveYet,
                1 => InstanceReadiness::Unusable,
                _ => InstanceReadiness::Live,
            },
            ..facts()
        };
        let event = match which % 12 {
            0 | 1 => {
                let idempotency_key =
                    (detail.is_multiple_of(4)).then(|| request_key(&detail.to_string()));
                let request = RotateRequest {
                    by,
                    idempotency_key,
                    facts,
                };
                of_person(BindingCommand::Rotate(request))
            }
            2 => Event::RenewalDue(facts),
            3 | 4 => Event::RetirementDue,
            5 => Event::InstanceLive,
            6 if detail.is_multiple_of(2) => of_person(BindingCommand::Delete(by)),
            6 => of_person(BindingCommand::Cascade(by)),
            7 => of_person(BindingCommand::Undelete(by)),
            8 => of_person(BindingCommand::Cancel(first, by)),
            9 => of_person(BindingCommand::Resume(held, by, facts)),
            10 => of_person(BindingCommand::Retry(last, by, facts)),
            _ if detail > 250 => of_person(BindingCommand::Abandon(by.into())),
            _ => of_person(BindingCommand::Cancel(last, by)),
        };
        let is_abandoned =
            matches!(&event, Event::Command(it) if matches!(**it, BindingCommand::Abandon(_)));
        let decided = self.step(event);
        assert!(!is_abandoned || decided.is_ok());
    }

    /// The operation of the active intent is claimed.
    fn turn(&mut self, detail: u8) {
        let it = &self.binding;
        let Some(intent) = it.active().and_then(|number| it.intent(number)).cloned() else {
            return;
        };
        let number = intent.number;
        let is_bind = intent.change.bind().is_some();
        let prepared = match (&intent.state, detail % 16) {
            (IntentState::Sending { .. }, 0) => PreparedTurn::TakenOverTooOften,
            (IntentState::Sending { .. }, _) => PreparedTurn::TakenOver,
            (IntentState::Queued { .. }, 0) if is_bind => {
                PreparedTurn::Unresolved("a secret".to_owned())
            }
            (IntentState::Queued { .. }, 1) if is_bind => PreparedTurn::InstanceNotReady,
            (IntentState::Queued { .. }, 2) => PreparedTurn::InstanceBusy,
            (_, 3) if detail == 243 => PreparedTurn::InstanceGone,
            _ => PreparedTurn::Ready,
        };
        let effects = self
            .step(Event::Turn(number, prepared))
            .expect("it has its turn");
        if effects.contains(&BindingEffect::Send) {
            self.sent(number, detail);
        }
        let polled = effects.iter().find_map(|effect| match effect {
            BindingEffect::Poll(number) => Some(*number),
            _ => None,
        });
        if let Some(polled) = polled {
            self.polled(polled, detail);
        }
        if effects.contains(&BindingEffect::Look) {
            self.looked(number, detail);
        }
    }

    /// A bind takes effect long after it was sent, the ledger deletes something, or time passes.
    fn elsewhere(&mut self, detail: u8) {
        match detail % 4 {
            0 => {
                let late = self.late.pop();
                self.broker.extend(late.map(|(id, _)| id));
            }
            1 | 2 if self.binding.waits_for_orphan => {
                let result = match detail % 8 {
                    1 => OrphanResult::LeftToOperator,
                    _ => OrphanResult::Deleted,
                };
                if result == OrphanResult::Deleted {
                    let deleted = self.ledger.clone();
                    self.broker.retain(|id| !deleted.contains(id));
                }
                let awaited = self.binding.awaited_orphan.clone().expect("one");
                self.step(Event::OrphanSettled(awaited, result))
                    .expect("it waits");
            }
            _ => self.pass(i64::from(detail) * 50),
        }
    }
}

fn of_person(command: BindingCommand) -> Event {
    Event::Command(Box::new(command))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Source: invariants I-1, I-4 to I-6, I-10 and I-12, P-007, at most four generations, every intent ends once.
    /// Holds: P-007.
    #[test]
    fn random_histories_keep_the_invariants(
        unusual in any::<bool>(),
        steps in prop::collection::vec((0u8..10, any::<u8>(), any::<u8>()), 1..150),
    ) {
        let mut world = World::new(unusual);
        for (kind, which, detail) in steps {
            if world.binding.tombstone.is_some() {
                break;
            }
            match kind {
                0..=2 => world.command(which, detail),
                3..=7 => world.turn(detail),
                _ => world.elsewhere(detail),
            }
        }
    }
}

/// What the property relies on: histories reach rotations, retirements and deletes of several generations.
#[test]
fn a_binding_is_rotated_retired_and_deleted() {
    let mut world = World::new(false);
    world.turn(0x24);
    for rotation in 1..=3 {
        world.command(0, 2);
        world.turn(0x24);
        let retiring = world
            .binding
            .generations
            .iter()
            .filter(|it| it.retirement().is_some());
        assert_eq!(retiring.count(), rotation);
    }
    let rotate = of_person(BindingCommand::Rotate(RotateRequest {
        by: person("ann"),
        idempotency_key: None,
        facts: facts(),
    }));
    assert_eq!(
        world.step(rotate),
        Err(BindingEventError::TooManyGenerations)
    );
    world.pass(10_000);
    world.command(3, 0);
    world.turn(0x24);
    assert_eq!(world.confirmed.len(), 3);
    world.command(6, 0);
    for _ in 0..3 {
        world.turn(0x24);
    }
    assert!(world.binding.tombstone.is_some() && world.broker.is_empty());
    assert_ne!(osb_id(1), osb_id(2));
}
