//! What the two halves of the shell share: records, plans, settings.
//!
//! `desk.rs` takes requests in, `executor.rs` carries operations out; neither calls the other.

use crate::handover::Handover;
use crate::lifecycle::{Asynchrony, Verb};
use crate::plans::{OfferedPlan, Plans};
use crate::records::{RecordError, Records};
use crate::service::{Policy, UntypedService};
use crate::settings::Settings;
use std::sync::Arc;
use sutler_journal::Queue;
use sutler_osb::PinnedPlan;

/// Where the broker's own operations wait.
pub(crate) const QUEUE: Queue = Queue::named("broker");

pub(crate) struct Stock {
    pub records: Arc<Records>,
    pub plans: Plans,
    pub settings: Settings,
    pub handover: Handover,
}

impl Stock {
    /// How a verb of a plan runs. A binding that could not be fetched is never made in the
    /// background (B-113).
    pub(crate) fn policy(&self, verb: Verb, plan: &PinnedPlan) -> Policy {
        let mut policy = self
            .plans
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
    ) -> Result<(Arc<OfferedPlan>, Arc<dyn UntypedService>), RecordError> {
        let plan = self.plans.pinned(&self.records, digest).await?;
        let service = self.plans.service(&plan.pinned).cloned().ok_or_else(|| {
            sutler_journal::StoreError::new(format!(
                "no service is registered for the offering {:?} of an existing instance",
                plan.pinned.service_name.as_str()
            ))
        })?;
        Ok((plan, service))
    }
}
