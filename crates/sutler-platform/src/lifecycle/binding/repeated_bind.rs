//! The bind that the platform repeats by itself, after the orphan ledger has deleted what the last one left.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    BindFacts, Binding, BindingDecision, BindingEventError, BindingReply, Context, IntentCause,
};
use crate::lifecycle::intent::IntentEnd;
use crate::lifecycle::orphan::OrphanResult;
use sutler_osb::BindingId;

impl Binding {
    /// Whether it waits for the orphan of this id. A document of an earlier version does not say for which.
    pub(crate) fn waits_for(&self, orphan: &BindingId) -> bool {
        let awaited = self.awaited_orphan.as_ref();
        self.waits_for_orphan && awaited.is_none_or(|it| it == orphan)
    }
}

/// The orphan of the last bind is settled: the bind is repeated, if that is left to the platform. Nothing waits for that of
/// an earlier one.
pub(super) fn orphan_settled(
    binding: Binding,
    orphan: &BindingId,
    result: OrphanResult,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    if !binding.waits_for(orphan) {
        return Err(BindingEventError::OutOfDate);
    }
    let mut transition = Transition::of(binding, context);
    transition.next.waits_for_orphan = false;
    transition.next.awaited_orphan = None;
    let is_planned = transition.next.deletion.is_some() || transition.next.pending_bind().is_some();
    match result {
        OrphanResult::Deleted if !is_planned => transition.repeat_bind(),
        OrphanResult::Deleted | OrphanResult::LeftToOperator => {}
    }
    Ok(transition.decision(BindingReply::Nothing))
}

impl Transition<'_> {
    /// Repeats the bind that failed last in the name of its author, unless that was done often enough. Its turn finds
    /// out whether the instance can still be bound to.
    fn repeat_bind(&mut self) {
        if self.next.auto_retries >= self.context.policy.auto_retries {
            return;
        }
        let failed = self.next.ended.iter().rev().find(|ended| {
            ended.change.bind().is_some() && matches!(ended.end, IntentEnd::Failed(_))
        });
        let Some(failed) = failed.cloned() else {
            return;
        };
        self.next.auto_retries += 1;
        let cause = IntentCause::AutoRetry(failed.number);
        self.accept_bind(failed.author, cause, &BindFacts::of_repeated_bind());
    }
}
