//! Answers of the broker to the unbinds of a delete, and to polls of them.
//!
//! A delete unbinds one generation after another. Each is gone, with its credentials, only when the broker says so. If
//! the broker refuses, those that are left stay as they are.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    Binding, BindingBody, BindingEffect, BindingEventError, PendingIntent,
};
use crate::lifecycle::intent::{
    BrokerStatement, CancelledBy, IntentEnd, IntentNumber, IntentState,
};
use sutler_client::{Meaning, NextQuestion, RetryAfter, RetryCause, Success};
use sutler_osb::BindingId;

impl Transition<'_> {
    /// The answer to an unbind of a delete, or to a poll of it.
    pub(super) fn delete_answered(
        &mut self,
        intent: &PendingIntent,
        answer: Meaning<BindingBody>,
    ) -> Result<(), BindingEventError> {
        let number = intent.number;
        match answer {
            Meaning::Succeeded(Success::Gone) => self.target_gone(number)?,
            Meaning::Succeeded(Success::Now(_) | Success::Polled | Success::FetchBinding) => {
                return Err(BindingEventError::OutOfDate);
            }
            Meaning::Polling { after, .. } => {
                if matches!(intent.state, IntentState::Sending { .. }) {
                    let target = self.next.deletion.as_ref().and_then(|it| it.target.clone());
                    self.cancel_bind_of(number, target.as_ref());
                }
                self.in_progress(intent, after);
            }
            Meaning::Rejected { message, .. } => {
                self.delete_failed(number, IntentEnd::Rejected((&message).into()));
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => self.delete_again(intent, cause, after, (&message).into()),
            // An unbind can be sent again whatever happened: there is nothing to look at.
            Meaning::Unknown { message, .. } => {
                self.outcome_unknown(intent, NextQuestion::SendAgain, (&message).into());
            }
            Meaning::Failed { message, .. } => {
                self.delete_failed(number, IntentEnd::Failed((&message).into()));
            }
        }
        Ok(())
    }

    /// One generation is gone: the delete goes on with the next one, unless a person wants the binding back.
    fn target_gone(&mut self, number: IntentNumber) -> Result<(), BindingEventError> {
        let deletion = self.next.deletion.as_ref();
        let Some(target) = deletion.and_then(|deletion| deletion.target.clone()) else {
            return Err(BindingEventError::OutOfDate);
        };
        let undelete = deletion.and_then(|deletion| deletion.undelete.clone());
        self.cancel_bind_of(number, Some(&target));
        if let Some(unbind) = self.next.unbind_of(&target).map(|it| it.number) {
            self.end(unbind, IntentEnd::Cancelled(CancelledBy::Delete(number)));
        }
        self.generation_gone(&target);
        match undelete {
            _ if self.needs_no_call() => self.gone(number),
            Some(by) => self.take_delete_back(number, by),
            None => {
                self.set_state(number, IntentState::Queued { last: None });
                self.again(number, BindingEffect::TryAgainNow);
            }
        }
        Ok(())
    }

    /// The bind of a generation is halted by the unbind that the broker accepted (B-245).
    fn cancel_bind_of(&mut self, delete: IntentNumber, target: Option<&BindingId>) {
        let bind = self.next.pending_bind();
        let bind = bind.filter(|it| target.is_some_and(|target| it.change.concerns(target)));
        if let Some(number) = bind.map(|it| it.number) {
            self.end(number, IntentEnd::Cancelled(CancelledBy::Delete(delete)));
        }
    }

    /// The broker does not take the unbind now.
    fn delete_again(
        &mut self,
        intent: &PendingIntent,
        cause: RetryCause,
        after: Option<RetryAfter>,
        statement: BrokerStatement,
    ) {
        if cause != RetryCause::Unauthorized && self.is_overdue(intent) {
            self.delete_failed(intent.number, IntentEnd::Failed(statement));
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
}

impl Binding {
    /// Whether the delete has its turn and may poll what is below it.
    pub(super) fn polls_under_delete(&self) -> bool {
        let delete = self.active().and_then(|number| self.intent(number));
        delete.is_some_and(|intent| {
            intent.change.is_delete() && matches!(intent.state, IntentState::Queued { .. })
        })
    }
}
