//! What the two halves of the shell share: records, plans, settings.
//!
//! `requests.rs` takes requests in, `executor.rs` carries operations out; neither calls the other.

use crate::catalog::{LiveCatalog, OfferedPlan};
use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::lifecycle::{Asynchrony, AuthorState, Verb};
use crate::service::{Bound, Policy, Provisioned, UntypedService};
use crate::settings::Settings;
use async_trait::async_trait;
use std::sync::Arc;
use sutler_journal::{Queue, Realm};
use sutler_osb::{Parameters, PinnedPlan};
use sutler_records::{Documents, InflightCache, RecordError};

/// Where the operations of the default platform wait.
const DEFAULT_QUEUE: Queue = Queue::named("broker");

/// What there is for one platform: its own records, and the plans and settings of all.
pub(crate) struct RealmContext {
    pub records: Arc<Documents>,
    pub catalog: Arc<LiveCatalog>,
    pub settings: Arc<Settings>,
    pub inflight: InflightCache,
    /// Where the operations wait that are accepted here: one platform's work never waits for another's,
    /// and whoever does not serve a platform does not claim its work.
    pub queue: Queue,
}

/// The queue of a realm.
pub(crate) fn queue_of(realm: &Realm) -> Queue {
    if realm.as_str() == DEFAULT_QUEUE.as_str() {
        return DEFAULT_QUEUE;
    }
    Queue::of(format!("broker:{}", realm.as_str()))
}

/// The queue of a realm's operations on one host: only that host can find what they have begun there.
pub(crate) fn host_queue_of(realm: &Realm, host: &str) -> Queue {
    // The host first: should a long realm be cut off, the queue is still this host's alone.
    Queue::of(format!("host:{host} {}", queue_of(realm).as_str()))
}

impl RealmContext {
    /// How a verb of a plan runs. A binding that could not be fetched is never made in the
    /// background (B-113).
    pub(crate) fn policy(&self, verb: Verb, plan: &PinnedPlan) -> Policy {
        let mut policy = self
            .catalog
            .service(plan)
            .map_or_else(Policy::default, |it| it.policy(verb, plan));
        if verb == Verb::Bind && !plan.bindings_retrievable {
            policy.asynchrony = Asynchrony::Never;
        }
        policy
    }

    /// The plan an instance was made with, and its service.
    pub(crate) async fn served(
        &self,
        digest: &str,
    ) -> std::result::Result<(Arc<OfferedPlan>, Arc<dyn UntypedService>), RecordError> {
        if digest.is_empty() {
            return Ok((crate::catalog::plan_to_come(), Arc::new(PlanToComeService)));
        }
        let plan = self.catalog.pinned(&self.records, digest).await?;
        let found = self.catalog.service(&plan.pinned).cloned();
        let service = found.unwrap_or_else(|| Arc::new(UnregisteredService));
        Ok((plan, service))
    }
}

/// Stands in for the service of a plan that was not offered yet: nothing was made, so nothing is left.
struct PlanToComeService;

#[async_trait]
impl UntypedService for PlanToComeService {
    async fn provision(&self, _: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        Err(UnregisteredService::refusal())
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Ok(())
    }

    async fn bind(&self, _: &Cx, _: Option<AuthorState>) -> Result<Bound> {
        Err(UnregisteredService::refusal())
    }

    async fn unbind(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Ok(())
    }
}

/// Stands in for a service that is not registered any more: whatever is asked of its instances fails
/// visibly, and is there to be asked again once it is back.
struct UnregisteredService;

impl UnregisteredService {
    fn refusal() -> Error {
        Error::failed("This service broker does not serve this offering at present.")
            .because("no service is registered for the offering of an existing instance")
    }
}

#[async_trait]
impl UntypedService for UnregisteredService {
    async fn provision(&self, _: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        Err(Self::refusal())
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Err(Self::refusal())
    }

    async fn bind(&self, _: &Cx, _: Option<AuthorState>) -> Result<Bound> {
        Err(Self::refusal())
    }

    async fn unbind(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Err(Self::refusal())
    }
}
