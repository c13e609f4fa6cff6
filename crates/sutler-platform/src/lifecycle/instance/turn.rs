//! The turn of an intent: its operation was claimed, and its request is prepared or was sent by a process that ended.
//!
//! A request is written down with the state `Sending` before it is sent. Whether it was sent is therefore unknown after
//! a takeover, and it is sent again, byte for byte.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    BindingsFound, Context, Exposure, Instance, InstanceDecision, InstanceEffect,
    InstanceEventError, InstanceReply, IntentChange, Observation, PendingIntent, PreparedTurn,
};
use crate::lifecycle::intent::{
    BrokerStatement, HoldReason, IntentEnd, IntentNumber, IntentState, UnknownQuestion,
};
use jiff::Timestamp;
use sutler_client::RetryCause;

/// The turn of the active intent.
pub(super) fn turn(
    instance: Instance,
    number: IntentNumber,
    prepared: PreparedTurn,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if instance.active() != Some(number) {
        return Err(InstanceEventError::OutOfDate);
    }
    let Some(intent) = instance.intent(number).cloned() else {
        return Err(InstanceEventError::OutOfDate);
    };
    let mut transition = Transition::of(instance, context);
    match prepared {
        PreparedTurn::Ready => transition.begin(&intent)?,
        PreparedTurn::NothingToDo => transition.nothing_to_do(&intent)?,
        PreparedTurn::Unresolved(sentence) => {
            transition.hold(&intent, HoldReason::UnresolvedParameters(sentence))?;
        }
        PreparedTurn::Unfit(sentences) => {
            transition.hold(&intent, HoldReason::InvalidParameters(sentences))?;
        }
        PreparedTurn::TakenOver => transition.taken_over(&intent)?,
        PreparedTurn::TakenOverTooOften => transition.taken_over_too_often(&intent),
        PreparedTurn::Bindings(found) => transition.bindings_found(&intent, found)?,
        PreparedTurn::Observed(observation) => transition.observed(&intent, observation)?,
    }
    Ok(transition.decision(InstanceReply::Nothing))
}

impl Transition<'_> {
    fn begin(&mut self, intent: &PendingIntent) -> Result<(), InstanceEventError> {
        match &intent.state {
            IntentState::Queued { .. } => match &intent.change {
                IntentChange::Local(_) => self.apply_local(intent.number),
                IntentChange::Delete if self.needs_no_call() => self.gone(intent.number),
                IntentChange::Delete if self.polls_next() => self.poll_under(),
                IntentChange::Provision | IntentChange::Update(_) | IntentChange::Delete => {
                    self.send(intent);
                }
            },
            IntentState::Unknown {
                question: UnknownQuestion::SendAgain,
            } => self.send(intent),
            IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            } => self.effect(InstanceEffect::Look),
            IntentState::Polling { .. } => self.effect(InstanceEffect::Poll(intent.number)),
            IntentState::Sending { .. } | IntentState::OnHold(_) | IntentState::Suspended => {
                return Err(InstanceEventError::OutOfDate);
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
            it.state = IntentState::Sending { attempt };
        });
        if intent.change == IntentChange::Provision {
            self.next.exposure = Exposure::MayExist;
            self.next.create_sent = Some(now);
        }
        self.effect(InstanceEffect::Send);
    }

    /// Whether the broker cannot have the instance.
    fn needs_no_call(&self) -> bool {
        match self.next.exposure {
            Exposure::Nothing | Exposure::OnLedger => true,
            Exposure::MayExist | Exposure::Confirmed | Exposure::Uncertain(_) => false,
        }
    }

    fn polls_next(&self) -> bool {
        let polls = self.next.deletion.as_ref().is_some_and(|it| it.polls_next);
        polls && self.under_delete().is_some()
    }

    /// The create or update in progress under a delete.
    pub(super) fn under_delete(&self) -> Option<&PendingIntent> {
        self.next.pending.iter().find(|intent| {
            !intent.change.is_delete() && matches!(intent.state, IntentState::Polling { .. })
        })
    }

    /// A delete that the broker does not take now polls what is in progress, and is sent again after that.
    fn poll_under(&mut self) {
        let Some(number) = self.under_delete().map(|intent| intent.number) else {
            return;
        };
        if let Some(deletion) = &mut self.next.deletion {
            deletion.polls_next = false;
        }
        self.effect(InstanceEffect::Poll(number));
    }

    fn nothing_to_do(&mut self, intent: &PendingIntent) -> Result<(), InstanceEventError> {
        match (&intent.state, &intent.change) {
            (IntentState::Queued { .. }, IntentChange::Update(patch)) => {
                let undo = self.confirm(patch);
                self.end_with(intent.number, IntentEnd::Succeeded, Some(undo));
                Ok(())
            }
            _ => Err(InstanceEventError::OutOfDate),
        }
    }

    /// The intent waits for a person, and so does what needs it; others go on.
    fn hold(
        &mut self,
        intent: &PendingIntent,
        reason: HoldReason,
    ) -> Result<(), InstanceEventError> {
        let is_queued = matches!(intent.state, IntentState::Queued { .. });
        match intent.change {
            IntentChange::Provision | IntentChange::Update(_) if is_queued => {
                self.set_state(intent.number, IntentState::OnHold(reason));
                self.hold_dependents(intent);
                Ok(())
            }
            IntentChange::Provision
            | IntentChange::Update(_)
            | IntentChange::Local(_)
            | IntentChange::Delete => Err(InstanceEventError::OutOfDate),
        }
    }

    fn taken_over(&mut self, intent: &PendingIntent) -> Result<(), InstanceEventError> {
        if !matches!(intent.state, IntentState::Sending { .. }) {
            return Err(InstanceEventError::OutOfDate);
        }
        self.edit(intent.number, |it| {
            it.in_doubt = true;
            it.state = IntentState::Unknown {
                question: UnknownQuestion::SendAgain,
            };
        });
        self.again(intent.number, InstanceEffect::TryAgainNow);
        Ok(())
    }

    /// What was sent is never called failed for that: it stays in doubt, and a person decides. A delete leaves the
    /// instance as it is.
    fn taken_over_too_often(&mut self, intent: &PendingIntent) {
        let was_sent = match intent.state {
            IntentState::Sending { .. }
            | IntentState::Unknown { .. }
            | IntentState::Polling { .. } => true,
            IntentState::Queued { .. } | IntentState::OnHold(_) | IntentState::Suspended => false,
        };
        if intent.change.is_delete() {
            let statement = own_statement("the delete ended its processes too often");
            self.delete_failed(intent.number, IntentEnd::Failed(statement), true);
            return;
        }
        if was_sent && matches!(intent.change, IntentChange::Update(_)) {
            self.mark_uncertain(intent.number);
        }
        self.edit(intent.number, |it| {
            it.in_doubt |= was_sent;
            it.state = IntentState::OnHold(HoldReason::Interrupted);
        });
        self.hold_dependents(intent);
    }

    fn bindings_found(
        &mut self,
        intent: &PendingIntent,
        found: BindingsFound,
    ) -> Result<(), InstanceEventError> {
        let is_queued = matches!(intent.state, IntentState::Queued { .. });
        if !intent.change.is_delete() || !is_queued {
            return Err(InstanceEventError::OutOfDate);
        }
        let deletion = self.next.deletion.as_ref();
        let cascade = deletion.and_then(|it| it.cascade.clone());
        match (found, cascade) {
            (BindingsFound::Left, Some(by)) => {
                self.effect(InstanceEffect::Unbind(by));
                self.again(intent.number, InstanceEffect::TryAgainAfter(None));
            }
            (BindingsFound::Left, None) => {
                let statement = own_statement("bindings of the instance exist; delete them first");
                self.delete_failed(intent.number, IntentEnd::Rejected(statement), true);
            }
            (BindingsFound::Stuck(name), _) => {
                let statement = own_statement(&format!("the binding {name} cannot be deleted"));
                self.delete_failed(intent.number, IntentEnd::Rejected(statement), true);
            }
        }
        Ok(())
    }

    /// A look at what the broker has under the id of a create whose outcome is unknown.
    fn observed(
        &mut self,
        intent: &PendingIntent,
        observation: Observation,
    ) -> Result<(), InstanceEventError> {
        let looks = intent.state
            == IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            };
        if !looks || intent.change != IntentChange::Provision {
            return Err(InstanceEventError::OutOfDate);
        }
        match observation {
            Observation::InProgress => self.poll_from_now(intent.number, None),
            Observation::Ours(details) => self.created(intent.number, details),
            Observation::AbsentOrUnreadable => {
                let statement =
                    own_statement("the broker did not confirm that it created the instance");
                self.create_failed(intent.number, statement);
            }
            Observation::NotNow if self.is_overdue(intent, RetryCause::BrokerError) => {
                let statement = own_statement("the broker did not say whether the instance exists");
                self.create_failed(intent.number, statement);
            }
            Observation::NotNow => self.again(intent.number, InstanceEffect::TryAgainAfter(None)),
        }
        Ok(())
    }

    /// The broker works on it from now on.
    pub(super) fn poll_from_now(
        &mut self,
        number: IntentNumber,
        after: Option<sutler_client::RetryAfter>,
    ) {
        let since: Timestamp = self.context.now;
        self.set_state(number, IntentState::Polling { since });
        self.again(number, InstanceEffect::PollAfter(after));
    }
}

/// A statement of the platform itself.
pub(super) fn own_statement(sentence: &str) -> BrokerStatement {
    BrokerStatement {
        status: None,
        error: None,
        description: Some(sentence.to_owned()),
    }
}
