//! The marketplace: what a namespace may provision.

use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::problem::Problem;
use crate::api::request_inputs::Input;
use crate::api::resource_views::broker_of;
use crate::api::views::{ListPage, OfferedClass, offered_classes};
use crate::catalog::{CatalogView, NamespaceFacts};
use crate::records::{BrokerRegistration, ResourceName};
use axum::http::StatusCode;
use sutler_journal::List;

/// Brokers that are looked at for one namespace.
const BROKERS_MAX: usize = 2_000;

/// All that the namespace may provision, by name. The broker of each offering is named: two may offer the same.
pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.inputs.filter(Input::Namespace).ok_or_else(|| {
        Problem::invalid("Say for which namespace, e.g. ?namespace=app: each sees its own offers.")
    })?;
    let none = |_| Problem::no_such("namespace", namespace);
    let name = ResourceName::try_from(namespace).map_err(none)?;
    let record = call.platform.namespace_of(&name).await?;
    let facts = NamespaceFacts {
        name: name.as_str(),
        labels: &record.labels,
    };
    let records = call.platform.records();
    let mut classes = Vec::new();
    for scope in [Some(&name), None] {
        let list = List::Prefix(records.keys.brokers_of(scope));
        let brokers = records.list_all::<BrokerRegistration>(&list, BROKERS_MAX);
        for (_, registration) in brokers.await?.0 {
            classes.extend(offered(call, &registration, facts).await?);
        }
    }
    classes.sort_by(|one, other| one.order().cmp(&other.order()));
    let page = ListPage {
        items: classes,
        next: None,
    };
    Ok(HandlerAnswer::json(StatusCode::OK, &page))
}

async fn offered(
    call: &ApiCall<'_>,
    registration: &BrokerRegistration,
    namespace: NamespaceFacts<'_>,
) -> Result<Vec<OfferedClass>, Problem> {
    let Some(view) = broker_of(call.platform, registration.uid).await? else {
        return Ok(Vec::new());
    };
    let catalog = CatalogView {
        scope: &registration.scope,
        restrictions: &registration.restrictions,
        access: &registration.access,
        catalog: view.catalog.known(),
    };
    let broker = (registration.name.as_str(), registration.uid);
    Ok(offered_classes(broker, catalog.offered_plans(namespace)))
}
