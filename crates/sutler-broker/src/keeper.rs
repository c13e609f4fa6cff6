//! Whoever keeps the catalog: asked when a plan is not offered here, or not as it is written down.
//!
//! The catalog that a process offers may be behind what is written down, and what is written down may be
//! about to change. So an unknown plan is no reason to refuse until its keeper was asked.

use crate::broker::{Broker, BuildError, Running};
use crate::ledger::Stamp;
use crate::plans::{Footings, Offering, Slot};
use async_trait::async_trait;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_osb::{Catalog, ServiceSpec};
use tokio::sync::watch;

/// What is known of a plan that is not offered here now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When and why it was withdrawn, as a sentence, if it was there once.
    pub withdrawn: Option<String>,
    /// Whether the catalog is being brought up to date: the plan may be about to come.
    pub refreshing: bool,
}

/// Keeps the catalog of a running broker.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
    /// Has this process offer what is written down now.
    async fn catch_up(&self);

    /// What is known of a plan, by the ids of its service and its own, that is not offered here.
    async fn standing(&self, service_id: &str, plan_id: &str) -> Standing;
}

/// The record that an offering stands on. A provision is accepted only while it is in this state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footing {
    /// The collection of the record.
    pub collection: &'static str,
    /// Its name.
    pub id: String,
    /// The state it is in.
    pub stamp: Stamp,
}

/// How long provisions of plans that are not offered yet may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long an asynchronous one waits for the catalog.
    pub wait: Duration,
    /// How many may wait together, on each platform; and, of those that are not asynchronous, in each process.
    pub waiting_max: usize,
    /// How long a request waits that is not asynchronous.
    pub sync_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(300),
            waiting_max: 100,
            sync_wait: Duration::from_secs(20),
        }
    }
}

/// The keeper, once there is one.
pub(crate) struct Kept {
    keeper: OnceLock<Arc<dyn Keeper>>,
    /// Whether nobody needs to be waited for.
    ready: watch::Sender<bool>,
    /// How many requests wait here.
    seats: AtomicUsize,
}

impl Kept {
    /// `awaited`: somebody will keep the catalog.
    pub(crate) fn new(awaited: bool) -> Self {
        Self {
            keeper: OnceLock::new(),
            ready: watch::Sender::new(!awaited),
            seats: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set(&self, keeper: Arc<dyn Keeper>) {
        // A broker has one keeper for as long as it runs.
        let _ = self.keeper.set(keeper);
        self.ready.send_replace(true);
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn Keeper>> {
        self.keeper.get()
    }

    /// Waits until there is a keeper, if one is awaited.
    pub(crate) async fn ready(&self) {
        // The sender is here, so it is not gone.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(crate) async fn standing(&self, service_id: &str, plan_id: &str) -> Standing {
        match self.get() {
            Some(keeper) => keeper.standing(service_id, plan_id).await,
            None => Standing {
                withdrawn: None,
                refreshing: !*self.ready.borrow(),
            },
        }
    }

    /// A place to wait at, while fewer than `max` are taken.
    pub(crate) fn seat(&self, max: usize) -> Option<Seat<'_>> {
        let one_more = |taken: usize| (taken < max).then_some(taken + 1);
        let taken = self.seats.fetch_update(AcqRel, Acquire, one_more);
        taken.ok().map(|_| Seat(&self.seats))
    }
}

/// A place that a request waits at; free again when it is dropped.
pub(crate) struct Seat<'a>(&'a AtomicUsize);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}

impl Broker {
    /// Somebody will keep the catalog ([`Running::keep_catalog`]). Until then no operation of a platform is
    /// carried out, and a plan that is not offered may still come.
    #[must_use]
    pub fn awaits_keeper(mut self) -> Self {
        self.awaits_keeper = true;
        self
    }
}

impl Running {
    /// From now on the catalog has a keeper. The first one stays.
    pub fn keep_catalog(&self, keeper: Arc<dyn Keeper>) {
        self.0.plans.keeper.set(keeper);
    }

    /// Checks one offering, so that it can be part of the catalog. Takes a processor for a while.
    ///
    /// # Errors
    /// It cannot be offered.
    pub fn check_offering(&self, spec: ServiceSpec) -> Result<Offering, BuildError> {
        self.0.plans.check(spec)
    }

    /// Replaces the whole catalog, like [`Running::replace_catalog`]. `footings`: what offerings stand on,
    /// by the id of their service.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_catalog_on(
        &self,
        catalog: &Catalog,
        footings: impl IntoIterator<Item = (String, Footing)>,
    ) -> Result<(), BuildError> {
        let slots = self.0.plans.slots_of(catalog)?;
        self.replace_offerings(slots, footings).await
    }

    /// Replaces the whole catalog, like [`Running::replace_catalog`], by what stays of it and what is new.
    /// `footings`: what offerings stand on, by the id of their service.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_offerings(
        &self,
        slots: Vec<Slot>,
        footings: impl IntoIterator<Item = (String, Footing)>,
    ) -> Result<(), BuildError> {
        let mut standing = Footings::new();
        for (service, footing) in footings {
            if let Some(ledger) = self.ledger() {
                let key = ledger.key(footing.collection, &footing.id)?;
                standing.push((service, (key, footing.stamp.0)));
            }
        }
        self.0.replace_catalog(slots, standing).await
    }
}
