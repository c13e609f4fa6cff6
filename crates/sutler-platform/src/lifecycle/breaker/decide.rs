//! The rules of a breaker: one function per event, every state written out.
//!
//! The table of all states and events is `tests/transitions/breaker.txt`.

use crate::author::Author;
use crate::lifecycle::breaker::probe::{failed_before, probe_pause};
use crate::lifecycle::breaker::{
    Breaker, BreakerDecision, BreakerEffect, BreakerEvent, BreakerEventError, BreakerNotice,
    BreakerReply, OpenBreaker, OpenCause, ProbeResult, Recovery,
};
use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use std::time::Duration;

/// Decides what an event means for the breaker of a broker. `jitter` is a number by chance.
///
/// # Guarantees
/// While it is open and not paused there is one operation for the probe, and its time is in the document; otherwise there
/// is none. No effect ends anything but that operation (I-11).
///
/// # Assumptions
/// Results of probes belong to the operation of the probe that exists (the fence of the claim).
pub fn decide(
    breaker: Breaker,
    event: BreakerEvent,
    now: Timestamp,
    jitter: u32,
) -> Result<BreakerDecision, BreakerEventError> {
    match event {
        BreakerEvent::Trip(cause) => Ok(on_trip(breaker, cause, now, jitter)),
        BreakerEvent::ProbeTurn => Ok(on_probe_turn(breaker, now)),
        BreakerEvent::Probed(result) => on_probed(breaker, result, now, jitter),
        BreakerEvent::NewCredentials => Ok(on_new_credentials(breaker, now)),
        BreakerEvent::Probe => on_probe(breaker, now),
        BreakerEvent::Pause(by) => Ok(on_pause(breaker, by, now)),
        BreakerEvent::Resume => Ok(on_resume(breaker, now)),
    }
}

fn on_trip(breaker: Breaker, cause: OpenCause, now: Timestamp, jitter: u32) -> BreakerDecision {
    match breaker {
        Breaker::Closed { recovery } => {
            let failed_probes = failed_before(recovery, now);
            let pause = probe_pause(failed_probes, jitter);
            let open = OpenBreaker {
                since: now,
                cause,
                failed_probes,
                next_probe: later(now, pause),
                last: None,
            };
            let effects = vec![
                BreakerEffect::CloseQueue,
                BreakerEffect::StartProbe(pause),
                BreakerEffect::Announce(BreakerNotice::Open(cause)),
            ];
            decided(Breaker::Open(open), effects, BreakerReply::Nothing)
        }
        // Another replica was first, and the next probe shows the cause.
        Breaker::Open(_) | Breaker::Paused { .. } => {
            decided(breaker, Vec::new(), BreakerReply::Nothing)
        }
    }
}

fn on_probe_turn(breaker: Breaker, now: Timestamp) -> BreakerDecision {
    let effect = match &breaker {
        Breaker::Open(open) if open.next_probe > now => {
            BreakerEffect::ProbeAfter(until(now, open.next_probe))
        }
        Breaker::Open(_) => BreakerEffect::SendProbe,
        Breaker::Closed { .. } | Breaker::Paused { .. } => BreakerEffect::EndProbe,
    };
    decided(breaker, vec![effect], BreakerReply::Nothing)
}

fn on_probed(
    breaker: Breaker,
    result: ProbeResult,
    now: Timestamp,
    jitter: u32,
) -> Result<BreakerDecision, BreakerEventError> {
    let open = match breaker {
        Breaker::Open(open) => open,
        Breaker::Closed { .. } | Breaker::Paused { .. } => {
            return Err(BreakerEventError::OutOfDate);
        }
    };
    let decision = match result {
        ProbeResult::Answered => {
            let recovery = Recovery {
                at: now,
                failed_probes: open.failed_probes,
            };
            let effects = vec![
                BreakerEffect::OpenQueue,
                BreakerEffect::EndProbe,
                BreakerEffect::Announce(BreakerNotice::Closed),
            ];
            let recovery = Some(recovery);
            decided(Breaker::Closed { recovery }, effects, BreakerReply::Nothing)
        }
        ProbeResult::Unauthorized(last) => {
            probe_failed(open, OpenCause::Unauthorized, last, now, jitter)
        }
        ProbeResult::Unanswered(last) => probe_failed(open, OpenCause::Silence, last, now, jitter),
        ProbeResult::Refused(last) => {
            let cause = open.cause;
            probe_failed(open, cause, last, now, jitter)
        }
    };
    Ok(decision)
}

fn probe_failed(
    open: OpenBreaker,
    cause: OpenCause,
    last: BrokerStatement,
    now: Timestamp,
    jitter: u32,
) -> BreakerDecision {
    let failed_probes = open.failed_probes.saturating_add(1);
    let pause = probe_pause(failed_probes, jitter);
    let mut effects = vec![BreakerEffect::ProbeAfter(pause)];
    if cause != open.cause {
        effects.push(BreakerEffect::Announce(BreakerNotice::Open(cause)));
    }
    let next = OpenBreaker {
        since: open.since,
        cause,
        failed_probes,
        next_probe: later(now, pause),
        last: Some(last),
    };
    decided(Breaker::Open(next), effects, BreakerReply::Nothing)
}

fn on_new_credentials(breaker: Breaker, now: Timestamp) -> BreakerDecision {
    match breaker {
        Breaker::Closed { .. } => decided(Breaker::default(), Vec::new(), BreakerReply::Nothing),
        Breaker::Open(open) => {
            let open = OpenBreaker {
                failed_probes: 0,
                next_probe: now,
                ..open
            };
            let effects = vec![BreakerEffect::ProbeAfter(Duration::ZERO)];
            decided(Breaker::Open(open), effects, BreakerReply::Nothing)
        }
        // It is probed when the pause ends.
        Breaker::Paused { .. } => decided(breaker, Vec::new(), BreakerReply::Nothing),
    }
}

fn on_probe(breaker: Breaker, now: Timestamp) -> Result<BreakerDecision, BreakerEventError> {
    match breaker {
        Breaker::Closed { .. } => Ok(decided(breaker, Vec::new(), BreakerReply::Unchanged)),
        Breaker::Open(open) => {
            let open = OpenBreaker {
                next_probe: now,
                ..open
            };
            let effects = vec![BreakerEffect::ProbeAfter(Duration::ZERO)];
            let next = Breaker::Open(open);
            Ok(decided(next, effects, BreakerReply::Accepted))
        }
        Breaker::Paused { .. } => Err(BreakerEventError::Paused),
    }
}

fn on_pause(breaker: Breaker, by: Author, now: Timestamp) -> BreakerDecision {
    let (open, effect) = match breaker {
        Breaker::Closed { .. } => (None, BreakerEffect::CloseQueue),
        Breaker::Open(open) => (Some(open), BreakerEffect::EndProbe),
        Breaker::Paused { .. } => return decided(breaker, Vec::new(), BreakerReply::Unchanged),
    };
    let next = Breaker::Paused {
        since: now,
        by,
        open,
    };
    let announcement = BreakerEffect::Announce(BreakerNotice::Paused);
    decided(next, vec![effect, announcement], BreakerReply::Accepted)
}

fn on_resume(breaker: Breaker, now: Timestamp) -> BreakerDecision {
    let (next, effect) = match breaker {
        Breaker::Closed { .. } | Breaker::Open(_) => {
            return decided(breaker, Vec::new(), BreakerReply::Unchanged);
        }
        Breaker::Paused { open: None, .. } => (Breaker::default(), BreakerEffect::OpenQueue),
        Breaker::Paused {
            open: Some(open), ..
        } => {
            let open = OpenBreaker {
                next_probe: now,
                ..open
            };
            let effect = BreakerEffect::StartProbe(Duration::ZERO);
            (Breaker::Open(open), effect)
        }
    };
    let announcement = BreakerEffect::Announce(BreakerNotice::Resumed);
    decided(next, vec![effect, announcement], BreakerReply::Accepted)
}

fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(at)).unwrap_or_default()
}

fn decided(next: Breaker, effects: Vec<BreakerEffect>, reply: BreakerReply) -> BreakerDecision {
    BreakerDecision {
        next,
        effects,
        reply,
    }
}
