//! Random histories of an instance against a journal and a broker in a few lines: what must hold after every step.
//!
//! The broker loses answers, answers late, does things although it says otherwise where it may, and applies a create
//! after a delete. The journal holds a state for each operation, and runs only what may be claimed.

use super::fixtures::{context, disk, facts, moment, osb_id, person, policy, small};
use super::meanings::{failed, message, rejected, retry, succeeded};
use crate::lifecycle::instance::{
    BindingsFound, CreateRequest, Event, Exposure, Instance, InstanceCommand, InstanceEffect,
    InstanceEventError, IntentChange, Observation, OperationStart, PreparedTurn, ResourceDetails,
    decide,
};
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState, OperationId};
use crate::lifecycle::orphan::OrphanResult;
use crate::spec::samples::{label_patch, plan_patch};
use crate::spec::{Spec, SpecPatch};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use sutler_client::{
    AcceptedOperation, CleanupDuty, Meaning, NextQuestion, PollUpdate, RetryCause, Success,
};
use sutler_osb::InstanceId;
use uuid::Uuid;

/// State of an operation in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Waiting,
    Claimable,
    Done,
}

struct World {
    instance: Instance,
    rows: BTreeMap<OperationId, Row>,
    /// What the broker has.
    broker: BTreeSet<InstanceId>,
    /// Creates that were sent without an answer and may still take effect, with the second of their sending. A platform
    /// can only wait for them so long.
    late: Vec<(InstanceId, i64)>,
    ledger: BTreeSet<InstanceId>,
    ended: BTreeMap<IntentNumber, IntentEnd>,
    second: i64,
    next_id: u64,
    unusual: bool,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            instance: super::fixtures::instance("new").expect("an instance"),
            rows: BTreeMap::new(),
            broker: BTreeSet::new(),
            late: Vec::new(),
            ledger: BTreeSet::new(),
            ended: BTreeMap::new(),
            second: 1_000_000,
            next_id: 100,
            unusual: false,
        };
        let create = InstanceCommand::Create(CreateRequest {
            namespace: "app".to_owned(),
            broker: Uuid::from_u128(5),
            service: "postgresql".try_into().expect("an id"),
            spec: small(),
            osb_id: None,
            source: None,
            facts: facts("ann"),
        });
        let created = world.decide(None, Event::Command(Box::new(create)));
        assert!(created.is_ok(), "{created:?}");
        world
    }

    /// Decides an event and carries its effects out. Returns whether it was refused.
    fn decide(
        &mut self,
        before: Option<Instance>,
        event: Event,
    ) -> Result<Vec<InstanceEffect>, InstanceEventError> {
        self.next_id += 1;
        self.second += 1;
        let now = self.second;
        self.late.retain(|(_, sent)| now - sent < 100);
        let mut policy = policy();
        policy.delete_waits_for_update = self.unusual;
        let fits = |spec: &Spec| {
            let disk = spec.parameters.as_map().get("disk");
            disk.and_then(serde_json::Value::as_u64).unwrap_or(0) < 90
        };
        let context = context(moment(self.second), &policy, self.next_id, &fits);
        let was = before.clone();
        let decision = decide(before, event, &context)?;
        self.carry_out(was.as_ref(), &decision.effects);
        self.instance = decision.next;
        self.check(was.as_ref());
        Ok(decision.effects)
    }

    fn carry_out(&mut self, was: Option<&Instance>, effects: &[InstanceEffect]) {
        for effect in effects {
            match effect {
                InstanceEffect::Start(id, start) => {
                    let row = match start {
                        OperationStart::Ready => Row::Claimable,
                        OperationStart::Waiting => Row::Waiting,
                    };
                    assert_eq!(self.rows.insert(*id, row), None, "started twice");
                }
                InstanceEffect::Wake(id) => self.change(*id, Row::Claimable),
                InstanceEffect::Suspend(id) => self.change(*id, Row::Waiting),
                InstanceEffect::End(id, end) => {
                    self.change(*id, Row::Done);
                    let intent =
                        was.and_then(|it| it.pending.iter().find(|it| it.operation == *id));
                    let number = intent.map(|it| it.number).expect("it was pending");
                    assert_eq!(self.ended.insert(number, end.clone()), None, "ended twice");
                }
                InstanceEffect::RecordOrphan(it) => {
                    self.ledger.insert(it.osb_id.clone());
                }
                InstanceEffect::Send
                | InstanceEffect::Look
                | InstanceEffect::Poll(_)
                | InstanceEffect::PollAfter(_)
                | InstanceEffect::TryAgainAfter(_)
                | InstanceEffect::TryAgainNow
                | InstanceEffect::TakeName(_)
                | InstanceEffect::FreeName(_)
                | InstanceEffect::WakeBindings
                | InstanceEffect::Unbind(_)
                | InstanceEffect::AbandonBindings(_)
                | InstanceEffect::Fetch => {}
            }
        }
    }

    fn change(&mut self, id: OperationId, next: Row) {
        let row = self.rows.get_mut(&id).expect("it was started");
        assert_ne!(*row, Row::Done, "an ended operation changes");
        *row = next;
    }

    /// What holds after every step.
    fn check(&self, was: Option<&Instance>) {
        let it = &self.instance;
        let claimable = self.rows.iter().filter(|(_, row)| **row == Row::Claimable);
        let claimable: Vec<_> = claimable.map(|(id, _)| *id).collect();
        let active = it.active().filter(|_| it.tombstone.is_none());
        let active_operation = active
            .and_then(|number| it.intent(number))
            .map(|it| it.operation);
        assert_eq!(
            claimable,
            active_operation.into_iter().collect::<Vec<_>>(),
            "I-1: {it:#?}"
        );
        let begun = it.pending.iter().filter(|intent| {
            !intent.change.is_delete()
                && matches!(
                    intent.state,
                    IntentState::Sending { .. }
                        | IntentState::Unknown { .. }
                        | IntentState::Polling { .. }
                )
        });
        assert!(begun.count() <= 1, "I-1: two begun: {it:#?}");
        if let Some(was) = was {
            assert!(was.applied <= it.applied, "I-2");
            let succeeded = it.applied != was.applied
                || self.ended.len() > was.ended.len().min(20)
                || it.ended.len() != was.ended.len();
            let changed = was.confirmed().map(|it| &it.spec) != it.confirmed().map(|it| &it.spec);
            assert!(!changed || succeeded || was.ended != it.ended, "I-3");
            assert!(was.revision <= it.revision && it.revision <= was.revision + 1);
            let same_spec = was.projection().spec == it.projection().spec;
            assert_eq!(
                was.revision == it.revision,
                same_spec,
                "one revision, one specification"
            );
        }
        self.check_intents();
        self.check_exposure();
    }

    /// I-4: every number is pending or has ended. I-12: something moves on.
    fn check_intents(&self) {
        let it = &self.instance;
        for number in (1..=it.generation).map(IntentNumber) {
            let is_pending = it.intent(number).is_some();
            assert_ne!(
                is_pending,
                self.ended.contains_key(&number),
                "I-4: {number}"
            );
        }
        // Unless it waits for a person or for the ledger.
        let waits = |intent: &&crate::lifecycle::instance::PendingIntent| {
            !matches!(intent.state, IntentState::OnHold(_))
        };
        if it.pending.iter().any(|intent| waits(&intent)) && it.tombstone.is_none() {
            assert!(
                it.active().is_some() || it.waits_for_orphan,
                "I-12: stuck: {it:#?}"
            );
        }
        if it.tombstone.is_some() {
            assert!(it.pending.is_empty() && it.deletion.is_none());
        }
        assert_eq!(
            it.deletion.as_ref().map(|deletion| deletion.number),
            it.pending
                .iter()
                .find(|it| it.change.is_delete())
                .map(|it| it.number),
        );
    }

    /// I-5: what the broker has or may still create is accounted for.
    fn check_exposure(&self) {
        let it = &self.instance;
        for id in self.broker.iter().chain(self.late.iter().map(|(id, _)| id)) {
            let is_ours = *id == it.osb_id
                && matches!(
                    it.exposure,
                    Exposure::MayExist | Exposure::Confirmed | Exposure::Uncertain(_)
                );
            assert!(is_ours || self.ledger.contains(id), "I-5: {id} of {it:#?}");
        }
    }

    /// A person asks for something.
    fn command(&mut self, which: u8, detail: u8) {
        let name = ["ann", "ben", "cem"][usize::from(detail) % 3];
        let first = self.instance.pending.first().map(|it| it.number);
        let held = self.instance.pending.iter();
        let held = held
            .clone()
            .find(|it| matches!(it.state, IntentState::OnHold(_)));
        let some = first.unwrap_or(IntentNumber(1));
        let last = self
            .instance
            .ended
            .back()
            .map_or(IntentNumber(1), |it| it.number);
        let command = match which % 12 {
            0 | 1 => InstanceCommand::Patch(disk(u64::from(detail) % 100), facts(name)),
            2 => InstanceCommand::Patch(
                plan_patch(["small", "large"][usize::from(detail) % 2]),
                facts(name),
            ),
            3 => InstanceCommand::Patch(label_patch("team", Some(name)), facts(name)),
            4 => InstanceCommand::Touch(facts(name)),
            5 => InstanceCommand::Delete {
                by: person(name),
                cascade: detail.is_multiple_of(2),
                bindings: Vec::new(),
            },
            6 => InstanceCommand::Undelete(person(name)),
            7 => InstanceCommand::Cancel(some, person(name)),
            8 => InstanceCommand::Resume(held.map_or(some, |it| it.number), facts(name)),
            9 => InstanceCommand::Retry(last, facts(name)),
            10 => InstanceCommand::Rollback(IntentNumber(u64::from(detail) % 9), facts(name)),
            _ if detail > 250 => InstanceCommand::Abandon(person(name).into()),
            _ => InstanceCommand::Apply(
                name.to_owned(),
                small().apply(&disk(u64::from(detail))),
                facts(name),
            ),
        };
        let _ = self.decide(
            Some(self.instance.clone()),
            Event::Command(Box::new(command)),
        );
    }

    /// The operation of the active intent is claimed.
    fn turn(&mut self, detail: u8) {
        let it = self.instance.clone();
        let Some(intent) = it.active().and_then(|number| it.intent(number)) else {
            return;
        };
        let number = intent.number;
        let prepared = match (&intent.state, detail % 16) {
            (IntentState::Sending { .. }, 0) => PreparedTurn::TakenOverTooOften,
            (IntentState::Sending { .. }, _) => PreparedTurn::TakenOver,
            (IntentState::Queued { .. }, 0) => PreparedTurn::Unresolved("a secret".to_owned()),
            (IntentState::Queued { .. }, 1) => PreparedTurn::Unfit(vec!["too large".to_owned()]),
            (IntentState::Queued { .. }, 2) => PreparedTurn::NothingToDo,
            (IntentState::Queued { .. }, 3) => PreparedTurn::Bindings(BindingsFound::Left),
            _ => PreparedTurn::Ready,
        };
        let Ok(effects) = self.decide(Some(it), Event::Turn(number, prepared)) else {
            return;
        };
        if effects.contains(&InstanceEffect::Send) {
            self.sent(number, detail);
        }
        if effects.contains(&InstanceEffect::Look) {
            let seen = match detail % 4 {
                0 => Observation::InProgress,
                1 => Observation::NotNow,
                _ if self.broker.contains(&self.instance.osb_id) => {
                    Observation::Ours(ResourceDetails::default())
                }
                _ => Observation::AbsentOrUnreadable,
            };
            let event = Event::Turn(number, PreparedTurn::Observed(seen));
            let _ = self.decide(Some(self.instance.clone()), event);
        }
        let polled = effects.iter().find_map(|effect| match effect {
            InstanceEffect::Poll(number) => Some(*number),
            _ => None,
        });
        if let Some(polled) = polled {
            self.polled(polled, detail);
        }
    }

    /// A request was sent. Its answer may be lost: then nothing follows until the operation is claimed again.
    fn sent(&mut self, number: IntentNumber, detail: u8) {
        let Some(intent) = self.instance.intent(number).cloned() else {
            return;
        };
        let id = self.instance.osb_id.clone();
        let outcome = detail / 16;
        let answer = match (&intent.change, outcome) {
            // The answer is lost, with and without an effect, and with one that comes later.
            (IntentChange::Provision, 0) => {
                self.broker.insert(id);
                return;
            }
            (IntentChange::Provision, 1) => {
                self.late.push((id, self.second));
                return;
            }
            (IntentChange::Delete, 0) => {
                self.broker.remove(&id);
                return;
            }
            (_, 0 | 1) => return,
            (IntentChange::Provision, 2..=5) => {
                self.broker.insert(id);
                succeeded()
            }
            (IntentChange::Update(_), 2..=5) => succeeded(),
            (IntentChange::Delete, 2..=5) => {
                self.broker.remove(&id);
                Meaning::Succeeded(Success::Gone)
            }
            (_, 6 | 7) => Meaning::Polling {
                update: PollUpdate::Accepted(AcceptedOperation::default()),
                after: None,
            },
            (IntentChange::Provision, 8) if intent.in_doubt => failed(CleanupDuty::Mitigate),
            (_, 8) => rejected(400),
            (_, 9) => retry(RetryCause::Busy),
            (_, 10) => retry(RetryCause::Overloaded),
            (IntentChange::Provision, 11) if intent.in_doubt => {
                self.broker.insert(id);
                failed(CleanupDuty::Mitigate)
            }
            (_, 11) => {
                if intent.change == IntentChange::Provision {
                    self.broker.insert(id);
                }
                Meaning::Unknown {
                    question: match (&intent.change, detail % 2) {
                        (IntentChange::Provision, 0) => NextQuestion::LookFirst,
                        _ => NextQuestion::SendAgain,
                    },
                    message: message(500, true),
                }
            }
            (IntentChange::Provision, 12) => {
                self.broker.insert(id);
                failed(CleanupDuty::DeleteBeforeForgetting)
            }
            (IntentChange::Provision, _) => {
                self.broker.insert(id);
                failed(CleanupDuty::Mitigate)
            }
            (IntentChange::Update(_), _) => failed(CleanupDuty::Uncertain),
            (IntentChange::Delete, _) => failed(CleanupDuty::StillThere),
            (IntentChange::Local(_), _) => panic!("a local change is sent"),
        };
        let event = Event::Answer(number, Box::new(answer));
        let decided = self.decide(Some(self.instance.clone()), event);
        assert!(decided.is_ok(), "{decided:?}");
    }

    fn polled(&mut self, number: IntentNumber, detail: u8) {
        let Some(intent) = self.instance.intent(number).cloned() else {
            return;
        };
        let id = self.instance.osb_id.clone();
        let answer = match (&intent.change, detail / 64) {
            (_, 0) => Meaning::Polling {
                update: PollUpdate::InProgress(None),
                after: None,
            },
            (IntentChange::Provision, 1) => {
                self.broker.insert(id);
                Meaning::Succeeded(Success::Polled)
            }
            (IntentChange::Update(_), 1) => Meaning::Succeeded(Success::Polled),
            (IntentChange::Delete, 1) => {
                self.broker.remove(&id);
                Meaning::Succeeded(Success::Gone)
            }
            (IntentChange::Provision, _) => {
                self.broker.insert(id);
                failed(CleanupDuty::Mitigate)
            }
            (IntentChange::Update(_), _) => rejected(400),
            (IntentChange::Delete, 2) => retry(RetryCause::HalfDeleted),
            (IntentChange::Delete, _) => failed(CleanupDuty::StillThere),
            (IntentChange::Local(_), _) => panic!("a local change is polled"),
        };
        let event = Event::Answer(number, Box::new(answer));
        let decided = self.decide(Some(self.instance.clone()), event);
        assert!(decided.is_ok(), "{decided:?}");
    }

    /// A create takes effect long after it was sent, the ledger deletes something, or time passes.
    fn elsewhere(&mut self, detail: u8) {
        match detail % 4 {
            0 => {
                if let Some((id, _)) = self.late.pop() {
                    self.broker.insert(id);
                }
            }
            1 | 2 if self.instance.waits_for_orphan => {
                let result = match detail % 8 {
                    1 => OrphanResult::LeftToOperator,
                    _ => OrphanResult::Deleted,
                };
                if result == OrphanResult::Deleted {
                    let former = self.ledger.clone();
                    self.broker.retain(|id| !former.contains(id));
                }
                let awaited = self.instance.awaited_orphan().expect("one").clone();
                let event = Event::OrphanSettled(awaited, result);
                let decided = self.decide(Some(self.instance.clone()), event);
                assert!(decided.is_ok(), "{decided:?}");
            }
            _ => self.second += i64::from(detail) * 1_000,
        }
        let now = self.second;
        self.late.retain(|(_, sent)| now - sent < 100);
        self.check(None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Invariants I-1 to I-5 and I-12 hold, a revision has one specification, and every intent ends once.
    #[test]
    fn random_histories_keep_the_invariants(
        unusual in any::<bool>(),
        steps in prop::collection::vec((0u8..8, any::<u8>(), any::<u8>()), 1..120),
    ) {
        let mut world = World::new();
        world.unusual = unusual;
        for (kind, which, detail) in steps {
            if world.instance.tombstone.is_some() {
                break;
            }
            match kind {
                0..=2 => world.command(which, detail),
                3..=6 => world.turn(detail),
                _ => world.elsewhere(detail),
            }
        }
    }
}

/// What the property relies on: a patch that changes nothing is not accepted.
#[test]
fn an_empty_patch_begins_no_intent() {
    let mut world = World::new();
    let command = InstanceCommand::Patch(SpecPatch::default(), facts("ann"));
    let before = world.instance.clone();
    let effects = world.decide(Some(before.clone()), Event::Command(Box::new(command)));
    assert_eq!(effects, Ok(Vec::new()));
    assert_eq!(world.instance, before);
    assert_ne!(osb_id(1), osb_id(2));
}
