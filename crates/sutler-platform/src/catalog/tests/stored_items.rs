//! Kept items: effective values, digests, and their form in the store.

use super::{known, plan, plan_key, service, service_id, with};
use crate::catalog::{KnownCatalog, OfferedService, PlanDigest};
use serde_json::{Value, json};
use sutler_osb::{PinnedPlan, ServiceOffering};

fn pinned(known: &KnownCatalog, service: &str, plan: &str) -> PinnedPlan {
    let (service, plan) = known.plan(&plan_key(service, plan)).unwrap();
    service.pinned(plan).unwrap()
}

/// Holds: P-045.
#[test]
fn a_pinned_plan_has_effective_values() {
    let known = known([with(
        service("s", [plan("p"), with(plan("q"), "plan_updateable", false)]),
        "plan_updateable",
        true,
    )]);
    let plan = pinned(&known, "s", "p");
    assert!(plan.bindable && plan.plan_updateable);
    assert!(!plan.binding_rotatable && !plan.instances_retrievable);
    assert!(!pinned(&known, "s", "q").plan_updateable);
}

#[test]
fn a_plan_is_pinned_only_with_its_own_offering() {
    let known = known([service("s", [plan("p")]), service("t", [plan("q")])]);
    let other = &known.services()[&service_id("t")];
    assert_eq!(other.pinned(&known.plans()[&plan_key("s", "p")]), None);
}

#[test]
fn a_digest_is_of_what_a_plan_means_and_not_of_how_it_is_written() {
    let digest = |service: Value| PlanDigest::of(&pinned(&known([service]), "s", "p")).unwrap();
    let plain = digest(service("s", [plan("p")]));
    assert_eq!(
        plain,
        digest(service("s", [with(plan("p"), "bindable", true), plan("q")]))
    );
    assert_eq!(
        plain,
        digest(service("s", [with(plan("p"), "description", "Other.")]))
    );
    assert_ne!(
        plain,
        digest(service("s", [with(plan("p"), "bindable", false)]))
    );
    assert_ne!(
        plain,
        digest(with(service("s", [plan("p")]), "bindable", false))
    );
}

#[test]
fn a_digest_is_read_only_in_its_own_form() {
    let digest = PlanDigest::of(&pinned(&known([service("s", [plan("p")])]), "s", "p")).unwrap();
    let text = digest.to_string();
    assert_eq!(text.len(), 64);
    assert_eq!(
        serde_json::from_value::<PlanDigest>(json!(text)).unwrap(),
        digest
    );
    for other in [
        "",
        "ff",
        &text.to_uppercase().replace('0', "A"),
        &format!("{text}0"),
    ] {
        assert!(PlanDigest::try_from(other.to_owned()).is_err(), "{other}");
    }
}

#[test]
fn a_removed_item_keeps_its_mark_in_the_store() {
    let mut known = known([service("s", [plan("p")])]);
    super::sync(&mut known, []);
    let item = &known.services()[&service_id("s")];
    let json = serde_json::to_value(item).unwrap();
    assert_eq!(json["removed_since"], json!("2025-06-15T15:06:41Z"));
    assert_eq!(
        serde_json::from_value::<OfferedService>(json).unwrap(),
        *item
    );
}

#[test]
fn the_client_of_a_dashboard_is_neither_checked_nor_kept() {
    let client = json!({"id": "client", "secret": "hunter2", "redirect_uri": "https://x"});
    let known = known([
        with(service("s", [plan("p")]), "dashboard_client", client),
        with(service("t", [plan("q")]), "dashboard_client", json!({})),
    ]);
    let kept = &known.services()[&service_id("s")];
    assert_eq!(kept.contents().dashboard_client, None);
    assert!(!format!("{known:?}").contains("hunter2"));
    assert!(!serde_json::to_string(kept).unwrap().contains("hunter2"));
}

#[test]
fn an_offering_is_kept_without_its_plans_and_its_client() {
    let mut json = with(service("s", [plan("p")]), "name", "n");
    json["dashboard_client"] = json!({"id": "client", "secret": "hunter2"});
    let offering: ServiceOffering = serde_json::from_value(json).unwrap();
    let item = OfferedService::from_offering(offering);
    assert!(item.contents().plans.is_empty());
    assert_eq!(item.contents().dashboard_client, None);
    assert!(!item.is_removed());
}
