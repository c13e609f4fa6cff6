//! The rules of an orphan: one function per event, every state written out. Commands of people are in `commands.rs`.
//!
//! The table of all states and events is `tests/transitions/orphan.txt`, which also says what is a try and why.

use crate::lifecycle::orphan::answer::{DeleteAnswer, FailedDelete, FailureCount, read_answer};
use crate::lifecycle::orphan::commands::{on_forget, on_retry};
use crate::lifecycle::orphan::retry_wait::{UNREACHED_PAUSE, honoured, later, until};
use crate::lifecycle::orphan::{
    AttemptLog, AttemptOutcome, CleanupMode, DeleteRound, DeleteStage, NewOrphan, OperatorReason,
    Orphan, OrphanDecision, OrphanEffect, OrphanEvent, OrphanEventError, OrphanReply, OrphanResult,
    OrphanState,
};
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::Meaning;
use sutler_osb::DeleteResponse;

/// Decides what an event means for a row of the ledger; `None`: there is no row yet.
///
/// # Guarantees
/// The row stays, whatever happens. It is `Done` only after a success of a DELETE that was sent when no create of its id
/// could arrive any more, and then nothing is sent for it unless it is found again. A round ends after
/// [`TRIES_MAX`](super::TRIES_MAX) tries or [`WAITS_MAX`](super::WAITS_MAX) waits, never by silence of the network or wrong
/// credentials. It is `InFlight` before anything is sent: commit first, then carry out [`OrphanEffect::Send`].
///
/// # Assumptions
/// There is one operation while it is `Due` or `InFlight`, and none otherwise; answers are those of the DELETE that the
/// state is about (the fence of the claim).
pub fn decide(
    row: Option<Orphan>,
    event: OrphanEvent,
    now: Timestamp,
) -> Result<OrphanDecision, OrphanEventError> {
    let known = |row: Option<Orphan>| row.ok_or(OrphanEventError::NotFound);
    match event {
        OrphanEvent::Found(new) => Ok(on_found(row, *new, now)),
        OrphanEvent::Turn => Ok(on_turn(known(row)?, now)),
        OrphanEvent::TakenOver => Ok(on_taken_over(known(row)?, now)),
        OrphanEvent::Answer(meaning) => on_answer(known(row)?, &meaning, now),
        OrphanEvent::BrokerGone => Ok(on_broker_gone(known(row)?, now)),
        OrphanEvent::Retry => on_retry(known(row)?, now),
        OrphanEvent::Forget { by, reason } => on_forget(known(row)?, by, reason, now),
    }
}

fn on_found(row: Option<Orphan>, new: NewOrphan, now: Timestamp) -> OrphanDecision {
    let guarded_until = new.guarded_until.unwrap_or(now);
    let attempts = match row {
        None => AttemptLog::default(),
        Some(mut known) => match known.state {
            OrphanState::Due { .. }
            | OrphanState::InFlight { .. }
            | OrphanState::NeedsOperator { .. }
            | OrphanState::Deferred => {
                known.guarded_until = known.guarded_until.max(guarded_until);
                known.by = new.by.or(known.by);
                known.waiting = new.waiting;
                return decided(known, Vec::new(), OrphanReply::Joined);
            }
            OrphanState::Done { .. } | OrphanState::Forgotten { .. } => known.attempts,
        },
    };
    let at = guarded_until.max(now);
    let (state, effects) = match new.cleanup {
        CleanupMode::Automatic => (
            OrphanState::Due { at },
            vec![OrphanEffect::Start(until(now, at))],
        ),
        CleanupMode::Manual => (OrphanState::Deferred, Vec::new()),
    };
    let next = Orphan {
        key: new.key,
        service_id: new.service_id,
        plan_id: new.plan_id,
        cause: new.cause,
        found: now,
        by: new.by,
        waiting: new.waiting,
        guarded_until,
        round: DeleteRound::default(),
        attempts,
        state,
    };
    decided(next, effects, OrphanReply::Noted)
}

fn on_turn(row: Orphan, now: Timestamp) -> OrphanDecision {
    match row.state {
        OrphanState::Due { at } => send_or_wait(row, at, now),
        OrphanState::InFlight { stage, .. } => match stage {
            DeleteStage::Unknown { again } => send_or_wait(row, again, now),
            DeleteStage::Sending => interrupted(row, now),
            DeleteStage::Polling { .. } => worked(row, OrphanEffect::Poll),
        },
        OrphanState::NeedsOperator { .. }
        | OrphanState::Deferred
        | OrphanState::Done { .. }
        | OrphanState::Forgotten { .. } => worked(row, OrphanEffect::End),
    }
}

fn send_or_wait(mut row: Orphan, at: Timestamp, now: Timestamp) -> OrphanDecision {
    if at > now {
        return worked(row, OrphanEffect::AgainAfter(until(now, at)));
    }
    row.state = OrphanState::InFlight {
        sent: now,
        stage: DeleteStage::Sending,
    };
    worked(row, OrphanEffect::Send)
}

fn on_taken_over(row: Orphan, now: Timestamp) -> OrphanDecision {
    match row.state {
        // Claimed, but nothing was written down: nothing was sent.
        OrphanState::Due { at: again }
        | OrphanState::InFlight {
            stage: DeleteStage::Unknown { again },
            ..
        } => worked(row, OrphanEffect::AgainAfter(until(now, again))),
        OrphanState::InFlight {
            stage: DeleteStage::Sending | DeleteStage::Polling { .. },
            ..
        }
        | OrphanState::NeedsOperator { .. }
        | OrphanState::Deferred
        | OrphanState::Done { .. }
        | OrphanState::Forgotten { .. } => on_turn(row, now),
    }
}

/// A DELETE was written down, and the worker that was to send it is gone. It is sent again at once (T-37).
fn interrupted(mut row: Orphan, now: Timestamp) -> OrphanDecision {
    row.attempts.add(now, AttemptOutcome::Interrupted, None);
    match row.round.count_try() {
        Some(_) => in_doubt(row, Duration::ZERO, now),
        None => given_up(row, OperatorReason::TriesUsedUp, now),
    }
}

fn on_answer(
    mut row: Orphan,
    meaning: &Meaning<DeleteResponse>,
    now: Timestamp,
) -> Result<OrphanDecision, OrphanEventError> {
    let (sent, stage) = match row.state {
        OrphanState::InFlight { sent, stage } => (sent, stage),
        OrphanState::Due { .. }
        | OrphanState::NeedsOperator { .. }
        | OrphanState::Deferred
        | OrphanState::Done { .. }
        | OrphanState::Forgotten { .. } => return Err(OrphanEventError::OutOfDate),
    };
    match (stage, read_answer(meaning)) {
        (DeleteStage::Unknown { .. }, _)
        | (DeleteStage::Sending, DeleteAnswer::InProgress(_))
        | (DeleteStage::Polling { .. }, DeleteAnswer::Accepted(_)) => {
            Err(OrphanEventError::OutOfDate)
        }
        (DeleteStage::Sending, DeleteAnswer::Accepted(after)) => {
            let stage = DeleteStage::Polling { since: now };
            row.state = OrphanState::InFlight { sent, stage };
            Ok(worked(row, OrphanEffect::PollAfter(after)))
        }
        (DeleteStage::Polling { .. }, DeleteAnswer::InProgress(after)) => {
            Ok(worked(row, OrphanEffect::PollAfter(after)))
        }
        (DeleteStage::Sending | DeleteStage::Polling { .. }, DeleteAnswer::Gone) => {
            Ok(on_gone(row, sent, now))
        }
        (DeleteStage::Sending | DeleteStage::Polling { .. }, DeleteAnswer::Failed(failed)) => {
            Ok(on_failed(row, failed, now))
        }
    }
}

fn on_gone(mut row: Orphan, sent: Timestamp, now: Timestamp) -> OrphanDecision {
    // A create may have arrived behind this DELETE (T-58).
    if sent < row.guarded_until {
        row.attempts.add(now, AttemptOutcome::TooEarly, None);
        let at = row.guarded_until.max(now);
        row.state = OrphanState::Due { at };
        return worked(row, OrphanEffect::AgainAfter(until(now, at)));
    }
    row.attempts.add(now, AttemptOutcome::Deleted, None);
    row.state = OrphanState::Done { at: now };
    let mut effects = vec![OrphanEffect::End];
    // What waits stays in the row: its notice is repeated if this one is lost.
    effects.extend(notification(&row, OrphanResult::Deleted));
    decided(row, effects, OrphanReply::Nothing)
}

fn on_failed(mut row: Orphan, failed: FailedDelete, now: Timestamp) -> OrphanDecision {
    let FailedDelete {
        counts_as,
        outcome,
        after,
        statement,
    } = failed;
    row.attempts.add(now, outcome, statement);
    let pause = match counts_as {
        FailureCount::Try | FailureCount::TryInDoubt => {
            row.round.count_try().ok_or(OperatorReason::TriesUsedUp)
        }
        FailureCount::Wait => row.round.count_wait().ok_or(OperatorReason::AlwaysBusy),
        FailureCount::Nothing => Ok(UNREACHED_PAUSE),
    };
    let pause = match pause {
        Ok(pause) => pause,
        Err(reason) => return given_up(row, reason, now),
    };
    let pause = honoured(pause, after, now);
    match counts_as {
        FailureCount::TryInDoubt => in_doubt(row, pause, now),
        FailureCount::Try | FailureCount::Wait | FailureCount::Nothing => {
            let at = later(now, pause);
            row.state = OrphanState::Due { at };
            worked(row, OrphanEffect::AgainAfter(pause))
        }
    }
}

/// The outcome of the last DELETE is unknown: the next one shows it (D-36).
fn in_doubt(mut row: Orphan, pause: Duration, now: Timestamp) -> OrphanDecision {
    if let OrphanState::InFlight { stage, .. } = &mut row.state {
        *stage = DeleteStage::Unknown {
            again: later(now, pause),
        };
    }
    worked(row, OrphanEffect::AgainAfter(pause))
}

fn given_up(mut row: Orphan, reason: OperatorReason, now: Timestamp) -> OrphanDecision {
    row.state = OrphanState::NeedsOperator { since: now, reason };
    let mut effects = vec![OrphanEffect::End];
    effects.extend(notification(&row, OrphanResult::LeftToOperator));
    effects.push(OrphanEffect::Alert(reason));
    decided(row, effects, OrphanReply::Nothing)
}

/// The broker is deregistered: what it may have is left to a person, who knew that. A DELETE that is being sent is given up.
fn on_broker_gone(mut row: Orphan, now: Timestamp) -> OrphanDecision {
    let mut effects = Vec::new();
    match row.state {
        OrphanState::Due { .. } => effects.push(OrphanEffect::End),
        OrphanState::InFlight { .. } => {
            row.attempts.add(now, AttemptOutcome::Interrupted, None);
            effects.push(OrphanEffect::End);
        }
        OrphanState::Deferred | OrphanState::NeedsOperator { .. } => {}
        OrphanState::Done { .. } | OrphanState::Forgotten { .. } => {
            return decided(row, effects, OrphanReply::Unchanged);
        }
    }
    // Of one that needed an operator before, it was said then.
    if !matches!(row.state, OrphanState::NeedsOperator { .. }) {
        effects.extend(notification(&row, OrphanResult::LeftToOperator));
    }
    let reason = OperatorReason::BrokerGone;
    row.state = OrphanState::NeedsOperator { since: now, reason };
    decided(row, effects, OrphanReply::Nothing)
}

pub(super) fn notification(row: &Orphan, result: OrphanResult) -> Option<OrphanEffect> {
    let waiting = row.waiting.clone();
    waiting.map(|waiting| OrphanEffect::NotifyInstance(waiting, result))
}

/// A decision for the worker of the operation.
fn worked(next: Orphan, effect: OrphanEffect) -> OrphanDecision {
    decided(next, vec![effect], OrphanReply::Nothing)
}

pub(super) fn decided(
    next: Orphan,
    effects: Vec<OrphanEffect>,
    reply: OrphanReply,
) -> OrphanDecision {
    OrphanDecision {
        next,
        effects,
        reply,
    }
}
