//! Successive catalogs: lookup, response bodies, tags and cached plans.

use super::body_chunks::ChunkBuffer;
use super::error::CatalogError;
use super::replace::{NextCatalog, OfferingUpdate, assemble};
use super::{CatalogSnapshot, OTHERS, Offering, PlanCache, Services, offering};
use crate::error::Result;
use crate::hook_context::Cx;
use crate::lifecycle::AuthorState;
use crate::service::{Provisioned, UntypedService};
use async_trait::async_trait;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use sutler_journal::{Commit, Key, Kind, Realm, Version};
use sutler_osb::{Parameters, PlanId, ServiceId, ServiceSpec};
use sutler_server::ChunkedBody;

static BUFFER: LazyLock<ChunkBuffer> = LazyLock::new(ChunkBuffer::default);

/// A service that is never called.
struct Idle;

#[async_trait]
impl UntypedService for Idle {
    async fn provision(&self, _: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        unreachable!("nothing is provisioned here")
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        unreachable!("nothing is provisioned here")
    }
}

/// An offering with one plan; its versions differ in their text only.
fn spec(id: &str, text: &str) -> Value {
    let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "title": text});
    json!({
        "id": id, "name": format!("{id}-name"), "description": text, "bindable": true,
        "plans": [{
            "id": format!("{id}-plan"), "name": "small", "description": "A small one.",
            "schemas": {"service_instance": {"create": {"parameters": schema}}},
        }],
    })
}

fn checked(spec: Value, origin: Option<&str>) -> Offering {
    let mut spec: ServiceSpec = serde_json::from_value(spec).expect("a specification");
    for plan in spec.plans.iter_mut().flatten() {
        plan.origin = origin.map(str::to_owned);
    }
    let services = Services::from([(OTHERS.to_owned(), Arc::new(Idle) as Arc<_>)]);
    offering::check(spec, &services, &BUFFER).expect("it can be offered")
}

fn new(id: &str, text: &str) -> OfferingUpdate {
    OfferingUpdate::New(checked(spec(id, text), None))
}

fn same(id: &str) -> OfferingUpdate {
    OfferingUpdate::Same(id.to_owned())
}

fn try_next(
    was: &CatalogSnapshot,
    updates: Vec<OfferingUpdate>,
) -> std::result::Result<CatalogSnapshot, CatalogError> {
    let cache: Arc<PlanCache> = was.cache.clone();
    let NextCatalog { snapshot, .. } = assemble(was, updates, cache)?;
    Ok(snapshot)
}

fn next(was: &CatalogSnapshot, updates: Vec<OfferingUpdate>) -> CatalogSnapshot {
    try_next(was, updates).expect("nothing is wrong with it")
}

fn first(updates: Vec<OfferingUpdate>) -> CatalogSnapshot {
    next(&CatalogSnapshot::default(), updates)
}

async fn answer(content: &ChunkedBody) -> String {
    let collected = content.clone().collect().await;
    let bytes = collected.expect("it never fails").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("it is JSON")
}

fn refused(updates: Vec<OfferingUpdate>) -> String {
    let was = first(vec![new("a", "one")]);
    let refused = try_next(&was, updates).err().expect("it is refused");
    crate::broker::BuildError::from(refused).to_string()
}

#[tokio::test]
async fn the_same_catalog_has_the_same_etag_after_any_history() {
    let long = "x".repeat(50_000);
    let at_once = first(vec![new("a", "one"), new("b", &long), new("c", &long)]);
    let was = first(vec![new("c", &long), new("b", "other"), new("d", &long)]);
    let slowly = next(&was, vec![new("a", "one"), same("b"), same("c")]);
    let between = slowly.etag.clone();
    let slowly = next(&slowly, vec![same("a"), new("b", &long), same("c")]);
    assert_eq!(slowly.etag, at_once.etag);
    assert_ne!(slowly.etag, between);
    assert_eq!(
        answer(&slowly.content).await,
        answer(&at_once.content).await
    );
}

#[test]
fn the_etag_changes_with_the_content_and_the_order_of_offerings() {
    let both = || vec![new("a", "one"), new("b", "two")];
    let was = first(both());
    let others = [
        vec![],
        vec![same("a")],
        vec![same("b"), same("a")],
        vec![same("a"), new("b", "twO")],
        vec![same("a"), same("b"), new("c", "two")],
    ];
    let mut etags = vec![was.etag.clone()];
    for updates in others {
        let etag = next(&was, updates).etag;
        assert!(!etags.contains(&etag), "{etag} a second time");
        etags.push(etag);
    }
    assert_eq!(next(&was, both()).etag, was.etag);
    // The origin of a plan is not part of the body.
    let from = |origin| {
        let offering = checked(spec("a", "one"), Some(origin));
        next(&was, vec![OfferingUpdate::New(offering)])
    };
    assert_eq!(from("here").etag, from("there").etag);
}

#[test]
fn an_identical_offering_keeps_its_bytes_and_gets_its_new_origin() {
    let was = first(vec![new("a", "one"), new("b", "two")]);
    let again = OfferingUpdate::New(checked(spec("a", "one"), Some("elsewhere")));
    let next = next(&was, vec![again, same("b")]);
    let at = |snapshot: &CatalogSnapshot| snapshot.chunks.get(0).map(<[u8]>::as_ptr);
    assert_eq!(at(&next), at(&was));
    let origin = |snapshot: &CatalogSnapshot| snapshot.pinned(0, 0).and_then(|plan| plan.origin);
    assert_eq!(origin(&was), None);
    assert_eq!(origin(&next).as_deref(), Some("elsewhere"));
}

/// Holds: B-055, B-056, B-068.
#[test]
fn two_offerings_with_the_same_ids_are_refused() {
    let with = |path: &str, value: &str| {
        let mut spec = spec("b", "two");
        *spec.pointer_mut(path).expect("the path is there") = json!(value);
        OfferingUpdate::New(checked(spec, None))
    };
    let alike = [
        (with("/name", "a-name"), "name \"a-name\" twice"),
        (with("/id", "a"), "id \"a\" twice"),
        (with("/plans/0/id", "a-plan"), "plan id \"a-plan\" twice"),
    ];
    for (update, expected) in alike {
        let sentence = refused(vec![same("a"), new("c", "three"), update]);
        assert!(sentence.contains(expected), "{sentence}");
    }
    assert!(refused(vec![same("a"), same("a")]).contains("twice"));
}

#[test]
fn an_offering_that_is_not_offered_cannot_be_kept() {
    let was = first(vec![new("a", "one")]);
    let gone = try_next(&was, vec![same("b")]).err();
    assert!(matches!(gone, Some(CatalogError::NotOffered(id)) if id == "b"));
}

/// Holds: B-120.
#[test]
fn plans_are_found_by_their_ids_and_with_their_own_service_only() {
    let ids = ["m", "a", "z", "k"];
    let snapshot = first(ids.map(|id| new(id, id)).into());
    let plan = |service: &str, plan: &str| {
        let service = ServiceId::try_from(service).expect("an id");
        let plan = PlanId::try_from(plan).expect("an id");
        snapshot.plan(&service, &plan)
    };
    for id in ids {
        let found = plan(id, &format!("{id}-plan")).expect("it is offered");
        assert_eq!(found.pinned.service_id.as_str(), id);
    }
    assert!(plan("a", "z-plan").is_none());
    assert!(plan("a", "b-plan").is_none());
    for (id, there) in [("a", true), ("b", false), ("zz", false)] {
        let id = ServiceId::try_from(id).expect("an id");
        assert_eq!(snapshot.has_service(&id), there);
    }
}

#[test]
fn each_offering_has_its_own_precondition_or_none() {
    let mut snapshot = first(vec![new("b", "two"), new("a", "one")]);
    let realm = Realm::new("r").expect("a realm");
    let key = Key::new(&realm, Kind::new("spec"), &["of-a"]).expect("a key");
    let precondition = (key, Version(Commit::new().id()));
    let of = |snapshot: &CatalogSnapshot, id: &str| {
        snapshot.precondition(&ServiceId::try_from(id).expect("an id"))
    };
    assert_eq!(of(&snapshot, "a"), None);
    let gone = ("gone".to_owned(), precondition.clone());
    snapshot.set_preconditions(vec![("a".to_owned(), precondition.clone()), gone]);
    assert_eq!(of(&snapshot, "a"), Some(precondition));
    assert_eq!((of(&snapshot, "b"), of(&snapshot, "gone")), (None, None));
}

#[test]
fn a_plan_is_parsed_at_its_first_use_and_then_cached() {
    let was = first(vec![new("a", "one"), new("b", "two")]);
    let snapshot = next(&was, vec![same("b"), new("a", "other"), new("c", "three")]);
    assert!(snapshot.cache.lock().is_empty(), "checked is not used");
    let used = |snapshot: &CatalogSnapshot| {
        let service = ServiceId::try_from("b").expect("an id");
        let plan = PlanId::try_from("b-plan").expect("an id");
        snapshot.plan(&service, &plan).expect("it is offered")
    };
    let ready = used(&snapshot);
    let later = next(&snapshot, vec![new("d", "four"), same("b")]);
    for snapshot in [&was, &snapshot, &later] {
        assert!(Arc::ptr_eq(&used(snapshot), &ready));
    }
    assert_eq!(snapshot.cache.lock().len(), 1);
}
