//! Answers of the broker to the create of an instance, and to polls of it.
//!
//! After a failure that may have left something, the orphan ledger deletes it under its own id, and the platform repeats
//! the create a few times under a new one. If a delete waits, the delete does that instead.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Basis, ConfirmedState, Exposure, InstanceEffect, InstanceEventError, IntentChange,
    PendingIntent, ResourceDetails,
};
use crate::lifecycle::intent::{BrokerStatement, IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanCause;
use sutler_client::{CleanupDuty, Meaning, NextQuestion, PollUpdate, RetryCause, Success};

impl Transition<'_> {
    /// The answer to a create that was sent, or to a poll of it.
    pub(super) fn create_answered(
        &mut self,
        intent: &PendingIntent,
        answer: Meaning<ResourceDetails>,
    ) -> Result<(), InstanceEventError> {
        let number = intent.number;
        match answer {
            Meaning::Succeeded(Success::Now(details)) => self.created(number, details),
            Meaning::Succeeded(Success::Polled) => self.created(number, ResourceDetails::default()),
            Meaning::Succeeded(Success::FetchBinding | Success::Gone) => {
                return Err(InstanceEventError::OutOfDate);
            }
            Meaning::Polling { update, after } => self.in_progress(intent, update, after),
            Meaning::Rejected { message, .. } if intent.in_doubt => {
                self.create_failed(number, (&message).into());
            }
            Meaning::Rejected { message, .. } => {
                self.nothing_created();
                self.drop_intent(number, IntentEnd::Rejected((&message).into()));
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => {
                let statement = BrokerStatement::from(&message);
                if !intent.in_doubt {
                    self.nothing_created();
                }
                if !self.is_overdue(intent, cause) {
                    self.queue_again(intent, statement, after);
                } else if intent.in_doubt {
                    self.create_failed(number, statement);
                } else {
                    self.drop_intent(number, IntentEnd::Failed(statement));
                }
            }
            Meaning::Unknown { question, message } => {
                self.outcome_unknown(intent, question, (&message).into());
            }
            Meaning::Failed {
                cleanup: CleanupDuty::DeleteBeforeForgetting,
                message,
            } => self.drop_intent(number, IntentEnd::Failed((&message).into())),
            Meaning::Failed { message, .. } => self.create_failed(number, (&message).into()),
        }
        Ok(())
    }

    /// The broker confirmed the create.
    pub(super) fn created(&mut self, number: IntentNumber, details: ResourceDetails) {
        let accepted = self.next.intent(number);
        let accepted = accepted.and_then(|intent| intent.details.clone());
        let accepted = accepted.unwrap_or_default();
        let spec = self.next.basis.spec().clone();
        self.next.basis = Basis::Confirmed(Box::new(ConfirmedState {
            spec,
            dashboard_url: details.dashboard_url.or(accepted.dashboard_url),
            metadata: details.metadata.or(accepted.metadata),
        }));
        self.next.exposure = Exposure::Confirmed;
        self.forget_create(number);
        self.next.usable = true;
        self.next.auto_retries = 0;
        self.end(number, IntentEnd::Succeeded);
        self.effect(InstanceEffect::WakeBindings);
    }

    /// The create failed, and the broker may have something.
    pub(super) fn create_failed(&mut self, number: IntentNumber, statement: BrokerStatement) {
        let end = IntentEnd::Failed(statement);
        if self.next.deletion.is_some() {
            self.next.exposure = Exposure::MayExist;
            self.drop_intent(number, end);
            return;
        }
        let cause = match self.next.intent(number).is_some_and(|it| it.in_doubt) {
            true => OrphanCause::DoubtfulCreate,
            false => OrphanCause::FailedCreate,
        };
        self.record_orphan(cause);
        self.renew_osb_id();
        self.next.exposure = Exposure::OnLedger;
        if self.context.policy.manual_cleanup {
            self.drop_intent(number, end);
        } else {
            self.next.waits_for_orphan = true;
            // What is behind it waits for the next create.
            self.end(number, end);
        }
    }

    /// The create that was sent was answered. An earlier attempt without an answer may take effect still.
    fn forget_create(&mut self, number: IntentNumber) {
        if self.next.intent(number).is_some_and(|it| !it.in_doubt) {
            self.next.create_sent = None;
        }
    }

    /// An answer proves that no create of the present id had an effect.
    fn nothing_created(&mut self) {
        self.next.exposure = Exposure::Nothing;
        self.next.create_sent = None;
    }

    /// The broker accepted a create or an update, or works on it.
    pub(super) fn in_progress(
        &mut self,
        intent: &PendingIntent,
        update: PollUpdate,
        after: Option<sutler_client::RetryAfter>,
    ) {
        if let PollUpdate::Accepted(accepted) = update {
            let details = ResourceDetails {
                dashboard_url: accepted.dashboard_url,
                metadata: accepted.metadata,
            };
            self.edit(intent.number, |it| it.details = Some(details));
            if intent.change == IntentChange::Provision {
                self.forget_create(intent.number);
            }
        }
        if matches!(intent.state, IntentState::Polling { .. }) {
            self.again(intent.number, InstanceEffect::PollAfter(after));
        } else {
            self.poll_from_now(intent.number, after);
        }
    }

    /// The same request is sent again later; below a delete it waits for that.
    pub(super) fn queue_again(
        &mut self,
        intent: &PendingIntent,
        statement: BrokerStatement,
        after: Option<sutler_client::RetryAfter>,
    ) {
        let last = Some(statement);
        let state = match (self.next.deletion.is_some(), intent.change.is_delete()) {
            (true, false) => IntentState::Suspended,
            (true, true) | (false, _) => IntentState::Queued { last },
        };
        self.set_state(intent.number, state);
        self.again(intent.number, InstanceEffect::TryAgainAfter(after));
    }

    /// The outcome is unknown: it is found out, unless the time for all attempts is over.
    pub(super) fn outcome_unknown(
        &mut self,
        intent: &PendingIntent,
        question: NextQuestion,
        statement: BrokerStatement,
    ) {
        self.edit(intent.number, |it| {
            it.in_doubt = true;
            it.state = IntentState::Unknown {
                question: question.into(),
            };
        });
        if !self.is_overdue(intent, RetryCause::BrokerError) {
            self.again(intent.number, InstanceEffect::TryAgainAfter(None));
            return;
        }
        match intent.change {
            IntentChange::Provision => self.create_failed(intent.number, statement),
            IntentChange::Update(_) => self.update_uncertain(intent.number, statement),
            IntentChange::Delete => {
                let usable = self.next.usable;
                self.delete_failed(intent.number, IntentEnd::Failed(statement), usable);
            }
            IntentChange::Local(_) => {}
        }
    }

    /// Whether the time for all attempts is over. Wrong credentials of the broker never end an intent: they are the
    /// operator's fault, and the breaker stops the requests.
    pub(super) fn is_overdue(&self, intent: &PendingIntent, cause: RetryCause) -> bool {
        let within = self.context.policy.send_within;
        let is_late =
            |sent: jiff::Timestamp| self.context.now.duration_since(sent).unsigned_abs() >= within;
        cause != RetryCause::Unauthorized && intent.first_sent.is_some_and(is_late)
    }
}
