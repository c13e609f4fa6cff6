//! Answers of the broker to a bind, and to polls of it; and what the answers to all requests have in common.
//!
//! After a failure that may have left something, the orphan ledger unbinds it under its own id. The first bind of a
//! binding is repeated a few times under new ones; a rotation is not, because the current credentials still work. If a
//! delete waits, the delete unbinds what is left.

use crate::lifecycle::binding::transition::{Transition, own_statement};
use crate::lifecycle::binding::{
    BindChange, BindingBody, BindingDetails, BindingEffect, BindingEventError, IntentChange,
    PendingIntent, TargetResource,
};
use crate::lifecycle::intent::{BrokerStatement, IntentEnd, IntentState, UnknownQuestion};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use sutler_client::{
    CleanupDuty, Meaning, NextQuestion, RejectionReason, RetryAfter, RetryCause, Success,
};

impl Transition<'_> {
    /// The answer to a bind that was sent, or to a poll of it.
    pub(super) fn bind_answered(
        &mut self,
        intent: &PendingIntent,
        bind: &BindChange,
        answer: Meaning<BindingBody>,
    ) -> Result<(), BindingEventError> {
        match answer {
            Meaning::Succeeded(Success::Now(BindingBody::Fit(details))) => {
                self.bound(intent, bind, details);
            }
            Meaning::Succeeded(Success::Now(BindingBody::Unfit(sentence))) => {
                let statement = own_statement(&sentence);
                self.bind_failed(intent, bind, statement, OrphanCause::UnusableBinding);
            }
            Meaning::Succeeded(Success::FetchBinding) => self.fetch(intent, bind),
            Meaning::Succeeded(Success::Polled | Success::Gone) => {
                return Err(BindingEventError::OutOfDate);
            }
            Meaning::Polling { after, .. } => {
                self.bind_was_answered(intent, bind);
                self.in_progress(intent, after);
            }
            Meaning::Rejected { message, .. } if intent.in_doubt => {
                self.create_failed(intent, bind, (&message).into());
            }
            Meaning::Rejected {
                reason: RejectionReason::RequiresApp,
                ..
            } if self.may_name_application() => self.name_application(intent, bind),
            Meaning::Rejected { message, .. } => {
                self.nothing_was_bound(intent, bind, IntentEnd::Rejected((&message).into()));
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => self.bind_again(intent, bind, cause, after, (&message).into()),
            Meaning::Unknown { question, message } => {
                self.outcome_unknown(intent, question, (&message).into());
            }
            Meaning::Failed {
                cleanup: CleanupDuty::DeleteBeforeForgetting,
                message,
            } => {
                self.bind_was_answered(intent, bind);
                self.count_failed_rotation();
                self.end(intent.number, IntentEnd::Failed((&message).into()));
            }
            Meaning::Failed { message, .. } => {
                self.create_failed(intent, bind, (&message).into());
            }
        }
        Ok(())
    }

    /// The broker confirmed the bind: its credentials are kept from this commit on.
    pub(super) fn bound(
        &mut self,
        intent: &PendingIntent,
        bind: &BindChange,
        details: BindingDetails,
    ) {
        self.bind_was_answered(intent, bind);
        self.make_current(&bind.osb_id, details);
        self.next.chosen_id = None;
        self.next.failed_rotations = None;
        self.next.auto_retries = 0;
        self.end(intent.number, IntentEnd::Succeeded);
    }

    /// A poll says that the bind is done: its credentials are fetched (P-059). That is stored, because the broker may
    /// forget the operation.
    fn fetch(&mut self, intent: &PendingIntent, bind: &BindChange) {
        self.bind_was_answered(intent, bind);
        let question = UnknownQuestion::LookFirst;
        self.set_state(intent.number, IntentState::Unknown { question });
        self.again(intent.number, BindingEffect::Look);
    }

    /// The bind failed, and the broker may have something.
    pub(super) fn create_failed(
        &mut self,
        intent: &PendingIntent,
        bind: &BindChange,
        statement: BrokerStatement,
    ) {
        let cause = match intent.in_doubt {
            true => OrphanCause::DoubtfulCreate,
            false => OrphanCause::FailedCreate,
        };
        self.bind_failed(intent, bind, statement, cause);
    }

    pub(super) fn bind_failed(
        &mut self,
        intent: &PendingIntent,
        bind: &BindChange,
        statement: BrokerStatement,
        cause: OrphanCause,
    ) {
        self.bind_was_answered(intent, bind);
        self.count_failed_rotation();
        if self.next.deletion.is_none()
            && let Some(generation) = self.remove_generation(&bind.osb_id)
        {
            let (cleanup, repeats) = match (self.context.policy.manual_cleanup, cause) {
                (true, _) => (CleanupMode::Manual, false),
                // The same answer would come again.
                (false, OrphanCause::UnusableBinding) => (CleanupMode::Automatic, false),
                (false, _) => (CleanupMode::Automatic, self.next.current().is_none()),
            };
            self.record_orphan(&generation, cause, None, cleanup);
            self.next.waits_for_orphan = repeats;
            self.next.awaited_orphan = repeats.then(|| bind.osb_id.clone());
        }
        self.end(intent.number, IntentEnd::Failed(statement));
    }

    /// The bind that was sent was answered. An earlier attempt without an answer may take effect still.
    fn bind_was_answered(&mut self, intent: &PendingIntent, bind: &BindChange) {
        if !intent.in_doubt {
            self.edit_generation(&bind.osb_id, |generation| generation.bind_sent = None);
        }
    }

    /// The broker has nothing, so the generation is not needed.
    fn nothing_was_bound(&mut self, intent: &PendingIntent, bind: &BindChange, end: IntentEnd) {
        self.remove_generation(&bind.osb_id);
        self.count_failed_rotation();
        self.end(intent.number, end);
    }

    /// The broker does not take the bind now.
    fn bind_again(
        &mut self,
        intent: &PendingIntent,
        bind: &BindChange,
        cause: RetryCause,
        after: Option<RetryAfter>,
        statement: BrokerStatement,
    ) {
        let is_overdue = cause != RetryCause::Unauthorized && self.is_overdue(intent);
        match (is_overdue, intent.in_doubt) {
            (true, true) => self.create_failed(intent, bind, statement),
            (true, false) => self.nothing_was_bound(intent, bind, IntentEnd::Failed(statement)),
            (false, in_doubt) => {
                if !in_doubt {
                    self.nothing_bound(&bind.osb_id);
                }
                self.queue_again(intent, statement, after);
            }
        }
    }

    /// Whether an application can be named that was not named before.
    fn may_name_application(&self) -> bool {
        let is_allowed = self.context.policy.may_name_application;
        is_allowed && self.next.spec.target == TargetResource::Credentials
    }

    /// The broker demands an application: the bind is sent once more and names one, as will all later ones (P-105).
    fn name_application(&mut self, intent: &PendingIntent, bind: &BindChange) {
        self.next.spec.target = TargetResource::Application;
        self.nothing_bound(&bind.osb_id);
        self.effect(BindingEffect::DiscardRequest(intent.operation));
        self.set_waiting(intent, None);
        self.again(intent.number, BindingEffect::TryAgainNow);
    }

    /// The broker works on a request.
    pub(super) fn in_progress(&mut self, intent: &PendingIntent, after: Option<RetryAfter>) {
        if matches!(intent.state, IntentState::Polling { .. }) {
            self.again(intent.number, BindingEffect::PollAfter(after));
        } else {
            self.poll_from_now(intent.number, after);
        }
    }

    /// The same request is sent again later; below a delete it waits for that.
    pub(super) fn queue_again(
        &mut self,
        intent: &PendingIntent,
        statement: BrokerStatement,
        after: Option<RetryAfter>,
    ) {
        self.set_waiting(intent, Some(statement));
        self.again(intent.number, BindingEffect::TryAgainAfter(after));
    }

    fn set_waiting(&mut self, intent: &PendingIntent, last: Option<BrokerStatement>) {
        let state = match (self.next.deletion.is_some(), intent.change.is_delete()) {
            (true, false) => IntentState::Suspended,
            (true, true) | (false, _) => IntentState::Queued { last },
        };
        self.set_state(intent.number, state);
    }

    /// The outcome is unknown: it is found out, unless the time for all attempts is over (T-51, T-62).
    pub(super) fn outcome_unknown(
        &mut self,
        intent: &PendingIntent,
        question: NextQuestion,
        statement: BrokerStatement,
    ) {
        let number = intent.number;
        self.edit(number, |it| {
            it.in_doubt = true;
            it.state = IntentState::Unknown {
                question: question.into(),
            };
        });
        if !self.is_overdue(intent) {
            self.again(number, BindingEffect::TryAgainAfter(None));
            return;
        }
        let end = IntentEnd::Failed(statement.clone());
        match &intent.change {
            IntentChange::Bind(bind) => {
                let mut doubtful = intent.clone();
                doubtful.in_doubt = true;
                self.create_failed(&doubtful, bind, statement);
            }
            IntentChange::Unbind(osb_id) => self.unbind_failed(number, osb_id, end),
            IntentChange::Delete => self.delete_failed(number, end),
        }
    }

    /// Whether the time for all attempts is over.
    pub(super) fn is_overdue(&self, intent: &PendingIntent) -> bool {
        let within = self.context.policy.send_within;
        let is_late =
            |sent: jiff::Timestamp| self.context.now.duration_since(sent).unsigned_abs() >= within;
        intent.first_sent.is_some_and(is_late)
    }
}
