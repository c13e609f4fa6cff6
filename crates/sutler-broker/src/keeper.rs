//! Whoever keeps the catalog: asked when a plan is not offered here, or not as it is written down.
//!
//! The catalog that a process offers may be behind what is written down, and what is written down may be
//! about to change. So an unknown plan is no reason to refuse until its keeper was asked.

use crate::broker::{BuildError, Running};
use crate::ledger::Stamp;
use crate::plans::Footings;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_osb::Catalog;

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
    /// How many may wait together, on each platform.
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
#[derive(Default)]
pub(crate) struct Kept(std::sync::OnceLock<Arc<dyn Keeper>>);

impl Kept {
    pub(crate) fn set(&self, keeper: Arc<dyn Keeper>) {
        // A broker has one keeper for as long as it runs.
        let _ = self.0.set(keeper);
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn Keeper>> {
        self.0.get()
    }
}

impl Running {
    /// From now on the catalog has a keeper. The first one stays.
    pub fn keep_catalog(&self, keeper: Arc<dyn Keeper>) {
        self.0.plans.keeper.set(keeper);
    }

    /// Replaces the whole catalog, like [`Running::replace_catalog`]. `footings`: what offerings stand on,
    /// by the id of their service.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_catalog_on(
        &self,
        catalog: Catalog,
        footings: impl IntoIterator<Item = (String, Footing)>,
    ) -> Result<(), BuildError> {
        let mut standing = Footings::new();
        for (service, footing) in footings {
            if let Some(ledger) = self.ledger() {
                let key = ledger.key(footing.collection, &footing.id)?;
                standing.insert(service, (key, footing.stamp.0));
            }
        }
        self.0.replace_catalog(catalog, standing).await
    }
}
