//! Polls an operation to its end on a schedule, and then fetches the binding.
//!
//! When to poll and when to stop is `poll_schedule.rs`; the interpretation of answers is `classify.rs`.
//! Uses the clock of tokio, so that tests can advance it.

use crate::call::Call;
use crate::classify::{ReplyContext, classify};
use crate::classify_read::{Reading, classify_read};
use crate::client::Client;
use crate::meaning::{BrokerMessage, CleanupDuty, Meaning, Success};
use crate::operation::Operation;
use crate::poll_schedule::{NextPoll, PollSchedule};
use crate::reply::{OperationEvent, Reply};
use crate::retry_after::RetryAfter;
use std::time::SystemTime;
use sutler_osb::{FetchBindingResponse, LastOperationResponse, OperationKind};
use tokio::time::{Instant, sleep};

/// Message about a binding that a poll reported but a fetch does not find.
const NOT_THERE: &str = "the bind succeeded, but the binding cannot be fetched";

impl Client {
    /// Polls an operation to its end, or for as long as it may take.
    ///
    /// # Flow
    /// 1. Waits for the time that the 202 requests (`first`), else for that of the schedule.
    /// 2. Polls until an answer reports the end or the time is over. Unclear answers do not end it
    ///    (P-056); a 410 ends only a delete (P-055).
    /// 3. After a successful bind, fetches the binding (P-059), which must exist at once (B-113).
    ///    A binding that cannot be fetched is useless and has to be deleted.
    ///
    /// # Guarantees
    /// The meaning is never `Polling` nor `Success::FetchBinding`.
    pub async fn poll_to_end(
        &self,
        operation: &Operation,
        first: Option<RetryAfter>,
        call: &Call,
        schedule: &PollSchedule,
        context: &ReplyContext,
    ) -> Meaning<FetchBindingResponse> {
        let polling = PollLoop {
            kind: operation.kind(),
            context,
            schedule,
            began: Instant::now(),
            polls: 0,
        };
        let poll = async || self.poll(operation, call).await;
        let (instance, Some(binding)) = operation.ids() else {
            return polling.polled(first, poll).await.0;
        };
        let offered = operation.offered();
        let fetch = async || self.fetch_binding(instance, binding, offered, call).await;
        match polling.polled(first, poll).await {
            (Meaning::Succeeded(Success::FetchBinding), polling) => polling.fetched(fetch).await,
            (end, _) => end,
        }
    }
}

/// Polling of one operation: its start and the number of polls.
struct PollLoop<'a> {
    kind: OperationKind,
    context: &'a ReplyContext,
    schedule: &'a PollSchedule,
    began: Instant,
    polls: u32,
}

impl PollLoop<'_> {
    /// Polls until the operation ends.
    async fn polled<B>(
        mut self,
        first: Option<RetryAfter>,
        poll: impl AsyncFn() -> Reply<LastOperationResponse>,
    ) -> (Meaning<B>, Self) {
        let mut after = first;
        loop {
            let event = match self.wait(after).await {
                NextPoll::Wait(_) => OperationEvent::Poll(poll().await),
                NextPoll::Stop => OperationEvent::Overdue,
            };
            match classify(self.kind, event, self.context) {
                Meaning::Polling {
                    after: retry_after, ..
                } => after = retry_after,
                end => return (end, self),
            }
        }
    }

    /// Fetches until there is a definite answer.
    async fn fetched(
        mut self,
        fetch: impl AsyncFn() -> Reply<FetchBindingResponse>,
    ) -> Meaning<FetchBindingResponse> {
        loop {
            let (after, message) = match classify_read(fetch().await) {
                Reading::Read(binding) => return Meaning::Succeeded(Success::Now(binding)),
                Reading::Absent => {
                    return unusable_binding(BrokerMessage::sentence(NOT_THERE.to_owned()));
                }
                Reading::Failed(message) => return unusable_binding(message),
                Reading::Retry { after, message, .. } => (after, message),
            };
            match self.wait(after).await {
                NextPoll::Wait(_) => {}
                NextPoll::Stop => return unusable_binding(message),
            }
        }
    }

    /// Waits until the next poll; returns `Stop` if no time is left.
    async fn wait(&mut self, after: Option<RetryAfter>) -> NextPoll {
        self.polls = self.polls.saturating_add(1);
        let retry_after = after.map(|it| it.from_now(SystemTime::now()));
        let next = self
            .schedule
            .next(self.polls, self.began.elapsed(), retry_after);
        if let NextPoll::Wait(time) = next {
            sleep(time).await;
        }
        next
    }
}

fn unusable_binding(message: BrokerMessage) -> Meaning<FetchBindingResponse> {
    Meaning::Failed {
        cleanup: CleanupDuty::Mitigate,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::PollLoop;
    use crate::classify::ReplyContext;
    use crate::decode;
    use crate::meaning::{CleanupDuty, Meaning, Success};
    use crate::poll_schedule::PollSchedule;
    use crate::retry_after::RetryAfter;
    use crate::wire::Answer;
    use std::cell::RefCell;
    use std::time::Duration;
    use sutler_osb::OperationKind;
    use tokio::time::Instant;

    const IN_PROGRESS: &str = r#"{"state":"in progress"}"#;
    const SUCCEEDED: &str = r#"{"state":"succeeded"}"#;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> decode::WireResult {
        Ok(Answer::new(status, headers, body.to_owned()))
    }

    /// Returns scripted answers in order, and repeats the last one. Returns the end, and the time of each
    /// request in seconds.
    async fn poll_with_answers(
        kind: OperationKind,
        first: Option<u64>,
        schedule: PollSchedule,
        answers: Vec<decode::WireResult>,
    ) -> (Meaning<()>, Vec<u64>) {
        let began = Instant::now();
        let polled_at = RefCell::new(Vec::new());
        let context = ReplyContext::default();
        let polling = PollLoop {
            kind,
            context: &context,
            schedule: &schedule,
            began,
            polls: 0,
        };
        let first = first.map(|it| RetryAfter::Wait(Duration::from_secs(it)));
        let poll = async || {
            let nth = polled_at.borrow().len().min(answers.len() - 1);
            polled_at.borrow_mut().push(began.elapsed().as_secs());
            decode::poll(answers[nth].clone())
        };
        let (end, _) = polling.polled(first, poll).await;
        (end, polled_at.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn polls_back_off_without_retry_after() {
        let mut answers = vec![answer(200, &[], IN_PROGRESS); 4];
        answers.push(answer(200, &[], SUCCEEDED));
        let (end, polled_at) = poll_with_answers(
            OperationKind::Update,
            None,
            PollSchedule::default(),
            answers,
        )
        .await;
        assert_eq!(end, Meaning::Succeeded(Success::Polled));
        assert_eq!(polled_at, [1, 3, 7, 15, 31]);
    }

    /// Holds: P-057.
    #[tokio::test(start_paused = true)]
    async fn polls_follow_retry_after() {
        let answers = vec![
            answer(200, &[("Retry-After", "30")], IN_PROGRESS),
            answer(503, &[("Retry-After", "60")], ""),
            answer(200, &[], SUCCEEDED),
        ];
        let (_, polled_at) = poll_with_answers(
            OperationKind::Provision,
            Some(5),
            PollSchedule::default(),
            answers,
        )
        .await;
        assert_eq!(polled_at, [5, 35, 95]);
    }

    /// Holds: P-056, P-058.
    #[tokio::test(start_paused = true)]
    async fn unclear_answers_are_polled_through_to_the_deadline() {
        let answers = vec![
            answer(404, &[], "{}"),
            answer(500, &[], "<html>"),
            Err(crate::wire::TransportError::Closed),
            answer(200, &[], "[]"),
            answer(410, &[], "{}"),
        ];
        let schedule = PollSchedule::default().of_plan(Some(60));
        let (end, polled_at) =
            poll_with_answers(OperationKind::Provision, None, schedule, answers).await;
        let overdue = matches!(
            end,
            Meaning::Failed {
                cleanup: CleanupDuty::Mitigate,
                ..
            }
        );
        assert!(overdue, "{end:?}");
        assert_eq!(polled_at, [1, 3, 7, 15, 31, 60]);
    }

    /// Holds: P-055.
    #[tokio::test(start_paused = true)]
    async fn a_410_ends_a_delete() {
        let answers = vec![answer(200, &[], IN_PROGRESS), answer(410, &[], "{}")];
        let (end, polled_at) = poll_with_answers(
            OperationKind::Unbind,
            None,
            PollSchedule::default(),
            answers,
        )
        .await;
        assert_eq!(end, Meaning::Succeeded(Success::Gone));
        assert_eq!(polled_at.len(), 2);
    }

    /// Holds: P-059.
    #[tokio::test(start_paused = true)]
    async fn a_binding_that_cannot_be_fetched_yet_is_fetched_again() {
        for (answers, good) in [
            (vec![answer(500, &[], ""), answer(200, &[], "{}")], true),
            (vec![answer(500, &[], ""), answer(404, &[], "{}")], false),
            (vec![answer(200, &[], "[]")], false),
            (vec![answer(500, &[], "")], false),
        ] {
            let fetches = RefCell::new(0);
            let context = ReplyContext::default();
            let polling = PollLoop {
                kind: OperationKind::Bind,
                context: &context,
                schedule: &PollSchedule::default(),
                began: Instant::now(),
                polls: 0,
            };
            let fetch = async || {
                let nth = (*fetches.borrow()).min(answers.len() - 1);
                *fetches.borrow_mut() += 1;
                decode::fetched_binding(answers[nth].clone())
            };
            let end = polling.fetched(fetch).await;
            assert_eq!(matches!(end, Meaning::Succeeded(Success::Now(_))), good);
            assert_eq!(end.mitigates(), !good);
        }
    }
}
