//! Answers of the broker to the delete of an instance, and to polls of it.
//!
//! The instance is gone only when the broker says so. If it refuses, everything is as before, credentials included.

use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Instance, InstanceEffect, InstanceEventError, PendingIntent, ResourceDetails,
};
use crate::lifecycle::intent::{
    BrokerStatement, CancelledBy, IntentEnd, IntentNumber, IntentState,
};
use sutler_client::{Meaning, RetryAfter, RetryCause, Success};

impl Transition<'_> {
    /// The answer to a delete that was sent, or to a poll of it.
    pub(super) fn delete_answered(
        &mut self,
        intent: &PendingIntent,
        answer: Meaning<ResourceDetails>,
    ) -> Result<(), InstanceEventError> {
        let number = intent.number;
        match answer {
            Meaning::Succeeded(Success::Gone) => self.gone(number),
            Meaning::Succeeded(Success::Now(_) | Success::Polled | Success::FetchBinding) => {
                return Err(InstanceEventError::OutOfDate);
            }
            Meaning::Polling { update, after } => {
                if matches!(intent.state, IntentState::Sending { .. }) {
                    self.cancel_under(number);
                }
                self.in_progress(intent, update, after);
            }
            Meaning::Rejected { message, .. } => {
                let end = IntentEnd::Rejected((&message).into());
                self.delete_failed(number, end, message.usable);
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => {
                if cause == RetryCause::HalfDeleted {
                    self.next.usable = false;
                    // What is left cannot be taken back by ending the delete.
                    self.edit(number, |intent| intent.in_doubt = true);
                }
                self.delete_again(intent, cause, after, (&message).into());
            }
            Meaning::Unknown { question, message } => {
                self.outcome_unknown(intent, question, (&message).into());
            }
            Meaning::Failed { message, .. } => {
                let end = IntentEnd::Failed((&message).into());
                self.delete_failed(number, end, message.usable);
            }
        }
        Ok(())
    }

    /// The broker does not take the delete now.
    fn delete_again(
        &mut self,
        intent: &PendingIntent,
        cause: RetryCause,
        after: Option<RetryAfter>,
        statement: BrokerStatement,
    ) {
        if self.is_overdue(intent, cause) {
            let usable = self.next.usable;
            self.delete_failed(intent.number, IntentEnd::Failed(statement), usable);
            return;
        }
        let undelete = self.next.deletion.as_ref();
        let undelete = undelete.and_then(|deletion| deletion.undelete.clone());
        let half_deleted = cause == RetryCause::HalfDeleted;
        if let Some(by) = undelete.filter(|_| !intent.in_doubt && !half_deleted) {
            self.take_delete_back(intent.number, by);
            return;
        }
        if cause == RetryCause::Busy
            && self.under_delete().is_some()
            && let Some(deletion) = &mut self.next.deletion
        {
            deletion.polls_next = true;
        }
        self.queue_again(intent, statement, after);
    }

    /// What was in progress is halted by the delete that the broker accepted (B-255).
    fn cancel_under(&mut self, delete: IntentNumber) {
        let is_under = |intent: &&PendingIntent| {
            let has_begun = matches!(
                intent.state,
                IntentState::Unknown { .. } | IntentState::Polling { .. }
            );
            has_begun && !intent.change.is_delete()
        };
        let under = self.next.pending.iter().filter(is_under);
        let under: Vec<_> = under.map(|intent| intent.number).collect();
        for number in under {
            self.leave_in_doubt(number);
            self.end(number, IntentEnd::Cancelled(CancelledBy::Delete(delete)));
        }
    }

    /// After a poll of what is under a delete, the delete has its turn again.
    pub(super) fn polled_under_delete(&mut self, polled: IntentNumber) {
        let Some(deletion) = self.next.deletion.as_ref().map(|it| it.number) else {
            return;
        };
        let goes_on = self.next.intent(polled).is_some();
        self.again(
            deletion,
            match goes_on {
                true => InstanceEffect::TryAgainAfter(None),
                false => InstanceEffect::TryAgainNow,
            },
        );
    }
}

impl Instance {
    /// Whether the delete has its turn and may poll what is below it.
    pub(super) fn polls_under_delete(&self) -> bool {
        let delete = self.active().and_then(|number| self.intent(number));
        delete.is_some_and(|intent| {
            intent.change.is_delete() && matches!(intent.state, IntentState::Queued { .. })
        })
    }
}
