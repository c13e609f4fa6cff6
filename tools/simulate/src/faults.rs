//! Injects faults at random intervals until the part with faults is over; faults may overlap.

use crate::replica::Replicas;
use crate::scenario::FaultKind;
use crate::seeded_sources::SimulatedStoreClock;
use crate::store_link::LinkState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Injects faults.
pub(crate) struct FaultInjector {
    pub replicas: Arc<Replicas>,
    pub clock: Arc<SimulatedStoreClock>,
    /// Set when the part with faults is over.
    pub over: Arc<AtomicBool>,
}

impl FaultInjector {
    /// Injects faults until the part with faults is over; `simulation.rs` repairs everything.
    pub(crate) async fn run(self: Arc<Self>) {
        let choices = self.replicas.network.choices.clone();
        let scenario = Arc::clone(&self.replicas.scenario);
        let Some(pause) = scenario.fault_pause.filter(|_| !scenario.faults.is_empty()) else {
            return;
        };
        while !self.over.load(Ordering::Relaxed) {
            tokio::time::sleep(choices.between(Duration::ZERO, pause * 2)).await;
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let kind = choices.pick(&scenario.faults);
            let slot = choices.index(self.replicas.count());
            self.inject(kind, slot);
        }
    }

    fn inject(self: &Arc<Self>, kind: FaultKind, slot: usize) {
        let network = &self.replicas.network;
        let longest = self.replicas.scenario.lease * 2 + Duration::from_secs(10);
        let lasts = network.choices.between(Duration::from_millis(200), longest);
        network.history.record("fault", || match kind {
            FaultKind::ClockJump => "fault: the clock of the store jumps".to_owned(),
            FaultKind::StoreStall => format!("fault: the store stalls for {lasts:?}"),
            FaultKind::Kill | FaultKind::Restart => format!("fault: {kind:?} of r{slot}"),
            FaultKind::Partition
            | FaultKind::Slow
            | FaultKind::Loss
            | FaultKind::HangingRenewals => {
                format!("fault: {kind:?} of r{slot} for {lasts:?}")
            }
        });
        match kind {
            FaultKind::Partition => self.replicas.disturb(slot, LinkState::Cut, lasts),
            FaultKind::Slow => self.replicas.disturb(slot, LinkState::Slow, lasts),
            FaultKind::Loss => self.replicas.disturb(slot, LinkState::Lossy, lasts),
            FaultKind::HangingRenewals => {
                self.replicas.disturb(slot, LinkState::RenewalsHang, lasts);
            }
            FaultKind::StoreStall => {
                for slot in 0..self.replicas.count() {
                    self.replicas.disturb(slot, LinkState::Stalled, lasts);
                }
            }
            FaultKind::Kill => {
                self.replicas.kill(slot);
                self.replicas.start_later(slot);
            }
            FaultKind::Restart => {
                let injector = Arc::clone(self);
                tokio::spawn(async move {
                    injector.replicas.stop(slot).await;
                    injector.replicas.start_later(slot);
                });
            }
            FaultKind::ClockJump => {
                self.replicas.external.clock_jumped();
                let by = self.replicas.scenario.lease * 2;
                self.clock.jump(network.choices.between(Duration::ZERO, by));
            }
        }
    }
}
