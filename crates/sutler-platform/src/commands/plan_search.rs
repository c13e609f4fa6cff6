//! Finds a plan by the names or ids that a person writes, among what the namespace may see.

use super::command_error::CommandError;
use crate::brokers::BrokerView;
use crate::catalog::{CatalogView, NamespaceFacts, PlanKey, PlanLookup};
use crate::context::PlatformContext;
use crate::records::{BrokerRegistration, NamespaceRecord, ResourceName};
use std::sync::Arc;
use sutler_journal::List;
use sutler_osb::PinnedPlan;

/// Most brokers that are searched for one namespace.
const BROKERS_MAX: usize = 2_000;

/// A plan that the namespace may see.
pub(super) struct FoundPlan {
    /// Its broker.
    pub(super) view: Arc<BrokerView>,
    /// Its ids.
    pub(super) key: PlanKey,
    /// Its effective values.
    pub(super) plan: Arc<PinnedPlan>,
    /// Whether the broker offers it no more.
    pub(super) is_removed: bool,
}

/// The brokers of a name that serve a namespace, its own and that of all; `None`: all that serve it, by name.
///
/// # Errors
/// They cannot be read.
async fn brokers_of(
    context: &PlatformContext,
    namespace: &ResourceName,
    broker: Option<&ResourceName>,
) -> Result<Vec<BrokerRegistration>, CommandError> {
    let records = &context.records;
    let mut found = Vec::new();
    for scope in [Some(namespace), None] {
        if let Some(name) = broker {
            found.extend(context.brokers.find(scope, name).await?);
            continue;
        }
        let list = List::Prefix(records.keys.brokers_of(scope));
        let (items, _) = records.list_all(&list, BROKERS_MAX).await?;
        found.extend(items.into_iter().map(|(_, broker)| broker));
    }
    Ok(found)
}

/// Finds a plan. `None`: there is none, or the namespace may not see it.
///
/// # Errors
/// Several brokers offer it, or a broker cannot be read.
pub(super) async fn find_plan(
    context: &PlatformContext,
    namespace: (&ResourceName, &NamespaceRecord),
    broker: Option<&ResourceName>,
    (class, plan): (&str, &str),
) -> Result<Option<FoundPlan>, CommandError> {
    let (name, record) = namespace;
    let mut found: Vec<FoundPlan> = Vec::new();
    for registration in brokers_of(context, name, broker).await? {
        let view = context.brokers.view(registration.uid).await?;
        found.extend(plan_of_broker(view, (name, record), class, plan));
    }
    let offered = found.iter().filter(|it| !it.is_removed).count();
    if offered > 0 {
        found.retain(|it| !it.is_removed);
    }
    if found.len() > 1 {
        let names = found.iter().map(|it| it.view.registration.name.as_str());
        let names: Vec<&str> = names.collect();
        return Err(CommandError::Invalid {
            pointer: "/broker",
            sentence: format!(
                "several brokers offer this plan ({}); name one of them",
                names.join(", ")
            ),
        });
    }
    let found = found.pop();
    if let Some(FoundPlan { view, key, .. }) = &found {
        let catalog = &view.catalog;
        catalog.prepare_schemas(&key.service_id, &key.plan_id).await;
    }
    Ok(found)
}

/// The plan of one broker that has these names or ids.
pub(super) fn plan_of_broker(
    view: Arc<BrokerView>,
    (name, record): (&ResourceName, &NamespaceRecord),
    class: &str,
    plan: &str,
) -> Option<FoundPlan> {
    let facts = NamespaceFacts {
        name: name.as_str(),
        labels: &record.labels,
    };
    let registration = &view.registration;
    let catalog = CatalogView {
        scope: &registration.scope,
        restrictions: &registration.restrictions,
        access: &registration.access,
        catalog: view.catalog.known(),
    };
    let named = |key: &&PlanKey| {
        let (service, offered) = view.catalog.known().plan(key)?;
        let has_class = service.name() == class || service.id().as_str() == class;
        let has_plan = offered.name() == plan || offered.id().as_str() == plan;
        (has_class && has_plan).then_some(())
    };
    let keys = view.catalog.known().plans().keys();
    let mut best: Option<(PlanKey, bool)> = None;
    for key in keys.filter(|key| named(key).is_some()) {
        match catalog.find(facts, key) {
            PlanLookup::NotFound => {}
            PlanLookup::Removed { .. } => {
                best.get_or_insert((key.clone(), true));
            }
            PlanLookup::Offered { .. } => best = Some((key.clone(), false)),
        }
    }
    let (key, is_removed) = best?;
    let pinned = view.catalog.plan(&key.service_id, &key.plan_id)?;
    Some(FoundPlan {
        plan: pinned,
        view,
        key,
        is_removed,
    })
}
