//! Readiness of the platform, for `/healthz` and `/readyz`.
//!
//! A loop reads from the store and looks at the lease once a second, and keeps the result; a probe only shows it, so that
//! probes put no load on the store. The same loop keeps the clock of the documents right. The paths are in
//! `sutler_server::Probes`.

use crate::platform::Platform;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use sutler_server::metrics::ready_is;
use sutler_server::{Health, Readiness};
use tokio::time::timeout;

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the platform is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// State at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum PlatformState {
    Ready,
    Draining,
    NoLease,
    StoreSilent,
}

impl PlatformState {
    const ALL: [Self; 4] = [
        Self::Ready,
        Self::Draining,
        Self::NoLease,
        Self::StoreSilent,
    ];

    fn sentence(self) -> &'static str {
        match self {
            Self::Ready => "The platform is ready.\n",
            Self::Draining => "The platform is stopping; ask another replica.\n",
            Self::NoLease => {
                "The platform has lost its lease and is taking a new one; ask again.\n"
            }
            Self::StoreSilent => {
                "The platform's store does not answer; its operator can see why.\n"
            }
        }
    }
}

/// Last known state. A platform starts ready: its keys were verified against the store.
pub(super) struct PlatformHealth(AtomicU8);

impl Default for PlatformHealth {
    fn default() -> Self {
        Self(AtomicU8::new(PlatformState::Ready as u8))
    }
}

impl PlatformHealth {
    /// The platform begins to drain. It is not ready again.
    pub(super) fn draining(&self) {
        self.set(PlatformState::Draining);
    }

    fn state(&self) -> PlatformState {
        let kept = usize::from(self.0.load(Ordering::Relaxed));
        let found = PlatformState::ALL.get(kept).copied();
        found.unwrap_or(PlatformState::StoreSilent)
    }

    fn set(&self, state: PlatformState) {
        let before = self.state();
        if before == state || before == PlatformState::Draining {
            return;
        }
        self.0.store(state as u8, Ordering::Relaxed);
        ready_is(state == PlatformState::Ready);
        match state {
            PlatformState::Ready => tracing::info!("ready again"),
            PlatformState::Draining => tracing::info!("no longer ready: stopping"),
            PlatformState::NoLease | PlatformState::StoreSilent => {
                tracing::warn!(reason = state.sentence().trim_end(), "not ready");
            }
        }
    }
}

impl Health for PlatformHealth {
    fn alive(&self) -> &'static str {
        "The platform lives.\n"
    }

    fn readiness(&self) -> Readiness {
        let state = self.state();
        Readiness {
            ready: state == PlatformState::Ready,
            sentence: state.sentence(),
        }
    }
}

/// Looks until the engine stops.
pub(super) async fn watch(health: Arc<PlatformHealth>, platform: Platform) {
    ready_is(true);
    loop {
        health.set(look(&platform).await);
        if platform.engine().is_stopping() {
            return;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = platform.engine().stopping() => {}
        }
    }
}

async fn look(platform: &Platform) -> PlatformState {
    let documents = &platform.records().documents;
    match timeout(ANSWER_WITHIN, documents.store.now()).await {
        // The monotonic clock may have stopped while the machine was suspended.
        Ok(Ok(now)) => documents.clock.set(now),
        Ok(Err(_)) | Err(_) => return PlatformState::StoreSilent,
    }
    match (
        platform.engine().is_stopping(),
        platform.engine().holds_lease(),
    ) {
        (true, _) => PlatformState::Draining,
        (false, false) => PlatformState::NoLease,
        (false, true) => PlatformState::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::{PlatformHealth, PlatformState};
    use sutler_server::Health as _;

    #[test]
    fn a_platform_that_stops_is_not_ready_again() {
        let health = PlatformHealth::default();
        assert!(health.readiness().ready);
        health.set(PlatformState::StoreSilent);
        assert!(!health.readiness().ready);
        health.set(PlatformState::Ready);
        assert!(health.readiness().ready);
        health.draining();
        health.set(PlatformState::Ready);
        assert!(!health.readiness().ready);
    }
}
