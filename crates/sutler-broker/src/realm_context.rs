//! Per-realm context shared by request handlers and the executor: records, catalog, settings.
//!
//! `requests.rs` accepts requests, `executor.rs` runs operations; neither calls the other, but housekeeping finishes
//! purges of requests.

use crate::catalog::{LiveCatalog, OfferedPlan};
use crate::error::{Error, Result};
use crate::hook_context::Cx;
use crate::lifecycle::{Asynchrony, AuthorState, Verb};
use crate::service::{Bound, Policy, Provisioned, UntypedService};
use crate::settings::Settings;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Lost, Queue, Realm, Run, StoreError};
use sutler_osb::{Parameters, PinnedPlan};
use sutler_records::{Documents, InflightCache, RecordError};

/// Queue of the default platform's operations.
const DEFAULT_QUEUE: Queue = Queue::named("broker");

/// Wait before a run reads a plan again.
const PLAN_PAUSE: Duration = Duration::from_secs(1);

/// Per-realm context: the realm's own records, and the shared catalog and settings.
pub(crate) struct RealmContext {
    pub records: Arc<Documents>,
    pub catalog: Arc<LiveCatalog>,
    pub settings: Arc<Settings>,
    pub inflight: InflightCache,
    /// Queue of the operations accepted here: operations of one platform never wait for those of another, and a
    /// process that does not serve a platform does not claim them.
    pub queue: Queue,
}

/// The queue of a realm.
pub(crate) fn queue_of(realm: &Realm) -> Queue {
    if realm.as_str() == DEFAULT_QUEUE.as_str() {
        return DEFAULT_QUEUE;
    }
    Queue::of(format!("broker:{}", realm.as_str()))
}

/// Queue of a realm's operations on one host, for operations whose effects exist on that host only.
pub(crate) fn host_queue_of(realm: &Realm, host: &str) -> Queue {
    // The host first: if a long realm is cut off, the queue is still specific to this host.
    Queue::of(format!("host:{host} {}", queue_of(realm).as_str()))
}

impl RealmContext {
    /// Policy of a verb for a plan. A binding that cannot be fetched is never created asynchronously (B-113).
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

    /// The plan copy of an instance, and its service.
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

    /// Like [`RealmContext::served`] for a run: waits for a plan that cannot be read while the claim lasts.
    pub(crate) async fn served_for_run(
        &self,
        run: &Run,
        digest: &str,
    ) -> std::result::Result<(Arc<OfferedPlan>, Arc<dyn UntypedService>), Lost> {
        loop {
            match self.served(digest).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    let cause = StoreError::caused("no plan to work with", error);
                    run.wait_for_store(&cause, PLAN_PAUSE).await?;
                }
            }
        }
    }
}

/// Placeholder for the service of a plan that is not offered yet: deletes succeed, since nothing was created.
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

/// Placeholder for a service that is not registered any more: every operation of its instances fails, and can be
/// repeated once the service is registered again.
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
