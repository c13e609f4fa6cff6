//! Answers of the broker to an update of an instance, and to polls of it.
//!
//! A rejected update leaves the specification, and nothing else changes: the instance stays as usable as the broker says.
//! After an attempt without an answer the instance is uncertain even so.
//! Nothing is ever deleted after an update (P-095).

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Basis, ConfirmedState, Context, Exposure, FetchedInstance, Instance, InstanceDecision,
    InstanceEffect, InstanceEventError, InstanceReply, IntentChange, PendingIntent,
    ResourceDetails,
};
use crate::lifecycle::intent::{BrokerStatement, IntentEnd, IntentNumber, IntentState};
use crate::spec::SpecPatch;
use sutler_client::{Meaning, Success};

impl Transition<'_> {
    /// The answer to an update that was sent, or to a poll of it.
    pub(super) fn update_answered(
        &mut self,
        intent: &PendingIntent,
        patch: &SpecPatch,
        answer: Meaning<ResourceDetails>,
    ) -> Result<(), InstanceEventError> {
        let number = intent.number;
        match answer {
            Meaning::Succeeded(Success::Now(details)) => self.updated(intent, patch, details),
            Meaning::Succeeded(Success::Polled) => {
                self.updated(intent, patch, ResourceDetails::default());
            }
            Meaning::Succeeded(Success::FetchBinding | Success::Gone) => {
                return Err(InstanceEventError::OutOfDate);
            }
            Meaning::Polling { update, after } => self.in_progress(intent, update, after),
            Meaning::Rejected { message, .. } => {
                // A refusal that says nothing does not repair an instance (P-096).
                self.next.usable &= message.usable;
                // It refuses this attempt; an earlier one without an answer may have been applied (D-39).
                if intent.in_doubt {
                    self.mark_uncertain(number);
                }
                self.drop_intent(number, IntentEnd::Rejected((&message).into()));
                if intent.in_doubt && self.context.policy.retrievable {
                    self.effect(InstanceEffect::Fetch);
                }
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => {
                let statement = BrokerStatement::from(&message);
                if !self.is_overdue(intent, cause) {
                    self.queue_again(intent, statement, after);
                } else if intent.in_doubt {
                    self.update_uncertain(number, statement);
                } else {
                    self.drop_intent(number, IntentEnd::Failed(statement));
                }
            }
            Meaning::Unknown { question, message } => {
                self.outcome_unknown(intent, question, (&message).into());
            }
            Meaning::Failed { message, .. } => self.update_uncertain(number, (&message).into()),
        }
        Ok(())
    }

    fn updated(&mut self, intent: &PendingIntent, patch: &SpecPatch, details: ResourceDetails) {
        let undo = self.confirm(patch);
        let accepted = intent.details.clone().unwrap_or_default();
        if let Basis::Confirmed(confirmed) = &mut self.next.basis {
            // Absent means unchanged (P-094).
            let dashboard_url = details.dashboard_url.or(accepted.dashboard_url);
            confirmed.dashboard_url = dashboard_url.or(confirmed.dashboard_url.take());
            let metadata = details.metadata.or(accepted.metadata);
            confirmed.metadata = metadata.or(confirmed.metadata.take());
        }
        self.next.exposure = Exposure::Confirmed;
        self.next.usable = true;
        self.end_with(intent.number, IntentEnd::Succeeded, Some(undo));
    }

    /// What the broker has is not known until an update succeeds or the broker is asked.
    pub(super) fn mark_uncertain(&mut self, number: IntentNumber) {
        let mut uncertain = match std::mem::replace(&mut self.next.exposure, Exposure::Nothing) {
            Exposure::Uncertain(numbers) => numbers,
            Exposure::Nothing | Exposure::MayExist | Exposure::Confirmed | Exposure::OnLedger => {
                Vec::new()
            }
        };
        uncertain.push(number);
        self.next.exposure = Exposure::Uncertain(uncertain);
    }

    /// An update ends without an answer to what was sent: the instance is uncertain.
    pub(super) fn leave_in_doubt(&mut self, number: IntentNumber) {
        let is_doubtful = self.next.intent(number).is_some_and(|intent| {
            let has_begun = matches!(
                intent.state,
                IntentState::Unknown { .. } | IntentState::Polling { .. }
            );
            matches!(intent.change, IntentChange::Update(_)) && (intent.in_doubt || has_begun)
        });
        if is_doubtful {
            self.mark_uncertain(number);
        }
    }

    /// The update may have been applied or not (D-39).
    pub(super) fn update_uncertain(&mut self, number: IntentNumber, statement: BrokerStatement) {
        self.mark_uncertain(number);
        self.drop_intent(number, IntentEnd::Failed(statement));
        if self.context.policy.retrievable {
            self.effect(InstanceEffect::Fetch);
        }
    }
}

/// The broker says what the instance is, after an update whose outcome was unknown.
pub(super) fn fetched(
    instance: Instance,
    fetched: FetchedInstance,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if !matches!(instance.exposure, Exposure::Uncertain(_)) || instance.is_busy() {
        return Err(InstanceEventError::OutOfDate);
    }
    let mut transition = Transition::of(instance, context);
    transition.next.exposure = Exposure::Confirmed;
    let FetchedInstance { mut spec, details } = fetched;
    // A broker knows nothing of these.
    let own = transition.next.basis.spec();
    spec.name = own.name.clone();
    spec.labels = own.labels.clone();
    spec.annotations = own.annotations.clone();
    // Absent means unchanged, as after an update (P-094).
    let before = transition.next.confirmed().cloned();
    let (dashboard_url, metadata) =
        before.map_or((None, None), |it| (it.dashboard_url, it.metadata));
    transition.next.basis = Basis::Confirmed(Box::new(ConfirmedState {
        spec,
        dashboard_url: details.dashboard_url.or(dashboard_url),
        metadata: details.metadata.or(metadata),
    }));
    Ok(transition.decision(InstanceReply::Nothing))
}
