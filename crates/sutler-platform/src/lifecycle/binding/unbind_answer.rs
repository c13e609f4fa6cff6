//! Answers of the broker to the unbind of a retiring generation, and to polls of it.
//!
//! The generation is gone only when the broker says so. If it refuses, the credentials still work, and the unbind is
//! tried again later.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{BindingBody, BindingEffect, BindingEventError, PendingIntent};
use crate::lifecycle::intent::{IntentEnd, IntentNumber};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};
use sutler_client::{Meaning, NextQuestion, RetryCause, Success};
use sutler_osb::BindingId;

impl Transition<'_> {
    /// The answer to an unbind that was sent, or to a poll of it.
    pub(super) fn unbind_answered(
        &mut self,
        intent: &PendingIntent,
        osb_id: &BindingId,
        answer: Meaning<BindingBody>,
    ) -> Result<(), BindingEventError> {
        let number = intent.number;
        match answer {
            Meaning::Succeeded(Success::Gone) => {
                self.generation_gone(osb_id);
                self.end(number, IntentEnd::Succeeded);
            }
            Meaning::Succeeded(Success::Now(_) | Success::Polled | Success::FetchBinding) => {
                return Err(BindingEventError::OutOfDate);
            }
            Meaning::Polling { after, .. } => self.in_progress(intent, after),
            Meaning::Rejected { message, .. } => {
                self.unbind_failed(number, osb_id, IntentEnd::Rejected((&message).into()));
            }
            Meaning::Retry {
                cause,
                after,
                message,
            } => {
                if cause != RetryCause::Unauthorized && self.is_overdue(intent) {
                    self.unbind_failed(number, osb_id, IntentEnd::Failed((&message).into()));
                } else {
                    self.queue_again(intent, (&message).into(), after);
                }
            }
            // An unbind can be sent again whatever happened: there is nothing to look at.
            Meaning::Unknown { message, .. } => {
                self.outcome_unknown(intent, NextQuestion::SendAgain, (&message).into());
            }
            Meaning::Failed { message, .. } => {
                self.unbind_failed(number, osb_id, IntentEnd::Failed((&message).into()));
            }
        }
        Ok(())
    }

    /// The unbind of a retiring generation did not happen.
    pub(super) fn unbind_failed(
        &mut self,
        number: IntentNumber,
        osb_id: &BindingId,
        end: IntentEnd,
    ) {
        self.end(number, end);
        self.put_off_retirement(osb_id);
    }

    /// The broker confirmed that a generation is gone: its credentials are erased in this commit. If a bind of it may
    /// still arrive, the ledger unbinds it once more after that (T-58).
    pub(super) fn generation_gone(&mut self, osb_id: &BindingId) {
        let Some(gone) = self.remove_generation(osb_id) else {
            return;
        };
        if self.guarded_until(&gone).is_some() {
            let cause = OrphanCause::LateCreate;
            self.record_orphan(&gone, cause, None, CleanupMode::Automatic);
        }
    }

    /// After a poll of what is under a delete, the delete has its turn again.
    pub(super) fn polled_under_delete(&mut self, polled: IntentNumber) {
        let Some(deletion) = self.next.deletion.as_ref().map(|it| it.number) else {
            return;
        };
        let goes_on = self.under_delete().is_some_and(|it| it.number == polled);
        self.again(
            deletion,
            match goes_on {
                true => BindingEffect::TryAgainAfter(None),
                false => BindingEffect::TryAgainNow,
            },
        );
    }
}
