//! The service behind the broker: what it is told becomes runs, what runs give becomes results.
//!
//! Pure parts: `service/vars.rs` (what a run is told), `service/order.rs` (the order of it),
//! `service/accept.rs` (what is refused), `service/outcome.rs` (what its end means), `service/state.rs` (what is
//! remembered) and `service/redact.rs` (what no log shows, in none of its forms: `service/guises.rs`).
//! `service/course.rs` brings one run to its end, wherever it is found; `service/hooks.rs` is what the framework
//! calls, `service/local.rs` does the same without a broker; `service/reap.rs` removes what runs leave,
//! `service/sweep.rs` versions that nobody needs; `service/archive.rs` finds those that are not on this host.
//! Nothing is run here: that is a [`Runner`].

mod absent;
mod accept;
mod archive;
mod call;
mod course;
mod guises;
mod hooks;
mod local;
mod order;
mod outcome;
mod reap;
mod redact;
mod scribe;
mod state;
mod strike;
mod sweep;
mod vars;
mod witness;

pub(crate) use archive::Archive;
pub use local::{Local, LocalFault, LocalGift, LocalRequest};
pub use order::KeptSecret;
pub(crate) use order::runnable;
pub use outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
pub use reap::Fates;
pub use redact::{Redaction, Secrets};
pub use state::{
    BindingState, By, HISTORY_MAX, HistoryEntry, InstanceState, Pin, STATE_BYTES_MAX,
    STATE_KEYS_MAX, TooMuch, Unreadable,
};
pub use sweep::SweepFault;
pub use vars::{BINDING_STATE_PREFIX, STATE_PREFIX, Told, vars};
pub use witness::Witness;

use crate::registry::Snapshot;
use crate::shelf::{Bundle, Shelf};
use reap::Reaper;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use sutler_bundle::Limits;
use sutler_runner::{Runnable, Runner};

/// Who runs what.
pub struct Runners {
    /// Runs folders.
    pub processes: Arc<dyn Runner>,
    /// Runs images, where there is an engine.
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

/// What the service is made of.
pub struct Parts {
    /// Where versions of bundles are.
    pub shelf: Arc<Shelf>,
    /// Who runs them.
    pub runners: Arc<Runners>,
    /// What the operator keeps for them.
    pub secrets: Vec<KeptSecret>,
    /// The most that any bundle may use.
    pub limits: Limits,
    /// Whether bindings get what the provision gave, whatever the manifest says.
    pub share_provision_credentials: bool,
    /// This host, where several share a store: runs are looked for where they were started.
    pub host: Option<String>,
}

/// Serves every offering that comes from a bundle.
pub struct BundleService {
    parts: Parts,
    snapshot: RwLock<Arc<Snapshot>>,
    reaper: Reaper,
    archive: OnceLock<Weak<dyn Archive>>,
}

impl BundleService {
    /// Of these parts, with nothing offered yet.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            snapshot: RwLock::default(),
            reaper: Reaper::default(),
            archive: OnceLock::new(),
        }
    }

    /// What is offered from now on.
    pub fn offer(&self, snapshot: Arc<Snapshot>) {
        let mut current = self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = snapshot;
    }

    /// Removes what runs left, for as long as it is polled: let it run beside the broker.
    pub async fn reap(&self, fates: Arc<dyn Fates>) {
        let runners = self.parts.runners.clone();
        self.reaper.clone().work(runners, fates).await;
    }

    /// What is offered now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let current = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// The bundle of an offering, as it is offered now.
    fn offered(&self, service_id: &str) -> Option<Arc<Bundle>> {
        let snapshot = self.snapshot();
        let mut listed = snapshot.listed.iter();
        let found = listed.find(|it| it.spec.id.as_deref() == Some(service_id));
        match found {
            Some(found) => Some(found.bundle.clone()),
            None => {
                let image = snapshot.images.get(service_id)?;
                self.parts.shelf.kept(&image.version)
            }
        }
    }

    /// The name of a plan that is offered now.
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
