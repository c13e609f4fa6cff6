//! The create that the platform repeats by itself, after the orphan ledger has deleted what the last one left.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    ChangeRequest, Context, Exposure, Instance, InstanceDecision, InstanceEventError,
    InstanceReply, IntentChange,
};
use crate::lifecycle::intent::{IntentCause, IntentEnd};
use crate::lifecycle::orphan::OrphanResult;
use sutler_osb::InstanceId;

impl Instance {
    /// The id of the orphan that it waits for: what the last create left. Under an id that a person chose that is its own.
    pub(crate) fn awaited_orphan(&self) -> Option<&InstanceId> {
        if !self.waits_for_orphan {
            return None;
        }
        match self.osb_id_is_chosen {
            true => Some(&self.osb_id),
            false => self.former_ids.last(),
        }
    }
}

/// The orphan of the last create is settled: the create is repeated, if that is left to the platform. That of an earlier
/// one is settled late, e.g. because a person asked for another round: nothing waits for it any more.
pub(super) fn orphan_settled(
    instance: Instance,
    orphan: &InstanceId,
    result: OrphanResult,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if instance.awaited_orphan() != Some(orphan) {
        return Err(InstanceEventError::OutOfDate);
    }
    let mut transition = Transition::of(instance, context);
    // Under an id that a person chose the ledger would delete the next create as well.
    if result == OrphanResult::LeftToOperator && transition.next.osb_id_is_chosen {
        return Ok(transition.decision(InstanceReply::Nothing));
    }
    transition.next.waits_for_orphan = false;
    let is_planned = transition.next.deletion.is_some() || transition.next.is_being_created();
    if !is_planned {
        transition.repeat_create(result);
    }
    if result == OrphanResult::Deleted {
        transition.next.exposure = Exposure::Nothing;
    }
    Ok(transition.decision(InstanceReply::Nothing))
}

impl Transition<'_> {
    /// Repeats the create that failed last in the name of its author, unless that was done often enough.
    fn repeat_create(&mut self, result: OrphanResult) {
        let mut ended = self.next.ended.iter().rev();
        let last = ended.find(|ended| ended.change == IntentChange::Provision);
        // Another create that a person asked for and took back is not repeated.
        let failed = last.filter(|last| matches!(last.end, IntentEnd::Failed(_)));
        let Some(failed) = failed.cloned() else {
            return;
        };
        let is_left = result == OrphanResult::LeftToOperator;
        if is_left || self.next.auto_retries >= self.context.policy.auto_retries {
            return;
        }
        self.next.auto_retries += 1;
        let cause = IntentCause::AutoRetry(failed.number);
        self.accept_create(&ChangeRequest::of_platform(failed.author, cause), 0);
    }
}
