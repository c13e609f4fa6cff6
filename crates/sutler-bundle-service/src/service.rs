//! The service behind the broker: turns requests into runs and results of runs into responses.
//!
//! Pure parts: `service/vars.rs` (variables of a run), `service/build_run.rs` (run spec),
//! `service/request_checks.rs` (refusals), `service/outcome.rs` (meaning of an exit), `service/state.rs` (state of
//! instances and bindings), `service/redact.rs` (secrets in logs; their encodings: `service/redact/encodings.rs`).
//! `service/hooks.rs` implements the framework's trait, `service/run_action.rs` the part that hooks share,
//! `service/run_driver.rs` drives one run to its end, `service/local_run.rs` does the same without a broker.
//! `service/run_cleanup.rs` removes finished runs, `service/version_sweep.rs` unused versions;
//! `service/version_lookup.rs` finds versions that are not on this host. Running is a [`Runner`].

mod ansible_vars;
mod build_run;
mod hooks;
mod local_run;
mod log_writer;
mod missing_runner;
mod outcome;
mod redact;
mod request_checks;
mod run_action;
mod run_cleanup;
mod run_driver;
mod run_observer;
mod state;
mod vars;
mod version_lookup;
mod version_sweep;

pub use build_run::OperatorSecret;
pub(crate) use build_run::runnable;
pub use local_run::{LocalInstance, LocalRequest, LocalResult, LocalRunError};
pub use outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
pub use redact::{Redaction, Secrets};
pub use run_cleanup::OperationLookup;
pub use run_observer::RunObserver;
pub use state::{
    BindingState, BundlePin, ChangeOrigin, HISTORY_MAX, HistoryEntry, InstanceState,
    STATE_BYTES_MAX, STATE_KEYS_MAX, StateReadError, StateTooLargeError,
};
pub use vars::{ActionInputs, BINDING_STATE_PREFIX, STATE_PREFIX, vars};
pub(crate) use version_lookup::VersionLookup;
pub use version_sweep::SweepError;

use crate::bundle_folders::Snapshot;
use crate::version_store::{Bundle, VersionStore};
use run_cleanup::RunCleanup;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use sutler_bundle::RunLimits;
use sutler_runner::{Runnable, Runner};

/// Runners by kind of runnable.
pub struct Runners {
    /// Runs folders.
    pub processes: Arc<dyn Runner>,
    /// Runs images, if a container engine is configured.
    pub containers: Option<Arc<dyn Runner>>,
}

impl Runners {
    fn all(&self) -> impl Iterator<Item = &Arc<dyn Runner>> {
        [&self.processes].into_iter().chain(&self.containers)
    }

    fn of(&self, runnable: &Runnable) -> Result<&Arc<dyn Runner>, String> {
        match runnable {
            Runnable::Folder { .. } => Ok(&self.processes),
            Runnable::Image { reference, .. } => self.containers.as_ref().ok_or_else(|| {
                format!(
                    "the bundle is the image {reference}: name an engine under bundles.container"
                )
            }),
        }
    }
}

/// Parts of the service.
pub struct ServiceParts {
    /// Store of versions.
    pub version_store: Arc<VersionStore>,
    /// The runners.
    pub runners: Arc<Runners>,
    /// Secrets of the operator.
    pub secrets: Vec<OperatorSecret>,
    /// Upper limits for all bundles.
    pub limits: RunLimits,
    /// Whether bindings get the provision's credentials, regardless of the manifest.
    pub share_provision_credentials: bool,
    /// Name of this host if several share a store: runs are looked up on the host that started them.
    pub host: Option<String>,
}

/// Serves every offering that comes from a bundle.
pub struct BundleService {
    parts: ServiceParts,
    snapshot: RwLock<Arc<Snapshot>>,
    cleanup: RunCleanup,
    archive: OnceLock<Weak<dyn VersionLookup>>,
}

impl BundleService {
    /// A service of these parts that offers nothing yet.
    #[must_use]
    pub fn new(parts: ServiceParts) -> Self {
        Self {
            parts,
            snapshot: RwLock::default(),
            cleanup: RunCleanup::default(),
            archive: OnceLock::new(),
        }
    }

    /// Sets the current offer.
    pub fn offer(&self, snapshot: Arc<Snapshot>) {
        let mut current = self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = snapshot;
    }

    /// Removes finished runs, for as long as it is polled: run it concurrently with the broker.
    pub async fn reap(&self, operations: Arc<dyn OperationLookup>) {
        let runners = self.parts.runners.clone();
        self.cleanup.clone().work(runners, operations).await;
    }

    /// The current offer.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let current = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// The currently offered version of a service.
    fn offered(&self, service_id: &str) -> Option<Arc<Bundle>> {
        let snapshot = self.snapshot();
        let mut listed = snapshot.listed.iter();
        let found = listed.find(|it| it.spec.id.as_deref() == Some(service_id));
        match found {
            Some(found) => Some(found.bundle.clone()),
            None => {
                let image = snapshot.images.get(service_id)?;
                self.parts.version_store.kept(&image.version)
            }
        }
    }

    /// Name of a currently offered plan.
    fn plan_name(&self, service_id: &str, plan_id: &str) -> Option<String> {
        let snapshot = self.snapshot();
        let mut listed = snapshot.listed.iter();
        let Some(found) = listed.find(|it| it.spec.id.as_deref() == Some(service_id)) else {
            let mut plans = snapshot.images.get(service_id)?.plans.iter();
            let (_, name) = plans.find(|(id, _)| id == plan_id)?;
            return Some(name.clone());
        };
        let mut plans = found.spec.plans.iter().flatten();
        let plan = plans.find(|it| it.id.as_deref() == Some(plan_id))?;
        plan.name.clone()
    }
}
