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

/// How long a version must be in nobody's use: far longer than any request takes from reading the catalog to
/// writing an instance down.
const GRACE: Duration = Duration::from_secs(3600);

/// Why versions cannot be removed now. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// It is not known which are used.
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
    /// Removes versions that have been in nobody's use for an hour; says which. Call it from time to time: a
    /// version goes at the second of two calls that lie so far apart.
    ///
    /// # Errors
    /// It cannot be told what is used, or the disk does not do its part; nothing was removed.
    pub async fn sweep(
        &self,
        running: &BrokerHandle,
        now: Instant,
    ) -> Result<BTreeSet<String>, SweepError> {
        let shelf = self.parts.shelf.clone();
        let mut used = self.on_offer();
        let there = blocking(move || shelf.digests()).await??;
        if there.difference(&used).next().is_some() {
            let see = |plan: &PinnedPlan, state: Option<&AuthorState>| {
                used.extend(plan.origin.clone());
                let state = state.and_then(|it| InstanceState::read(it).ok());
                used.extend(state.map(|it| it.bundle.digest));
            };
            running.each_instance(see).await?;
            // What came into the catalog meanwhile is used, too.
            used.extend(self.on_offer());
        }
        let shelf = self.parts.shelf.clone();
        Ok(blocking(move || shelf.sweep(&used, now, GRACE)).await??)
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
