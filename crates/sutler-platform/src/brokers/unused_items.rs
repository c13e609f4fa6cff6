//! Finds removed offerings and plans that no instance uses any more.

use crate::catalog::{KnownCatalog, PlanKey};
use crate::lifecycle::instance::Instance;
use crate::platform_records::PlatformRecords;
use crate::records::{INSTANCE, PLAN_TERM, scoped_value};
use std::collections::BTreeSet;
use sutler_journal::List;
use sutler_osb::{PlanId, ServiceId};
use sutler_records::RecordError;
use uuid::Uuid;

/// Most items that one sync asks about.
const QUESTIONS_MAX: usize = 1_000;
/// Instances that are read at once.
const INSTANCES_PER_READ: usize = 20;
/// Most reads for one item: other brokers may have plans with the same ids, and as many instances of them as they like.
const READS_MAX: usize = 10;
/// Longest value of a term, in bytes.
const TERM_BYTES_MAX: usize = 512;

/// Removed items that are not in use. Everything else counts as used.
#[derive(Debug, Default)]
pub(super) struct UnusedItems {
    plans: BTreeSet<PlanKey>,
    services: BTreeSet<ServiceId>,
}

impl UnusedItems {
    /// Asks about the marked items of a catalog, from one of them on, chosen by `start`: if there are too many, the next
    /// sync asks about others.
    pub(super) async fn find(
        records: &PlatformRecords,
        broker: Uuid,
        known: &KnownCatalog,
        start: u32,
    ) -> Result<Self, RecordError> {
        let plans = known.plans().iter().filter(|(_, it)| it.is_removed());
        let services = known.services().iter().filter(|(_, it)| it.is_removed());
        let mut marked: Vec<(&ServiceId, Option<&PlanKey>)> = Vec::new();
        marked.extend(plans.map(|(key, _)| (&key.service_id, Some(key))));
        marked.extend(services.map(|(id, _)| (id, None)));
        let start = usize::try_from(start).unwrap_or_default() % marked.len().max(1);
        let mut unused = Self::default();
        let (before, after) = marked.split_at(start);
        for (service, plan) in after.iter().chain(before).take(QUESTIONS_MAX) {
            let plan_id = plan.map(|key| &key.plan_id);
            if is_used(records, broker, service, plan_id).await? {
                continue;
            }
            match plan {
                Some(key) => unused.plans.insert((*key).clone()),
                None => unused.services.insert((*service).clone()),
            };
        }
        Ok(unused)
    }

    /// Whether an instance uses a plan, or with `None` an offering.
    pub(super) fn is_used(&self, service: &ServiceId, plan: Option<&PlanId>) -> bool {
        let is_unused = match plan {
            Some(plan) => self.plans.contains(&PlanKey {
                service_id: service.clone(),
                plan_id: plan.clone(),
            }),
            None => self.services.contains(service),
        };
        !is_unused
    }
}

async fn is_used(
    records: &PlatformRecords,
    broker: Uuid,
    service: &ServiceId,
    plan: Option<&PlanId>,
) -> Result<bool, RecordError> {
    let list = instances_of(records, service, plan);
    let mut after = None;
    for _ in 0..READS_MAX {
        let store = &records.documents.store;
        let page = store
            .list(&list, after.as_ref(), INSTANCES_PER_READ)
            .await?;
        for document in &page.documents {
            // What a newer version wrote counts as a use.
            let Some(instance) = records.open::<Instance>(document)? else {
                return Ok(true);
            };
            let is_of_plan = plan.is_none_or(|plan| instance.basis.spec().plan == *plan);
            if instance.broker == broker && instance.service == *service && is_of_plan {
                return Ok(true);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Instances of a plan or of an offering, of any broker, and perhaps of others whose ids begin alike.
fn instances_of(records: &PlatformRecords, service: &ServiceId, plan: Option<&PlanId>) -> List {
    let value = |end: &str| {
        let mut value = scoped_value(service.as_str(), end);
        value.truncate(TERM_BYTES_MAX);
        value
    };
    let from = value(plan.map_or("", PlanId::as_str));
    let mut to = from.clone();
    if plan.is_none() && to.len() < TERM_BYTES_MAX {
        // Greater than every byte of UTF-8.
        to.push(0xff);
    }
    List::Term {
        realm: records.keys.realm().clone(),
        kind: INSTANCE,
        name: PLAN_TERM,
        from,
        to,
    }
}
