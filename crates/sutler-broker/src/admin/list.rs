//! Lists and single resources for operators: reads and filters only.
//!
//! Filters use an index if there is one (plan, lifecycle, the bindings of an instance) and a bounded scan
//! otherwise (`filtered_page.rs`). The JSON of responses is in `view.rs`.

use super::filtered_page::{FilteredPage, SCAN_MAX, scan};
use super::query::{Query, cursor};
use super::response::AdminError;
use super::view::{
    AuditLine, BindingLine, BindingView, InstanceLine, InstanceView, Items, OperationView,
    state_word,
};
use crate::audit::TrailEntry;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::refusal::{Refusal, Resource};
use crate::requests::RequestHandler;
use crate::resources::{BINDING, GONE, INSTANCE, LIFECYCLE, OF, PLAN_TERM, ResourceKeys as _};
use sutler_journal::{
    Key, Kind, List, OperationFilter, OperationId, OperationList, OperationRow, Position, State,
};
use sutler_osb::{BindingId, InstanceId};
use sutler_records::AUDIT;

/// Operations read at a time.
const CHUNK: usize = 200;
/// Valid values of the filter `lifecycle`.
const LIFECYCLES: [&str; 7] = [
    "creating",
    "create_failed",
    "live",
    "updating",
    "deleting",
    "purging",
    "gone",
];
const STATES: [&str; 7] = [
    "unfinished",
    "waiting",
    "ready",
    "running",
    "succeeded",
    "failed",
    "cancelled",
];
/// Valid values of `order` for instances and bindings; ties are sorted by id.
const INSTANCE_ORDERS: [&str; 3] = ["id", "plan", "lifecycle"];
const BINDING_ORDERS: [&str; 2] = ["id", "lifecycle"];
const OUTCOMES: [&str; 3] = ["succeeded", "failed", "cancelled"];

pub(crate) async fn instances(
    requests: &RequestHandler,
    query: &Query,
) -> Result<Items<InstanceLine>, AdminError> {
    let lifecycle = query.word("lifecycle", &LIFECYCLES)?;
    let plan = query.filter("plan");
    let order = query.word("order", &INSTANCE_ORDERS)?;
    let upgradable = query.word("upgradable", &["true", "false"])?;
    let list = match (order, lifecycle, plan) {
        // Deleted instances can be sorted by time of deletion only.
        (_, Some("gone"), _) => in_order(requests, INSTANCE, GONE),
        (Some("plan"), ..) => in_order(requests, INSTANCE, PLAN_TERM),
        (Some("lifecycle"), ..) => in_order(requests, INSTANCE, LIFECYCLE),
        (_, _, Some(plan)) => by_term(requests, INSTANCE, PLAN_TERM, plan),
        (_, Some(word), None) => by_term(requests, INSTANCE, LIFECYCLE, word),
        (_, None, None) => all(requests, INSTANCE),
    };
    let found = scan(
        requests,
        &list,
        query.position()?,
        query.limit,
        |key, at: &Instance| {
            let line = InstanceLine::of(&requests.realm_context.catalog, key, at);
            let passes = lifecycle.map_or(line.lifecycle != "gone", |word| word == line.lifecycle)
                && same(plan, line.plan_id.as_deref())
                && same(query.filter("service"), line.service_id.as_deref())
                && same(query.filter("version"), line.version.as_deref())
                && upgradable.is_none_or(|word| (word == "true") == line.upgrade_to.is_some());
            passes.then_some(line)
        },
    )
    .await?;
    Ok(page(found))
}

pub(crate) async fn bindings(
    requests: &RequestHandler,
    query: &Query,
) -> Result<Items<BindingLine>, AdminError> {
    let lifecycle = query
        .word("lifecycle", &LIFECYCLES)?
        .map(|word| if word == "updating" { "" } else { word });
    let instance = query.filter("instance");
    let order = query.word("order", &BINDING_ORDERS)?;
    let list = match (order, lifecycle, instance) {
        (_, Some("gone"), _) => in_order(requests, BINDING, GONE),
        (Some("lifecycle"), ..) => in_order(requests, BINDING, LIFECYCLE),
        (_, _, Some(instance)) => by_term(requests, BINDING, OF, instance),
        (_, Some(word), None) => by_term(requests, BINDING, LIFECYCLE, word),
        (_, None, None) => all(requests, BINDING),
    };
    let found = scan(
        requests,
        &list,
        query.position()?,
        query.limit,
        |key, at: &Binding| {
            let line = BindingLine::of(key, at);
            let passes = lifecycle.map_or(line.lifecycle != "gone", |word| word == line.lifecycle)
                && same(instance, Some(&line.instance_id))
                && same(query.filter("plan"), line.plan_id.as_deref())
                && same(query.filter("service"), line.service_id.as_deref());
            passes.then_some(line)
        },
    )
    .await?;
    Ok(page(found))
}

/// Newest first.
pub(crate) async fn operations(
    requests: &RequestHandler,
    query: &Query,
) -> Result<Items<OperationView>, AdminError> {
    let state = query.word("state", &STATES)?;
    let outcome = query.word("outcome", &OUTCOMES)?;
    let verb = query.filter("verb");
    let filter = match lane(requests, query)? {
        Some(lane) => OperationFilter::Lane(lane),
        None if matches!(state, Some("unfinished" | "waiting" | "ready" | "running")) => {
            OperationFilter::Unfinished
        }
        None => OperationFilter::All,
    };
    let realm = requests.realm_context.records.realm.as_str();
    let passes = |row: &OperationRow| {
        let word = state_word(row.state);
        let unfinished = !matches!(row.state, State::Done(_));
        row.lane.realm() == realm
            && same(verb, Some(&row.verb))
            && same(outcome, Some(word))
            && state.is_none_or(|wanted| wanted == word || (wanted == "unfinished" && unfinished))
    };
    let mut items = Vec::new();
    let mut before = query.before()?;
    let mut read = 0;
    while items.len() < query.limit && read < SCAN_MAX {
        let limit = CHUNK.min(query.limit - items.len());
        let list = OperationList {
            filter: filter.clone(),
            before,
            limit,
        };
        let rows = requests
            .realm_context
            .records
            .store
            .operations(&list)
            .await?;
        read += rows.len();
        for row in rows.iter().filter(|row| passes(row)) {
            items.push(OperationView::of(requests, row)?);
        }
        before = rows.last().map(|row| row.id);
        if rows.len() < limit {
            return Ok(Items { items, next: None });
        }
    }
    let next = before.map(|id| id.to_string());
    Ok(Items { items, next })
}

/// The lane that a query of operations names.
fn lane(requests: &RequestHandler, query: &Query) -> Result<Option<Key>, AdminError> {
    let records = &requests.realm_context.records;
    let bad = |error: &dyn std::fmt::Display| {
        AdminError::invalid(format!("An id cannot be used: {error}."))
    };
    let instance = query.filter("instance").map(InstanceId::try_from);
    let binding = query.filter("binding").map(BindingId::try_from);
    let instance = instance.transpose().map_err(|error| bad(&error))?;
    let binding = binding.transpose().map_err(|error| bad(&error))?;
    match (instance, binding) {
        (Some(instance), Some(binding)) => Ok(Some(records.binding_key(&instance, &binding))),
        (Some(instance), None) => Ok(Some(records.instance_key(&instance))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(AdminError::invalid(
            "Name the instance of the binding too: binding ids are unique per instance only.",
        )),
    }
}

/// Newest first.
pub(crate) async fn audit(
    requests: &RequestHandler,
    query: &Query,
) -> Result<Items<AuditLine>, AdminError> {
    let records = &requests.realm_context.records;
    let realm = records.realm.as_str();
    let list = all(requests, AUDIT);
    let mut items = Vec::new();
    let mut at = query.position()?;
    let mut read = 0;
    loop {
        let chunk = CHUNK.min(query.limit - items.len());
        let page = records.store.list(&list, at.as_ref(), chunk).await?;
        read += page.documents.len();
        for document in page.documents {
            let entry = TrailEntry::open(records, &document.key, &document.body)?;
            let passes = same(query.filter("instance"), entry.on.instance_id.as_deref())
                && same(query.filter("verb"), Some(entry.verb.word()))
                && same(query.filter("who"), Some(&entry.who))
                && same(query.filter("outcome"), Some(entry.outcome.word()));
            items.extend(passes.then(|| AuditLine::of(realm, entry)));
        }
        at = page.next;
        if at.is_none() || items.len() >= query.limit || read >= SCAN_MAX {
            return Ok(page_of(items, at));
        }
    }
}

pub(crate) async fn instance(
    requests: &RequestHandler,
    id: &InstanceId,
) -> Result<InstanceView, AdminError> {
    let key = requests.realm_context.records.instance_key(id);
    let at = requests
        .realm_context
        .records
        .load::<Instance>(&key)
        .await?
        .state;
    if at == Instance::Absent {
        return Err(Refusal::NotFound(Resource::Instance).into());
    }
    let mut view = InstanceView::of(&requests.realm_context.catalog, &key, &at);
    view.executing = found(requests, at.executing()).await?;
    view.waiting = found(requests, at.waiting()).await?;
    view.last = found(requests, at.last()).await?;
    Ok(view)
}

pub(crate) async fn binding(
    requests: &RequestHandler,
    instance: &InstanceId,
    id: &BindingId,
) -> Result<BindingView, AdminError> {
    let key = requests.realm_context.records.binding_key(instance, id);
    let at = requests
        .realm_context
        .records
        .load::<Binding>(&key)
        .await?
        .state;
    if at == Binding::Absent {
        return Err(Refusal::NotFound(Resource::Binding).into());
    }
    let mut view = BindingView::of(&key, &at);
    view.executing = found(requests, at.executing()).await?;
    view.waiting = found(requests, at.waiting()).await?;
    view.last = found(requests, at.last()).await?;
    Ok(view)
}

pub(crate) async fn operation(
    requests: &RequestHandler,
    id: OperationId,
) -> Result<OperationView, AdminError> {
    let view = found(requests, Some(id)).await?;
    let realm = requests.realm_context.records.realm.as_str();
    view.filter(|view| view.realm == realm).ok_or_else(|| {
        AdminError::not_found("There is no operation with this id; it may have been cleaned up.")
    })
}

async fn found(
    requests: &RequestHandler,
    id: Option<OperationId>,
) -> Result<Option<OperationView>, AdminError> {
    let Some(id) = id else {
        return Ok(None);
    };
    match requests.realm_context.records.store.operation(id).await? {
        Some(operation) => Ok(Some(OperationView::of(requests, &operation.row)?)),
        None => Ok(None),
    }
}

fn same(wanted: Option<&str>, is: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| is == Some(wanted))
}

fn all(requests: &RequestHandler, kind: Kind) -> List {
    let realm = &requests.realm_context.records.realm;
    List::Prefix(Key::prefix(realm, kind, &[]).unwrap_or_default())
}

fn by_term(requests: &RequestHandler, kind: Kind, name: &'static str, value: &str) -> List {
    List::term(
        &requests.realm_context.records.realm,
        kind,
        name,
        value.as_bytes(),
    )
}

/// All documents with a term, sorted by its values.
fn in_order(requests: &RequestHandler, kind: Kind, name: &'static str) -> List {
    List::Term {
        realm: requests.realm_context.records.realm.clone(),
        kind,
        name,
        from: Vec::new(),
        // Greater than every timestamp and every text.
        to: vec![0xff; 9],
    }
}

fn page<T>(found: FilteredPage<T>) -> Items<T> {
    page_of(found.items, found.next)
}

fn page_of<T>(items: Vec<T>, next: Option<Position>) -> Items<T> {
    let next = next.as_ref().map(cursor);
    Items { items, next }
}
