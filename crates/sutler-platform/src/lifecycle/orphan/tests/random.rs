//! Random sequences of events for one row of the ledger, checked against what a worker and a broker would observe.
//!
//! The model knows no rules: only whether an operation exists, and which DELETEs were sent when. Events come in any
//! order, also those that cannot happen in a state.

use super::answers::{ANSWERS, answers};
use super::fixtures::{found, now, person, reason};
use crate::lifecycle::orphan::{
    CleanupMode, DeleteStage, Orphan, OrphanEffect, OrphanEvent, OrphanResult, OrphanState,
    TRIES_MAX, WAITS_MAX, decide,
};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    Found(CleanupMode, u64),
    /// A claim, as soon as the operation may be claimed.
    Claim,
    Turn,
    TakenOver,
    Answer(&'static str, usize),
    Retry,
    Forget,
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cleanup = select(&[CleanupMode::Automatic, CleanupMode::Manual][..]);
    let step = prop_oneof![
        1 => (cleanup, 0_u64..300).prop_map(|(cleanup, guard)| Step::Found(cleanup, guard)),
        8 => Just(Step::Claim),
        1 => Just(Step::Turn),
        1 => Just(Step::TakenOver),
        8 => (select(&ANSWERS[..]), any::<usize>()).prop_map(|(name, nth)| Step::Answer(name, nth)),
        1 => Just(Step::Retry),
        1 => Just(Step::Forget),
        1 => (0_u64..100_000).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 1..80)
}

/// What exists besides the row.
struct Model {
    now: Timestamp,
    row: Option<Orphan>,
    /// When the row's operation may be claimed, if there is one.
    operation: Option<Timestamp>,
}

impl Model {
    fn event(&mut self, step: &Step) -> Option<OrphanEvent> {
        Some(match step {
            Step::Found(cleanup, guard) => {
                let mut new = found(*cleanup);
                new.guarded_until = Some(after(self.now, Duration::from_secs(*guard)));
                OrphanEvent::Found(Box::new(new))
            }
            Step::Claim => {
                self.now = self.operation?.max(self.now);
                OrphanEvent::Turn
            }
            Step::Turn => OrphanEvent::Turn,
            Step::TakenOver => OrphanEvent::TakenOver,
            Step::Answer(name, nth) => {
                let mut meanings = answers(name);
                let nth = nth % meanings.len();
                OrphanEvent::Answer(Box::new(meanings.swap_remove(nth)))
            }
            Step::Retry => OrphanEvent::Retry,
            Step::Forget => OrphanEvent::Forget {
                by: person("operator"),
                reason: reason(),
            },
            Step::Pass(seconds) => {
                self.now = after(self.now, Duration::from_secs(*seconds));
                return None;
            }
        })
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let Some(event) = self.event(step) else {
            return Ok(());
        };
        let before = self.row.clone();
        let Ok(decision) = decide(before.clone(), event, self.now) else {
            return Ok(());
        };
        self.row = Some(decision.next);
        for effect in &decision.effects {
            self.follow(effect, before.as_ref())?;
        }
        self.check(before.as_ref())
    }

    /// Carries out an effect, if a worker could.
    fn follow(
        &mut self,
        effect: &OrphanEffect,
        before: Option<&Orphan>,
    ) -> Result<(), TestCaseError> {
        match effect {
            OrphanEffect::Start(wait) => {
                prop_assert!(self.operation.is_none(), "a second operation in its lane");
                self.operation = Some(after(self.now, *wait));
            }
            OrphanEffect::AgainAfter(wait) => {
                prop_assert!(self.operation.is_some(), "no operation to claim again");
                self.operation = Some(after(self.now, *wait));
            }
            OrphanEffect::PollAfter(_) => {
                prop_assert!(self.operation.is_some(), "no operation to claim again");
                self.operation = Some(after(self.now, Duration::from_secs(60)));
            }
            OrphanEffect::Send => {
                let is_due = before.is_some_and(|row| {
                    matches!(
                        row.state,
                        OrphanState::Due { at } | OrphanState::InFlight {
                            stage: DeleteStage::Unknown { again: at }, ..
                        } if at <= self.now
                    )
                });
                prop_assert!(is_due, "sent, but not due: {before:?}");
            }
            OrphanEffect::Poll => {
                let is_polling = before.is_some_and(|row| is_at(row, "polling"));
                prop_assert!(is_polling, "polled, but not accepted: {before:?}");
            }
            OrphanEffect::End => self.operation = None,
            OrphanEffect::NotifyInstance(_, result) => {
                let row = self.row.as_ref().expect("a row");
                let is_done = matches!(row.state, OrphanState::Done { .. });
                prop_assert_eq!(is_done, *result == OrphanResult::Deleted);
            }
            OrphanEffect::Alert(_) => {
                let row = self.row.as_ref().expect("a row");
                let is_given_up = matches!(row.state, OrphanState::NeedsOperator { .. });
                prop_assert!(is_given_up, "an alert without a need");
            }
        }
        Ok(())
    }

    /// What is true in every state.
    fn check(&self, before: Option<&Orphan>) -> Result<(), TestCaseError> {
        let row = self.row.as_ref().expect("a row");
        let is_active = matches!(
            row.state,
            OrphanState::Due { .. } | OrphanState::InFlight { .. }
        );
        prop_assert_eq!(
            self.operation.is_some(),
            is_active,
            "an operation iff it works"
        );
        prop_assert!(row.round.tries <= TRIES_MAX && row.round.waits <= WAITS_MAX);
        let used_up = row.round.tries == TRIES_MAX || row.round.waits == WAITS_MAX;
        prop_assert!(!(used_up && is_active), "it goes on without an operator");
        if let OrphanState::Done { at } = row.state
            && let Some(before) = before
            && let OrphanState::InFlight { sent, .. } = before.state
        {
            prop_assert!(
                sent >= row.guarded_until && at == self.now,
                "an early proof"
            );
        }
        prop_assert!(row.attempts.last.len() <= 20);
        Ok(())
    }
}

fn is_at(row: &Orphan, stage: &str) -> bool {
    match row.state {
        OrphanState::InFlight { stage: at, .. } => match at {
            DeleteStage::Sending => stage == "sending",
            DeleteStage::Unknown { .. } => stage == "unknown",
            DeleteStage::Polling { .. } => stage == "polling",
        },
        _ => false,
    }
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_sequence_of_events_breaks_the_promises_of_the_ledger(steps in steps()) {
        let mut model = Model { now: now(), row: None, operation: None };
        for step in &steps {
            model.take(step)?;
        }
    }

    /// P-153: a broker that says in the end that nothing is there ends every row that a person does not forget.
    /// Holds: P-153.
    #[test]
    fn every_row_ends_once_the_broker_says_that_nothing_is_there(steps in steps()) {
        let mut model = Model { now: now(), row: None, operation: None };
        for step in &steps {
            model.take(step)?;
        }
        let Some(row) = model.row.clone() else {
            return Ok(());
        };
        if matches!(row.state, OrphanState::Done { .. }) {
            return Ok(());
        }
        model.take(&Step::Retry)?;
        // At most: a DELETE in flight, one that was sent too early, and one that proves it.
        for _ in 0..3 {
            model.take(&Step::Answer("gone", 0))?;
            model.take(&Step::Claim)?;
        }
        model.take(&Step::Answer("gone", 0))?;
        let row = model.row.expect("a row");
        prop_assert!(matches!(row.state, OrphanState::Done { .. }), "{:?}", row.state);
    }

    #[test]
    fn what_is_done_is_touched_only_if_it_is_found_again(steps in steps()) {
        let mut model = Model { now: now(), row: super::fixtures::named("done"), operation: None };
        let done = model.row.clone();
        for step in steps.iter().filter(|step| !matches!(step, Step::Found(..))) {
            model.take(step)?;
            prop_assert_eq!(&model.row, &done);
        }
    }
}
