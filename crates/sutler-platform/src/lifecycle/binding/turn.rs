//! The turn of an intent: its operation was claimed, and its request is prepared or was sent by a process that ended.
//!
//! A request is written down with the state `Sending` before it is sent. Whether it was sent is therefore unknown after
//! a takeover, and it is sent again, byte for byte.

use crate::lifecycle::binding::transition::{Transition, own_statement};
use crate::lifecycle::binding::{
    BindExposure, Binding, BindingBody, BindingDecision, BindingEffect, BindingEventError,
    BindingReply, Context, GenerationState, IntentChange, Observation, PendingIntent, PreparedTurn,
};
use crate::lifecycle::instance::Tombstone;
use crate::lifecycle::intent::{HoldReason, IntentEnd, IntentNumber, IntentState, UnknownQuestion};
use crate::lifecycle::orphan::OrphanCause;
use sutler_client::RetryAfter;

/// The turn of the active intent.
pub(super) fn turn(
    binding: Binding,
    number: IntentNumber,
    prepared: PreparedTurn,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    if binding.active() != Some(number) {
        return Err(BindingEventError::OutOfDate);
    }
    let Some(intent) = binding.intent(number).cloned() else {
        return Err(BindingEventError::OutOfDate);
    };
    let mut transition = Transition::of(binding, context);
    match prepared {
        PreparedTurn::Ready => transition.begin(&intent)?,
        PreparedTurn::Unresolved(sentence) => {
            transition.hold(&intent, HoldReason::UnresolvedParameters(sentence))?;
        }
        PreparedTurn::Unfit(sentences) => {
            transition.hold(&intent, HoldReason::InvalidParameters(sentences))?;
        }
        PreparedTurn::TakenOver => transition.taken_over(&intent)?,
        PreparedTurn::TakenOverTooOften => transition.taken_over_too_often(&intent),
        PreparedTurn::InstanceNotReady => transition.wait_for_instance(&intent)?,
        PreparedTurn::InstanceBusy => transition.instance_busy(&intent)?,
        PreparedTurn::InstanceGone => transition.instance_gone(&intent)?,
        PreparedTurn::Observed(observation) => transition.observed(&intent, observation)?,
    }
    Ok(transition.decision(BindingReply::Nothing))
}

impl Binding {
    /// The bind that the broker works on.
    pub(super) fn polled_bind(&self) -> Option<&PendingIntent> {
        let bind = self.pending_bind();
        bind.filter(|intent| matches!(intent.state, IntentState::Polling { .. }))
    }
}

impl Transition<'_> {
    fn begin(&mut self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        match &intent.state {
            IntentState::Queued { .. } => match &intent.change {
                IntentChange::Delete if self.needs_no_call() => self.gone(intent.number),
                IntentChange::Delete if self.polls_next() => self.poll_under(),
                IntentChange::Bind(_) | IntentChange::Unbind(_) | IntentChange::Delete => {
                    self.send(intent);
                }
            },
            IntentState::Unknown {
                question: UnknownQuestion::SendAgain,
            } => self.send(intent),
            IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            } => self.effect(BindingEffect::Look),
            IntentState::Polling { .. } => self.effect(BindingEffect::Poll(intent.number)),
            IntentState::Sending { .. } | IntentState::OnHold(_) | IntentState::Suspended => {
                return Err(BindingEventError::OutOfDate);
            }
        }
        Ok(())
    }

    /// The request is written down, and sent after that.
    fn send(&mut self, intent: &PendingIntent) {
        let now = self.context.now;
        self.edit(intent.number, |it| {
            let attempt = it.attempts.saturating_add(1);
            it.attempts = attempt;
            it.first_sent = it.first_sent.or(Some(now));
            it.waits_for_instance = false;
            it.state = IntentState::Sending { attempt };
        });
        match &intent.change {
            IntentChange::Bind(bind) => self.edit_generation(&bind.osb_id, |generation| {
                generation.bind_sent = Some(now);
                generation.state = GenerationState::Binding(BindExposure::MayExist);
            }),
            IntentChange::Unbind(_) => {}
            IntentChange::Delete => self.choose_target(),
        }
        self.effect(BindingEffect::Send);
    }

    /// A delete that is sent for the first time, or after the end of a generation, goes on with the next one.
    fn choose_target(&mut self) {
        let next = self.next.next_to_unbind().map(|it| it.osb_id.clone());
        if let Some(deletion) = &mut self.next.deletion {
            deletion.target = deletion.target.take().or(next);
        }
    }

    fn polls_next(&self) -> bool {
        let polls = self.next.deletion.as_ref().is_some_and(|it| it.polls_next);
        polls && self.under_delete().is_some()
    }

    /// The bind in progress under a delete.
    pub(super) fn under_delete(&self) -> Option<&PendingIntent> {
        self.next.polled_bind()
    }

    /// A delete that the broker does not take now polls what is in progress, and is sent again after that.
    fn poll_under(&mut self) {
        let Some(number) = self.under_delete().map(|intent| intent.number) else {
            return;
        };
        if let Some(deletion) = &mut self.next.deletion {
            deletion.polls_next = false;
        }
        self.effect(BindingEffect::Poll(number));
    }

    /// A bind waits for a person; others go on.
    fn hold(
        &mut self,
        intent: &PendingIntent,
        reason: HoldReason,
    ) -> Result<(), BindingEventError> {
        self.require_queued_bind(intent)?;
        self.set_state(intent.number, IntentState::OnHold(reason));
        Ok(())
    }

    fn wait_for_instance(&mut self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        self.require_queued_bind(intent)?;
        self.edit(intent.number, |it| it.waits_for_instance = true);
        self.again(intent.number, BindingEffect::TryAgainAfter(None));
        Ok(())
    }

    fn require_queued_bind(&self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        let is_queued = matches!(intent.state, IntentState::Queued { .. });
        match &intent.change {
            IntentChange::Bind(_) if is_queued => Ok(()),
            IntentChange::Bind(_) | IntentChange::Unbind(_) | IntentChange::Delete => {
                Err(BindingEventError::OutOfDate)
            }
        }
    }

    fn taken_over(&mut self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        if !matches!(intent.state, IntentState::Sending { .. }) {
            return Err(BindingEventError::OutOfDate);
        }
        self.edit(intent.number, |it| {
            it.in_doubt = true;
            it.state = IntentState::Unknown {
                question: UnknownQuestion::SendAgain,
            };
        });
        self.again(intent.number, BindingEffect::TryAgainNow);
        Ok(())
    }

    /// A bind that was sent is never called failed for that: it stays in doubt, and a person decides. An unbind leaves
    /// its generation as it is.
    fn taken_over_too_often(&mut self, intent: &PendingIntent) {
        let was_sent = match intent.state {
            IntentState::Sending { .. }
            | IntentState::Unknown { .. }
            | IntentState::Polling { .. } => true,
            IntentState::Queued { .. } | IntentState::OnHold(_) | IntentState::Suspended => false,
        };
        let failed = || IntentEnd::Failed(own_statement("it ended its processes too often"));
        match &intent.change {
            IntentChange::Bind(_) => self.edit(intent.number, |it| {
                it.in_doubt |= was_sent;
                it.state = IntentState::OnHold(HoldReason::Interrupted);
            }),
            IntentChange::Unbind(osb_id) => self.unbind_failed(intent.number, osb_id, failed()),
            IntentChange::Delete => self.delete_failed(intent.number, failed()),
        }
    }

    /// Nothing is sent while another operation of the instance is in progress.
    fn instance_busy(&mut self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        match intent.state {
            IntentState::Queued { .. }
            | IntentState::Unknown {
                question: UnknownQuestion::SendAgain,
            } => {
                self.again(intent.number, BindingEffect::TryAgainAfter(None));
                Ok(())
            }
            IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            }
            | IntentState::Sending { .. }
            | IntentState::Polling { .. }
            | IntentState::OnHold(_)
            | IntentState::Suspended => Err(BindingEventError::OutOfDate),
        }
    }

    /// Without its instance the binding ends. Bindings are deleted before their instance, so it was given up: what the
    /// broker may have goes to the ledger.
    fn instance_gone(&mut self, intent: &PendingIntent) -> Result<(), BindingEventError> {
        if matches!(intent.state, IntentState::Sending { .. }) {
            return Err(BindingEventError::OutOfDate);
        }
        self.end_all(|intent| match &intent.change {
            IntentChange::Delete => IntentEnd::Succeeded,
            IntentChange::Bind(_) | IntentChange::Unbind(_) => {
                IntentEnd::Failed(own_statement("the instance is deleted"))
            }
        });
        self.abandon_generations(None);
        self.close(Tombstone::Abandoned(self.context.now));
        Ok(())
    }

    /// A look at what the broker has under the id of a bind that is done, or whose outcome is unknown.
    fn observed(
        &mut self,
        intent: &PendingIntent,
        observation: Observation,
    ) -> Result<(), BindingEventError> {
        let looks = intent.state
            == IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            };
        let Some(bind) = intent.change.bind().filter(|_| looks) else {
            return Err(BindingEventError::OutOfDate);
        };
        match observation {
            Observation::InProgress => self.poll_from_now(intent.number, None),
            Observation::Found(BindingBody::Fit(details)) => self.bound(intent, bind, details),
            Observation::Found(BindingBody::Unfit(sentence)) => {
                let statement = own_statement(&sentence);
                self.bind_failed(intent, bind, statement, OrphanCause::UnusableBinding);
            }
            Observation::NotNow if !self.is_overdue(intent) => {
                self.again(intent.number, BindingEffect::TryAgainAfter(None));
            }
            Observation::AbsentOrUnreadable | Observation::NotNow => {
                let statement = own_statement("the broker did not return the binding");
                self.create_failed(intent, bind, statement);
            }
        }
        Ok(())
    }

    /// The broker works on it from now on.
    pub(super) fn poll_from_now(&mut self, number: IntentNumber, after: Option<RetryAfter>) {
        let since = self.context.now;
        self.set_state(number, IntentState::Polling { since });
        self.again(number, BindingEffect::PollAfter(after));
    }
}
