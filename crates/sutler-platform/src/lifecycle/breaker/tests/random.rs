//! Random sequences of events for one breaker, checked against what replicas would observe: the operation of the probe,
//! and whether the queue is open.

use super::fixtures::{now, operator, statement};
use crate::lifecycle::breaker::{
    Breaker, BreakerEffect, BreakerEvent, BreakerNotice, OpenCause, PROBE_PAUSE_MAX,
    PROBE_PAUSE_MIN, ProbeResult, decide,
};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

fn events() -> impl Strategy<Value = Vec<(BreakerEvent, u32, u64)>> {
    let event = select(vec![
        BreakerEvent::Trip(OpenCause::Silence),
        BreakerEvent::Trip(OpenCause::Unauthorized),
        BreakerEvent::ProbeTurn,
        BreakerEvent::ProbeTurn,
        BreakerEvent::Probed(ProbeResult::Answered),
        BreakerEvent::Probed(ProbeResult::Unauthorized(statement())),
        BreakerEvent::Probed(ProbeResult::Unanswered(statement())),
        BreakerEvent::Probed(ProbeResult::Refused(statement())),
        BreakerEvent::NewCredentials,
        BreakerEvent::Probe,
        BreakerEvent::Pause(operator()),
        BreakerEvent::Resume,
    ]);
    proptest::collection::vec((event, any::<u32>(), 0_u64..400), 1..80)
}

/// What exists besides the document.
struct Model {
    now: Timestamp,
    breaker: Breaker,
    /// When the operation of the probe may be claimed, if there is one.
    probe: Option<Timestamp>,
    queue_is_open: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            now: now(),
            breaker: Breaker::default(),
            probe: None,
            queue_is_open: true,
        }
    }

    fn take(&mut self, event: BreakerEvent, jitter: u32) -> Result<(), TestCaseError> {
        let Ok(decision) = decide(self.breaker.clone(), event, self.now, jitter) else {
            return Ok(());
        };
        let before = std::mem::replace(&mut self.breaker, decision.next);
        for effect in decision.effects {
            self.follow(effect, &before)?;
        }
        self.check()
    }

    /// Carries out an effect, if a replica could.
    fn follow(&mut self, effect: BreakerEffect, before: &Breaker) -> Result<(), TestCaseError> {
        match effect {
            BreakerEffect::OpenQueue => {
                prop_assert!(!self.queue_is_open, "it is open");
                self.queue_is_open = true;
            }
            BreakerEffect::CloseQueue => {
                prop_assert!(self.queue_is_open, "it is closed");
                self.queue_is_open = false;
            }
            BreakerEffect::StartProbe(pause) => {
                prop_assert!(self.probe.is_none(), "a second probe");
                self.probe = Some(self.after(pause)?);
            }
            BreakerEffect::ProbeAfter(pause) => {
                prop_assert!(self.probe.is_some(), "no probe to claim again");
                self.probe = Some(self.after(pause)?);
            }
            BreakerEffect::SendProbe => {
                let is_open = matches!(before, Breaker::Open(_));
                prop_assert!(is_open && self.probe.is_some(), "a probe of {before:?}");
            }
            BreakerEffect::EndProbe => self.probe = None,
            BreakerEffect::Announce(notice) => {
                let is_true = match notice {
                    BreakerNotice::Open(cause) => {
                        matches!(&self.breaker, Breaker::Open(open) if open.cause == cause)
                    }
                    BreakerNotice::Closed => matches!(self.breaker, Breaker::Closed { .. }),
                    BreakerNotice::Paused => matches!(self.breaker, Breaker::Paused { .. }),
                    BreakerNotice::Resumed => !matches!(self.breaker, Breaker::Paused { .. }),
                };
                prop_assert!(is_true, "{notice:?} of {:?}", self.breaker);
            }
        }
        Ok(())
    }

    fn after(&self, pause: Duration) -> Result<Timestamp, TestCaseError> {
        let is_bounded = pause.is_zero() || pause <= PROBE_PAUSE_MAX;
        prop_assert!(is_bounded, "{pause:?}");
        Ok(self.now.checked_add(pause).unwrap_or(Timestamp::MAX))
    }

    /// What is true in every state.
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.queue_is_open, self.breaker.stop().is_none());
        let planned = match &self.breaker {
            Breaker::Open(open) => Some(open.next_probe.max(self.now)),
            Breaker::Closed { .. } | Breaker::Paused { .. } => None,
        };
        let claimable = self.probe.map(|at| at.max(self.now));
        prop_assert_eq!(claimable, planned, "an open breaker has one probe planned");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Invariant I-11: an open breaker has a probe planned, so it does not stay open without a cause.
    #[test]
    fn no_sequence_of_events_leaves_a_breaker_open_without_a_probe(events in events()) {
        let mut model = Model::new();
        for (event, jitter, seconds) in events {
            model.now = model.now.checked_add(Duration::from_secs(seconds)).expect("a moment");
            model.take(event, jitter)?;
        }
    }

    #[test]
    fn every_breaker_closes_once_the_broker_answers_and_it_is_not_paused(events in events()) {
        let mut model = Model::new();
        for (event, jitter, _) in events {
            model.take(event, jitter)?;
        }
        model.take(BreakerEvent::Resume, 0)?;
        if let Some(at) = model.probe {
            model.now = at.max(model.now);
            model.take(BreakerEvent::ProbeTurn, 0)?;
            model.take(BreakerEvent::Probed(ProbeResult::Answered), 0)?;
        }
        let is_closed = matches!(model.breaker, Breaker::Closed { .. });
        prop_assert!(is_closed && model.queue_is_open);
    }

    #[test]
    fn a_pause_between_probes_is_within_its_bounds(failed in 0_u32..100, jitter: u32) {
        let mut model = Model::new();
        model.take(BreakerEvent::Trip(OpenCause::Silence), jitter)?;
        for _ in 0..failed {
            model.take(BreakerEvent::Probed(ProbeResult::Unanswered(statement())), jitter)?;
        }
        let pause = model.probe.map(|at| model.now.duration_until(at).unsigned_abs());
        let pause = pause.expect("a probe is planned");
        prop_assert!((PROBE_PAUSE_MIN..=PROBE_PAUSE_MAX).contains(&pause), "{:?}", pause);
    }
}
