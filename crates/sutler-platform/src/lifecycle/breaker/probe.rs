//! Probes of an open breaker: what the answer to one means, and when the next one is sent. Pure.

use crate::lifecycle::breaker::Recovery;
use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::{BrokerMessage, Reading, RetryCause};

/// Shortest pause between two probes.
pub const PROBE_PAUSE_MIN: Duration = Duration::from_secs(5);
/// Longest pause between two probes.
pub const PROBE_PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// A breaker that opens again so soon goes on with the pauses where it was.
pub const RELAPSE_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Part of a pause that chance may cut off: a quarter.
const JITTER_DIVISOR: u32 = 4;

/// The answer to a probe, for the breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The catalog was read, or is the known one. Whether it has faults is the synchronisation's matter.
    Answered,
    /// The broker refuses the credentials.
    Unauthorized(BrokerStatement),
    /// There was no answer.
    Unanswered(BrokerStatement),
    /// Any other answer: a gateway may have given it for a broker that is down.
    Refused(BrokerStatement),
}

impl ProbeResult {
    /// Reads the answer to a read of the catalog.
    pub fn of<B>(reading: &Reading<B>) -> Self {
        match reading {
            Reading::Read(_) => Self::Answered,
            Reading::Absent => Self::Refused(BrokerStatement {
                status: Some(404),
                error: None,
                description: None,
            }),
            Reading::Retry { cause, message, .. } => Self::of_retry(*cause, message),
            Reading::Failed(message) => match message.status {
                Some(200 | 304) => Self::Answered,
                Some(_) | None => Self::Refused(message.into()),
            },
        }
    }

    fn of_retry(cause: RetryCause, message: &BrokerMessage) -> Self {
        match cause {
            RetryCause::Unauthorized => Self::Unauthorized(message.into()),
            RetryCause::NotSent => Self::Unanswered(message.into()),
            RetryCause::BrokerError if message.status.is_none() => Self::Unanswered(message.into()),
            RetryCause::BrokerError
            | RetryCause::Busy
            | RetryCause::Overloaded
            | RetryCause::AcceptIncomplete
            | RetryCause::HalfDeleted => Self::Refused(message.into()),
        }
    }
}

/// Pause before the next probe: 5 s, doubled with each that failed, at most 5 min. `jitter`, a number by chance, cuts off
/// up to a quarter, so that brokers that went down together are not probed together.
pub(super) fn probe_pause(failed_probes: u32, jitter: u32) -> Duration {
    let doubled = PROBE_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failed_probes));
    let pause = doubled.min(PROBE_PAUSE_MAX);
    let share = f64::from(jitter) / f64::from(u32::MAX);
    let cut = (pause / JITTER_DIVISOR).mul_f64(share);
    pause.saturating_sub(cut).max(PROBE_PAUSE_MIN)
}

/// Probes that count as failed when a breaker opens: none, unless it closed a moment ago.
pub(super) fn failed_before(recovery: Option<Recovery>, now: Timestamp) -> u32 {
    let Some(Recovery { at, failed_probes }) = recovery else {
        return 0;
    };
    let elapsed = Duration::try_from(at.duration_until(now)).unwrap_or_default();
    match elapsed < RELAPSE_WITHIN {
        true => failed_probes.saturating_add(1),
        false => 0,
    }
}
