//! One instance under events, for tests of whole histories.

use super::fixtures::{NOW, context, disk, facts, instance, moment, policy};
use crate::lifecycle::instance::{
    Event, Instance, InstanceCommand, InstanceDecision, InstanceEffect, InstanceEventError,
    InstancePolicy, InstanceReply, PreparedTurn, ResourceDetails, decide,
};
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause, OrphanResult};
use crate::spec::Spec;
use sutler_client::Meaning;
use sutler_osb::InstanceId;

/// An instance under decisions that must not be refused.
pub(super) struct Lane {
    pub(super) instance: Instance,
    pub(super) policy: InstancePolicy,
    pub(super) next: u64,
    /// Largest disk that the plan's schema allows.
    pub(super) disk_max: u64,
    pub(super) now: i64,
}

impl Lane {
    pub(super) fn in_state(state: &str) -> Self {
        Self {
            instance: instance(state).expect("an instance"),
            policy: policy(),
            next: 100,
            disk_max: 1_000,
            now: NOW,
        }
    }

    pub(super) fn decide(&mut self, event: Event) -> Result<InstanceDecision, InstanceEventError> {
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

    /// The orphan that it waits for is settled.
    pub(super) fn settle(&mut self, result: OrphanResult) {
        let orphan = self.instance.awaited_orphan().expect("it waits").clone();
        self.decide(Event::OrphanSettled(orphan, result))
            .expect("settled");
    }

    pub(super) fn command(
        &mut self,
        command: InstanceCommand,
    ) -> Result<InstanceReply, InstanceEventError> {
        let decision = self.decide(Event::Command(Box::new(command)))?;
        Ok(decision.reply)
    }

    /// Accepts a change. Returns its number.
    pub(super) fn accept(&mut self, command: InstanceCommand) -> u64 {
        match self.command(command) {
            Ok(InstanceReply::Accepted(number)) => number.0,
            other => panic!("it is not accepted: {other:?}"),
        }
    }

    pub(super) fn send(&mut self, number: u64) -> Vec<InstanceEffect> {
        let turn = Event::Turn(IntentNumber(number), PreparedTurn::Ready);
        self.decide(turn).expect("its turn").effects
    }

    pub(super) fn answer(
        &mut self,
        number: u64,
        meaning: Meaning<ResourceDetails>,
    ) -> Vec<InstanceEffect> {
        let event = Event::Answer(IntentNumber(number), Box::new(meaning));
        self.decide(event).expect("its answer").effects
    }

    pub(super) fn state(&self, number: u64) -> Option<&IntentState> {
        let intent = self.instance.intent(IntentNumber(number));
        intent.map(|it| &it.state)
    }

    pub(super) fn end(&self, number: u64) -> Option<&IntentEnd> {
        let mut ended = self.instance.ended.iter();
        let ended = ended.find(|it| it.number == IntentNumber(number));
        ended.map(|it| &it.end)
    }
}

pub(super) fn orphans(effects: &[InstanceEffect]) -> Vec<(InstanceId, OrphanCause, CleanupMode)> {
    let orphan = |effect: &InstanceEffect| match effect {
        InstanceEffect::RecordOrphan(it) => Some((it.osb_id.clone(), it.cause, it.mode)),
        _ => None,
    };
    effects.iter().filter_map(orphan).collect()
}

pub(super) fn patch(by: &str, size: u64) -> InstanceCommand {
    InstanceCommand::Patch(disk(size), facts(by))
}
