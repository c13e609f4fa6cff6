//! Removes versions of bundles that neither the catalog nor any instance needs.
//!
//! Which are unused for long enough: `version_store/unused.rs`.

use super::BundleService;
use super::state::InstanceState;
use crate::version_store::VersionStoreError;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use sutler_broker::{AuthorState, BrokerHandle, ReadInstancesError};
use sutler_osb::PinnedPlan;

/// How long a version must be unused: far longer than a request takes from reading the catalog to storing an
/// instance.
const GRACE: Duration = Duration::from_secs(3600);

/// Why versions cannot be removed now. Nothing was removed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The versions in use are unknown.
    #[error(transparent)]
    ReadInstancesError(#[from] ReadInstancesError),
    /// The folder cannot be read.
    #[error(transparent)]
    VersionStore(#[from] VersionStoreError),
    /// The process is being stopped.
    #[error("the process is shutting down: start it again")]
    Stopping,
}

impl BundleService {
    /// Removes versions that have been unused for an hour, and returns their digests. Call it periodically: a
    /// version is removed by the second of two calls that are so far apart.
    ///
    /// # Errors
    /// The versions in use are unknown, or the disk fails; nothing was removed.
    pub async fn sweep(
        &self,
        running: &BrokerHandle,
        now: Instant,
    ) -> Result<BTreeSet<String>, SweepError> {
        let version_store = self.parts.version_store.clone();
        let mut used = self.on_offer();
        let there = blocking(move || version_store.digests()).await??;
        if there.difference(&used).next().is_some() {
            let see = |plan: &PinnedPlan, state: Option<&AuthorState>| {
                used.extend(plan.origin.clone());
                let state = state.and_then(|it| InstanceState::read(it).ok());
                used.extend(state.map(|it| it.bundle.digest));
            };
            running.each_instance(see).await?;
            // Versions that were offered meanwhile are in use, too.
            used.extend(self.on_offer());
        }
        let version_store = self.parts.version_store.clone();
        Ok(blocking(move || version_store.sweep(&used, now, GRACE)).await??)
    }

    fn on_offer(&self) -> BTreeSet<String> {
        let snapshot = self.snapshot();
        let listed = snapshot.digests().into_iter().map(str::to_owned);
        listed.chain(snapshot.held.iter().cloned()).collect()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SweepError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| SweepError::Stopping)
}
