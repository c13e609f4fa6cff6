//! Whoever keeps the catalog: asked when a plan is not offered here, or not as it is written down.
//!
//! The catalog that a process offers may be behind what is written down, and what is written down may be
//! about to change. So an unknown plan is no reason to refuse until its keeper was asked.

use async_trait::async_trait;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_records::Revision;
use tokio::sync::watch;

/// What is known of a plan that is not offered here now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanAvailability {
    /// When and why it was withdrawn, as a sentence, if it was there once.
    pub withdrawn: Option<String>,
    /// Whether the catalog is being brought up to date: the plan may be about to come.
    pub refreshing: bool,
}

/// Keeps the catalog of a running broker.
#[async_trait]
pub trait CatalogSource: Send + Sync + 'static {
    /// Has this process offer what is written down now.
    async fn catch_up(&self);

    /// What is known of a plan, by the ids of its service and its own, that is not offered here.
    async fn plan_availability(&self, service_id: &str, plan_id: &str) -> PlanAvailability;
}

/// The record that an offering stands on. A provision is accepted only while it is in this state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPrecondition {
    /// The collection of the record.
    pub collection: &'static str,
    /// Its name.
    pub id: String,
    /// The state it is in.
    pub revision: Revision,
}

/// How long provisions of plans that are not offered yet may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanWaitLimits {
    /// How long an asynchronous one waits for the catalog.
    pub wait: Duration,
    /// How many may wait together, on each platform; and, of those that are not asynchronous, in each process.
    pub waiting_max: usize,
    /// How long a request waits that is not asynchronous.
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

/// The keeper, once there is one.
pub(crate) struct CatalogSourceSlot {
    source: OnceLock<Arc<dyn CatalogSource>>,
    /// Whether nobody needs to be waited for.
    ready: watch::Sender<bool>,
    /// How many requests wait here.
    seats: AtomicUsize,
}

impl CatalogSourceSlot {
    /// `awaited`: somebody will keep the catalog.
    pub(crate) fn new(awaited: bool) -> Self {
        Self {
            source: OnceLock::new(),
            ready: watch::Sender::new(!awaited),
            seats: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set(&self, source: Arc<dyn CatalogSource>) {
        // A broker has one keeper for as long as it runs.
        let _ = self.source.set(source);
        self.ready.send_replace(true);
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn CatalogSource>> {
        self.source.get()
    }

    /// Waits until there is a keeper, if one is awaited.
    pub(crate) async fn ready(&self) {
        // The sender is here, so it is not gone.
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

    /// A place to wait at, while fewer than `max` are taken.
    pub(crate) fn wait_permit(&self, max: usize) -> Option<WaitPermit<'_>> {
        let one_more = |taken: usize| (taken < max).then_some(taken + 1);
        let taken = self.seats.fetch_update(AcqRel, Acquire, one_more);
        taken.ok().map(|_| WaitPermit(&self.seats))
    }
}

/// A place that a request waits at; free again when it is dropped.
pub(crate) struct WaitPermit<'a>(&'a AtomicUsize);

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}
