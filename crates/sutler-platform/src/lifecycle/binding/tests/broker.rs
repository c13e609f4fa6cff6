//! The broker of the random histories: what it has, and what it answers.
//!
//! It loses answers, answers late, and does things although it says otherwise where it may.

use super::answers::{accepted, failed, in_progress, rejected, retry, unfit, unknown};
use super::fixtures::details;
use super::world::World;
use crate::lifecycle::binding::{
    BindingBody, BindingEffect, Event, IntentChange, Observation, PendingIntent, PreparedTurn,
};
use crate::lifecycle::intent::IntentNumber;
use sutler_client::{CleanupDuty, Meaning, NextQuestion, RejectionReason, RetryCause, Success};
use sutler_osb::BindingId;

impl World {
    /// What the broker answers; nothing follows if the answer is lost.
    fn answer(&mut self, number: IntentNumber, answer: Meaning<BindingBody>) {
        let event = Event::Answer(number, Box::new(answer));
        let effects = self.step(event).expect("it was asked");
        if effects.contains(&BindingEffect::Look) {
            self.looked(number, 255);
        }
    }

    pub(super) fn sent(&mut self, number: IntentNumber, detail: u8) {
        let Some(intent) = self.binding.intent(number).cloned() else {
            return;
        };
        let id = self.target_of(&intent);
        match &intent.change {
            IntentChange::Bind(_) => self.bind_sent(&intent, id, detail),
            IntentChange::Unbind(_) | IntentChange::Delete => self.unbind_sent(number, id, detail),
        }
    }

    fn bind_sent(&mut self, intent: &PendingIntent, id: BindingId, detail: u8) {
        let answer = match detail / 16 {
            // The answer is lost, with an effect, and with one that comes later or never.
            0 => {
                self.broker.insert(id);
                return;
            }
            1 => {
                self.late.push((id, self.second));
                return;
            }
            2..=6 => {
                self.broker.insert(id.clone());
                self.bound(id)
            }
            7 | 8 => accepted(),
            9 if intent.in_doubt => failed(CleanupDuty::Mitigate),
            9 if detail.is_multiple_of(2) => rejected(RejectionReason::RequiresApp),
            9 => rejected(RejectionReason::Refused),
            10 => retry(RetryCause::Busy),
            11 => retry(RetryCause::Overloaded),
            12 => {
                self.broker.insert(id);
                unknown(match detail % 2 {
                    0 => NextQuestion::LookFirst,
                    _ => NextQuestion::SendAgain,
                })
            }
            13 => {
                self.broker.insert(id);
                failed(CleanupDuty::DeleteBeforeForgetting)
            }
            14 => {
                self.broker.insert(id);
                Meaning::Succeeded(Success::Now(unfit()))
            }
            _ => {
                self.broker.insert(id);
                failed(CleanupDuty::Mitigate)
            }
        };
        self.answer(intent.number, answer);
    }

    fn unbind_sent(&mut self, number: IntentNumber, id: BindingId, detail: u8) {
        let answer = match detail / 16 {
            0 => {
                self.broker.remove(&id);
                return;
            }
            1 => return,
            2..=6 => self.gone(&id),
            7 | 8 => accepted(),
            9 => rejected(RejectionReason::Refused),
            10 => retry(RetryCause::Busy),
            11 => retry(RetryCause::Unauthorized),
            12 => unknown(NextQuestion::SendAgain),
            13 => retry(RetryCause::HalfDeleted),
            _ => failed(CleanupDuty::StillThere),
        };
        self.answer(number, answer);
    }

    pub(super) fn polled(&mut self, number: IntentNumber, detail: u8) {
        let Some(intent) = self.binding.intent(number).cloned() else {
            return;
        };
        let id = self.target_of(&intent);
        let answer = match (intent.change.bind().is_some(), detail / 64) {
            (_, 0) => in_progress(),
            (true, 1 | 2) => {
                self.broker.insert(id);
                Meaning::Succeeded(Success::FetchBinding)
            }
            (true, _) => {
                self.broker.insert(id);
                failed(CleanupDuty::Mitigate)
            }
            (false, 1 | 2) => self.gone(&id),
            (false, _) => failed(CleanupDuty::StillThere),
        };
        self.answer(number, answer);
    }

    pub(super) fn looked(&mut self, number: IntentNumber, detail: u8) {
        let Some(intent) = self.binding.intent(number).cloned() else {
            return;
        };
        let id = self.target_of(&intent);
        let seen = match detail % 8 {
            0 => Observation::InProgress,
            1 => Observation::NotNow,
            2 => Observation::AbsentOrUnreadable,
            3 if self.broker.contains(&id) => Observation::Found(unfit()),
            _ if self.broker.contains(&id) => {
                let details = details(id.as_str());
                self.confirmed.insert(id, details.credentials.clone());
                Observation::Found(BindingBody::Fit(details))
            }
            _ => Observation::AbsentOrUnreadable,
        };
        let event = Event::Turn(number, PreparedTurn::Observed(seen));
        self.step(event).expect("it was looked for");
    }

    fn bound(&mut self, id: BindingId) -> Meaning<BindingBody> {
        let details = details(id.as_str());
        self.confirmed.insert(id, details.credentials.clone());
        Meaning::Succeeded(Success::Now(BindingBody::Fit(details)))
    }

    fn gone(&mut self, id: &BindingId) -> Meaning<BindingBody> {
        self.broker.remove(id);
        self.confirmed.remove(id);
        Meaning::Succeeded(Success::Gone)
    }
}
