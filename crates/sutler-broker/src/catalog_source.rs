//! Source of the catalog: queried when a plan is not offered here, or not in its stored version.
//!
//! The catalog of a process may be older than the stored one, and the stored one may be about to change. So an
//! unknown plan is refused only after a query to the source.

use async_trait::async_trait;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_records::Revision;
use tokio::sync::watch;

/// Availability of a plan that is not offered here now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanAvailability {
    /// Sentence with the time and reason of the withdrawal, if it was offered before.
    pub withdrawn: Option<String>,
    /// Whether the catalog is being refreshed, so that the plan may still appear.
    pub refreshing: bool,
}

/// Supplies the catalog of a running broker.
#[async_trait]
pub trait CatalogSource: Send + Sync + 'static {
    /// Loads the stored catalog into this process.
    async fn catch_up(&self);

    /// Availability of a plan that is not offered here, by the ids of service and plan.
    async fn plan_availability(&self, service_id: &str, plan_id: &str) -> PlanAvailability;
}

/// The record that an offering depends on. A provision is accepted only while it has this revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPrecondition {
    /// The collection of the record.
    pub collection: &'static str,
    /// Its name.
    pub id: String,
    /// Its revision.
    pub revision: Revision,
}

/// Limits for provisions that wait for a plan that is not offered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanWaitLimits {
    /// Time limit of an asynchronous provision.
    pub wait: Duration,
    /// Maximum waiting provisions of each platform; and of synchronous ones in each process.
    pub waiting_max: usize,
    /// Time limit of a synchronous request.
    pub sync_wait: Duration,
}

impl Default for PlanWaitLimits {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(300),
            waiting_max: 100,
            sync_wait: Duration::from_secs(20),
        }
    }
}

/// The source of the catalog, once it is set.
pub(crate) struct CatalogSourceSlot {
    source: OnceLock<Arc<dyn CatalogSource>>,
    /// Whether the source is set, or none is expected.
    ready: watch::Sender<bool>,
    /// Number of waiting requests.
    waiting_count: AtomicUsize,
}

impl CatalogSourceSlot {
    /// `awaited`: a source will be set.
    pub(crate) fn new(awaited: bool) -> Self {
        Self {
            source: OnceLock::new(),
            ready: watch::Sender::new(!awaited),
            waiting_count: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set(&self, source: Arc<dyn CatalogSource>) {
        // A broker has one source for as long as it runs.
        let _ = self.source.set(source);
        self.ready.send_replace(true);
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn CatalogSource>> {
        self.source.get()
    }

    /// Waits until the source is set, if one is expected.
    pub(crate) async fn ready(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(crate) async fn plan_availability(
        &self,
        service_id: &str,
        plan_id: &str,
    ) -> PlanAvailability {
        match self.get() {
            Some(source) => source.plan_availability(service_id, plan_id).await,
            None => PlanAvailability {
                withdrawn: None,
                refreshing: !*self.ready.borrow(),
            },
        }
    }

    /// A permit to wait, unless `max` requests wait already.
    pub(crate) fn wait_permit(&self, max: usize) -> Option<WaitPermit<'_>> {
        let one_more = |taken: usize| (taken < max).then_some(taken + 1);
        let taken = self.waiting_count.fetch_update(AcqRel, Acquire, one_more);
        taken.ok().map(|_| WaitPermit(&self.waiting_count))
    }
}

/// Permit of a waiting request; released on drop.
pub(crate) struct WaitPermit<'a>(&'a AtomicUsize);

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}
