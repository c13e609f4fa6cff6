//! When an operation that the broker works on is polled again, and when that has taken too long.

use crate::brokers::BrokerView;
use crate::lifecycle::intent::IntentState;
use crate::platform_records::PlatformRecords;
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::{NextPoll, PollSchedule, RetryAfter};
use sutler_journal::Run;
use sutler_osb::PinnedPlan;

/// The polls of one operation, as they are during one claim.
pub(super) struct PollTimes {
    schedule: PollSchedule,
    /// The broker has worked on it since then, as far as the claim knows; now if this claim began it.
    since: Timestamp,
    /// Number of the poll that this claim is, or the next one if it is none.
    polls: u32,
    lag: ClaimLag,
    now: Timestamp,
}

/// How much later than planned an operation was claimed: the next wait grows by it, so that polls are sent less often while
/// more are due than there are slots, and leave slots for requests. The time that the broker takes to answer is no part of
/// it.
#[derive(Clone, Copy)]
pub(super) struct ClaimLag(Duration);

impl ClaimLag {
    /// The lag of a claim that comes now.
    pub(super) fn of_claim(records: &PlatformRecords, run: &Run) -> Self {
        let due = run.operation().row.due;
        Self(records.documents.clock.now().since(due))
    }
}

impl PollTimes {
    /// Polls of an operation that the broker has worked on since a moment, and that was accepted in the claim with this
    /// number.
    pub(super) fn of(
        records: &PlatformRecords,
        (run, lag): (&Run, ClaimLag),
        (view, plan): (&BrokerView, Option<&PinnedPlan>),
        since: Option<Timestamp>,
        accepted_at: u64,
    ) -> Self {
        let now = records.now();
        let schedule = PollSchedule {
            within: view.registration.limits.poll_within,
            ..PollSchedule::default()
        };
        let claims = match since {
            Some(_) => run.fence().0.saturating_sub(accepted_at),
            None => 0,
        };
        Self {
            schedule: schedule.of_plan(plan.and_then(|plan| plan.maximum_polling_duration)),
            since: since.unwrap_or(now),
            polls: u32::try_from(claims).unwrap_or(u32::MAX).saturating_add(1),
            lag,
            now,
        }
    }

    /// Whether the time for polling is over.
    pub(super) fn is_over(&self) -> bool {
        self.elapsed() >= self.schedule.within
    }

    /// The wait before the next poll.
    pub(super) fn wait(&self, after: Option<RetryAfter>) -> Duration {
        let asked = after.map(|after| after.from_now(self.now.into()));
        match self.schedule.next(self.polls, self.elapsed(), asked) {
            NextPoll::Wait(wait) => wait.saturating_add(self.lag.0.min(self.schedule.longest)),
            // Its time is over: the next poll is the last one.
            NextPoll::Stop => self.schedule.shortest,
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(self.since.duration_until(self.now)).unwrap_or_default()
    }
}

/// Since when the broker has worked on an intent, if it does.
pub(super) fn polling_since(state: &IntentState) -> Option<Timestamp> {
    match state {
        IntentState::Polling { since } => Some(*since),
        IntentState::Queued { .. }
        | IntentState::OnHold(_)
        | IntentState::Suspended
        | IntentState::Sending { .. }
        | IntentState::Unknown { .. } => None,
    }
}
