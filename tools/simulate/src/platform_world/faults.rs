//! Injects faults into the processes of the platform at random intervals, until the part with faults is over.

use super::replicas::PlatformReplicas;
use crate::scenario::FaultKind;
use crate::store_link::LinkState;
use std::sync::Arc;
use std::time::Duration;

/// Injects faults until it is aborted.
pub(crate) async fn inject_faults(replicas: Arc<PlatformReplicas>) {
    let choices = replicas.network.choices.clone();
    let scenario = Arc::clone(&replicas.scenario);
    let Some(pause) = scenario.fault_pause else {
        return;
    };
    loop {
        tokio::time::sleep(choices.between(Duration::ZERO, pause * 2)).await;
        let kind = choices.pick(&scenario.faults);
        inject(&replicas, kind, choices.index(replicas.count()));
    }
}

fn inject(replicas: &Arc<PlatformReplicas>, kind: FaultKind, slot: usize) {
    let network = &replicas.network;
    let longest = replicas.scenario.lease * 2 + Duration::from_secs(5);
    let lasts = network.choices.between(Duration::from_millis(200), longest);
    network.history.record("fault", || {
        format!("fault: {kind:?} of r{slot}, for {lasts:?} if it passes")
    });
    match kind {
        FaultKind::Partition => replicas.disturb(slot, LinkState::Cut, lasts),
        FaultKind::Slow => replicas.disturb(slot, LinkState::Slow, lasts),
        FaultKind::Loss => replicas.disturb(slot, LinkState::Lossy, lasts),
        FaultKind::HangingRenewals => replicas.disturb(slot, LinkState::RenewalsHang, lasts),
        FaultKind::StoreStall => {
            for slot in 0..replicas.count() {
                replicas.disturb(slot, LinkState::Stalled, lasts);
            }
        }
        FaultKind::Kill => {
            replicas.kill(slot);
            replicas.start_later(slot);
        }
        FaultKind::Restart => {
            let replicas = Arc::clone(replicas);
            tokio::spawn(async move {
                replicas.stop(slot).await;
                replicas.start_later(slot);
            });
        }
        // The guard against late creates is a time by this clock, so it must not jump.
        FaultKind::ClockJump => {}
    }
}
