//! A journal and a broker in a few lines, and what must hold of a binding after every step.
//!
//! The journal holds a state and a prepared request for each operation, and runs only what may be claimed. The broker is a
//! set of ids. Which steps happen is decided in `histories.rs`.

use super::fixtures::{context, create_request, facts, moment, osb_id, policy};
use crate::lifecycle::binding::{
    Binding, BindingCommand, BindingEffect, BindingEventError, BindingPolicy, CredentialsAnswer,
    Event, GENERATIONS_MAX, IntentChange, OperationStart, PendingIntent, RotationPolicy,
    TargetResource, decide,
};
use crate::lifecycle::instance::Tombstone;
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState, OperationId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use sutler_osb::BindingId;

/// State of an operation in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Waiting,
    Claimable,
    Done,
}

pub(super) struct World {
    pub(super) binding: Binding,
    pub(super) policy: BindingPolicy,
    pub(super) second: i64,
    pub(super) next_id: u64,
    /// What the broker has.
    pub(super) broker: BTreeSet<BindingId>,
    /// Binds that were sent without an answer, when, and may still take effect.
    pub(super) late: Vec<(BindingId, i64)>,
    /// Credentials of generations that the broker confirmed, and of which it did not confirm the end.
    pub(super) confirmed: BTreeMap<BindingId, CredentialsAnswer>,
    pub(super) ledger: BTreeSet<BindingId>,
    rows: BTreeMap<OperationId, Row>,
    requests: BTreeMap<OperationId, (BindingId, TargetResource)>,
    ended: BTreeMap<IntentNumber, IntentEnd>,
    used: BTreeSet<BindingId>,
}

impl World {
    pub(super) fn new(unusual: bool) -> Self {
        let mut policy = policy();
        policy.manual_cleanup = unusual;
        let mut world = Self {
            binding: super::fixtures::bare(),
            policy,
            second: 1_000_000,
            next_id: 100,
            broker: BTreeSet::new(),
            late: Vec::new(),
            confirmed: BTreeMap::new(),
            ledger: BTreeSet::new(),
            rows: BTreeMap::new(),
            requests: BTreeMap::new(),
            ended: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        let mut request = create_request(facts());
        let overlap = Duration::from_secs(1_800);
        request.rotation = RotationPolicy::new(Some(Duration::from_secs(3_600)), overlap).ok();
        request.osb_id = unusual.then(|| osb_id(1));
        let create = Event::Command(Box::new(BindingCommand::Create(Box::new(request))));
        world.decide(None, create).expect("it is created");
        world
    }

    /// Decides an event and carries its effects out.
    pub(super) fn step(&mut self, event: Event) -> Result<Vec<BindingEffect>, BindingEventError> {
        self.decide(Some(self.binding.clone()), event)
    }

    fn decide(
        &mut self,
        before: Option<Binding>,
        event: Event,
    ) -> Result<Vec<BindingEffect>, BindingEventError> {
        self.next_id += 1;
        self.pass(1);
        let policy = self.policy.clone();
        let context = context(moment(self.second), &policy, self.next_id);
        let decision = decide(before.clone(), event, &context)?;
        self.binding = decision.next;
        for effect in &decision.effects {
            self.carry_out(before.as_ref(), effect);
        }
        self.check(before.as_ref());
        Ok(decision.effects)
    }

    /// Time passes. A bind that is too late does not arrive any more.
    pub(super) fn pass(&mut self, seconds: i64) {
        self.second += seconds;
        let within = i64::try_from(self.policy.late_create_within.as_secs()).expect("a few");
        self.late.retain(|(_, sent)| sent + within > self.second);
    }

    fn carry_out(&mut self, was: Option<&Binding>, effect: &BindingEffect) {
        match effect {
            BindingEffect::Start(id, start) => {
                let row = match start {
                    OperationStart::Ready | OperationStart::Later => Row::Claimable,
                    OperationStart::Waiting => Row::Waiting,
                };
                assert_eq!(self.rows.insert(*id, row), None, "started twice");
            }
            BindingEffect::Wake(id) => self.change(*id, Row::Claimable),
            BindingEffect::Suspend(id) => self.change(*id, Row::Waiting),
            BindingEffect::End(id, end) => {
                self.change(*id, Row::Done);
                self.requests.remove(id);
                let pending = was.and_then(|it| it.pending.iter().find(|it| it.operation == *id));
                let number = pending.map(|it| it.number).expect("it was pending");
                assert_eq!(self.ended.insert(number, end.clone()), None, "ended twice");
            }
            BindingEffect::DiscardRequest(id) => {
                assert!(self.requests.remove(id).is_some(), "there was a request");
            }
            BindingEffect::Send => self.prepare(),
            BindingEffect::RecordOrphan(orphan) => {
                self.ledger.insert(orphan.osb_id.clone());
            }
            BindingEffect::Look
            | BindingEffect::Poll(_)
            | BindingEffect::PollAfter(_)
            | BindingEffect::TryAgainAfter(_)
            | BindingEffect::TryAgainNow
            | BindingEffect::TakeName(_)
            | BindingEffect::FreeName(_) => {}
        }
    }

    fn change(&mut self, id: OperationId, next: Row) {
        let row = self.rows.get_mut(&id).expect("it was started");
        assert_ne!(*row, Row::Done, "an ended operation changes");
        *row = next;
    }

    /// I-6: what is sent for an operation is always the same, until its request is discarded.
    fn prepare(&mut self) {
        let it = &self.binding;
        let active = it
            .active()
            .and_then(|number| it.intent(number))
            .expect("it is sent");
        let request = (self.target_of(active), it.spec.target.clone());
        let prepared = self
            .requests
            .entry(active.operation)
            .or_insert(request.clone());
        assert_eq!(*prepared, request, "I-6: another request than before");
    }

    /// The id at the broker that a request of an intent is about.
    pub(super) fn target_of(&self, intent: &PendingIntent) -> BindingId {
        match &intent.change {
            IntentChange::Bind(bind) => bind.osb_id.clone(),
            IntentChange::Unbind(osb_id) => osb_id.clone(),
            IntentChange::Delete => {
                let deletion = self.binding.deletion.as_ref().expect("a delete");
                deletion.target.clone().expect("it was chosen")
            }
        }
    }

    /// What holds after every step.
    fn check(&mut self, was: Option<&Binding>) {
        self.check_operations();
        self.check_generations(was);
        self.check_credentials();
        let stored = serde_json::to_string(&self.binding).expect("it can be stored");
        let read: Binding = serde_json::from_str(&stored).expect("it can be read");
        assert_eq!(read, self.binding);
    }

    fn check_operations(&self) {
        let it = &self.binding;
        let claimable = self.rows.iter().filter(|(_, row)| **row == Row::Claimable);
        let claimable: Vec<_> = claimable.map(|(id, _)| *id).collect();
        let active = it.active().and_then(|number| it.intent(number));
        let active: Vec<_> = active.into_iter().map(|it| it.operation).collect();
        assert_eq!(claimable, active, "I-1: {it:#?}");
        let begun = it.pending.iter().filter(|intent| {
            let has_begun = matches!(
                intent.state,
                IntentState::Sending { .. }
                    | IntentState::Unknown { .. }
                    | IntentState::Polling { .. }
            );
            has_begun && !intent.change.is_delete()
        });
        assert!(begun.count() <= 1, "I-1: two begun: {it:#?}");
        for number in (1..=it.accepted).map(IntentNumber) {
            let is_pending = it.intent(number).is_some();
            assert_ne!(
                is_pending,
                self.ended.contains_key(&number),
                "I-4: {number}"
            );
        }
        let goes_on = |intent: &PendingIntent| !matches!(intent.state, IntentState::OnHold(_));
        if it.pending.iter().any(goes_on) {
            assert!(
                !active.is_empty() || it.waits_for_orphan,
                "I-12: stuck: {it:#?}"
            );
        }
        let delete = it.pending.iter().find(|intent| intent.change.is_delete());
        let deletion = it.deletion.as_ref().map(|deletion| deletion.number);
        assert_eq!(deletion, delete.map(|intent| intent.number));
    }

    fn check_generations(&mut self, was: Option<&Binding>) {
        let it = &self.binding;
        assert!(it.generations.len() <= GENERATIONS_MAX, "{it:#?}");
        for generation in &it.generations {
            let id = &generation.osb_id;
            let is_new = was.is_none_or(|was| was.generation(id).is_none());
            let is_chosen = *id == osb_id(1) && !self.ledger.contains(id);
            let is_fresh = self.used.insert(id.clone());
            assert!(
                !is_new || is_fresh || is_chosen,
                "P-007: {id} is used twice"
            );
            let same = it.generations.iter().filter(|it| it.osb_id == *id);
            assert_eq!(same.count(), 1, "{it:#?}");
        }
        let retiring = it.generations.iter().filter(|it| it.retirement().is_some());
        let retiring = retiring.count();
        let bound = it
            .generations
            .iter()
            .filter(|it| it.bound().is_some())
            .count();
        let current = usize::from(it.current().is_some());
        assert_eq!(bound, retiring + current, "one is current: {it:#?}");
        assert!(
            retiring == 0 || current == 1,
            "the current one goes last: {it:#?}"
        );
        for intent in &it.pending {
            let is_there = |id| it.generation(id).is_some();
            assert!(match &intent.change {
                IntentChange::Bind(bind) => is_there(&bind.osb_id),
                IntentChange::Unbind(osb_id) => is_there(osb_id),
                IntentChange::Delete => {
                    let target = it.deletion.as_ref().and_then(|it| it.target.as_ref());
                    target.is_none_or(is_there)
                }
            });
        }
        for id in self.broker.iter().chain(self.late.iter().map(|(id, _)| id)) {
            let is_known = it.generation(id).is_some_and(|it| it.may_exist());
            assert!(is_known || self.ledger.contains(id), "I-5: {id} of {it:#?}");
        }
    }

    /// I-10.
    fn check_credentials(&mut self) {
        let it = &self.binding;
        match it.tombstone {
            Some(Tombstone::Abandoned(_)) => self.confirmed.clear(),
            Some(Tombstone::Deleted(_)) => {
                assert_eq!(self.confirmed, BTreeMap::new(), "I-10: erased too early");
            }
            None => {}
        }
        let bound = it.generations.iter().filter_map(|generation| {
            let credentials = generation.bound()?.credentials.clone();
            Some((generation.osb_id.clone(), credentials))
        });
        let bound = BTreeMap::from_iter(bound);
        assert!(bound == self.confirmed, "I-10: {it:#?}");
        let stored = serde_json::to_string(it).expect("it can be stored");
        assert_eq!(
            stored.matches("CANARY-").count(),
            bound.len(),
            "I-10: elsewhere"
        );
        assert!(!format!("{it:?}").contains("CANARY-"), "shown");
    }
}
