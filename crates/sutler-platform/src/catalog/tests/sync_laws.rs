//! Laws of syncs, over random sequences of catalogs with faults, equal names and equal ids.

use super::{moment, plan, service, with, without};
use crate::catalog::{ItemChange, KnownCatalog, SyncPlan, plan_sync};
use proptest::collection::{btree_set, vec};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use sutler_osb::{PlanId, ServiceId};

/// A catalog, and the names of the items that are in use.
type Step = (Vec<Value>, BTreeSet<String>);

fn plans() -> impl Strategy<Value = Value> {
    (0..6_u8, 0..4_u8, 0..5_u8, any::<bool>()).prop_map(|(id, name, fault, free)| {
        let healthy = with(plan(&format!("p{id}")), "name", format!("n{name}"));
        match fault {
            0 => without(healthy, "description"),
            1 => without(healthy, "id"),
            _ => with(healthy, "free", free),
        }
    })
}

fn offerings() -> impl Strategy<Value = Value> {
    (0..5_u8, 0..4_u8, 0..8_u8, vec(plans(), 0..5)).prop_map(|(id, name, fault, plans)| {
        let healthy = with(
            service(&format!("s{id}"), plans),
            "name",
            format!("n{name}"),
        );
        match fault {
            0 => without(healthy, "description"),
            1 => without(healthy, "id"),
            2 => with(healthy, "plans", 5),
            _ => healthy,
        }
    })
}

fn catalogs() -> impl Strategy<Value = Vec<Value>> {
    vec(offerings(), 0..6)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((catalogs(), btree_set("s[0-4](/p[0-5])?", 0..12)), 0..5)
}

/// Items that no catalog of these tests can use, and that name no item of theirs.
fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!({"id": "junk"})),
        Just(json!([{"id": "s0"}])),
        Just(service("junk", [json!({"id": "junk"})])),
        Just(with(service("junk", [plan("p0")]), "bindable", "yes")),
    ]
}

fn item_name(service: &str, plan: Option<&str>) -> String {
    plan.map_or_else(|| service.to_owned(), |plan| format!("{service}/{plan}"))
}

fn planned(known: &KnownCatalog, (catalog, used): &Step, second: usize) -> SyncPlan {
    let in_use = |service: &ServiceId, plan: Option<&PlanId>| {
        used.contains(&item_name(service.as_str(), plan.map(PlanId::as_str)))
    };
    let second = i64::try_from(second).unwrap();
    plan_sync(known, catalog.clone(), moment(second), &in_use)
}

fn known_after(steps: &[Step]) -> KnownCatalog {
    let mut known = KnownCatalog::default();
    for (second, step) in steps.iter().enumerate() {
        planned(&known, step, second).apply(&mut known);
    }
    known
}

/// The changes of all items, by their names.
fn changes(plan: &SyncPlan) -> BTreeMap<String, String> {
    fn word<T: std::fmt::Debug>(change: &ItemChange<T>) -> String {
        let text = format!("{change:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }
    let services = plan.services.iter();
    let services = services.map(|(id, it)| (item_name(id.as_str(), None), word(it)));
    let plans = plan.plans.iter();
    let plans = plans.map(|(key, it)| {
        let name = item_name(key.service_id.as_str(), Some(key.plan_id.as_str()));
        (name, word(it))
    });
    services.chain(plans).collect()
}

/// Names of all items in a catalog, usable or not.
fn named(catalog: &[Value]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for service in catalog {
        let Some(id) = service["id"].as_str() else {
            continue;
        };
        names.insert(item_name(id, None));
        let plans = service["plans"].as_array().into_iter().flatten();
        let plans = plans.filter_map(|plan| plan["id"].as_str());
        names.extend(plans.map(|plan| item_name(id, Some(plan))));
    }
    names
}

proptest! {
    #[test]
    fn an_item_is_dropped_only_if_it_was_marked_and_is_absent_and_unused(
        before in steps(),
        step in (catalogs(), btree_set("s[0-4](/p[0-5])?", 0..12)),
    ) {
        let known = known_after(&before);
        let plan = planned(&known, &step, 9);
        for (name, change) in changes(&plan) {
            if change == "Dropped" {
                prop_assert!(!step.1.contains(&name), "{name} is in use");
                prop_assert!(!named(&step.0).contains(&name), "{name} is in the catalog");
            }
        }
        for (id, change) in &plan.services {
            let is_marked = known.services().get(id).is_some_and(|it| it.is_removed());
            prop_assert!(!change.is_dropped() || is_marked);
            // An offering stays as long as one of its plans.
            let mut plans = plan.plans.iter().filter(|(key, _)| key.service_id == *id);
            prop_assert!(!change.is_dropped() || plans.all(|(_, change)| change.is_dropped()));
        }
        for (key, change) in &plan.plans {
            let is_marked = known.plans().get(key).is_some_and(|it| it.is_removed());
            prop_assert!(!change.is_dropped() || is_marked);
        }
    }

    #[test]
    fn an_item_in_the_catalog_is_never_marked_usable_or_not(
        before in steps(),
        step in (catalogs(), Just(BTreeSet::new())),
    ) {
        let plan = planned(&known_after(&before), &step, 9);
        let named = named(&step.0);
        for (name, change) in changes(&plan) {
            prop_assert!(change != "Removed" || !named.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_catalog_that_is_applied_again_changes_nothing_but_what_it_drops(
        before in steps(),
        step in (catalogs(), btree_set("s[0-4](/p[0-5])?", 0..12)),
    ) {
        let mut known = known_after(&before);
        planned(&known, &step, 9).apply(&mut known);
        let second = planned(&known, &step, 10);
        for (name, change) in changes(&second) {
            prop_assert!(
                ["Dropped", "Unchanged", "Unusable"].contains(&change.as_str()),
                "{name} is {change}"
            );
        }
        second.apply(&mut known);
        let third = planned(&known, &step, 11);
        prop_assert!(third.is_settled());
        prop_assert_eq!(third.faults, second.faults);
    }

    #[test]
    fn an_item_that_is_unusable_changes_nothing_for_others(
        before in steps(),
        step in (catalogs(), Just(BTreeSet::new())),
        junk in vec((any::<proptest::sample::Index>(), junk()), 1..4),
    ) {
        let known = known_after(&before);
        let (mut with_junk, mut clean) = (known.clone(), known);
        planned(&clean, &step, 9).apply(&mut clean);
        let mut catalog = step.0;
        for (at, item) in junk {
            catalog.insert(at.index(catalog.len() + 1), item);
        }
        let plan = planned(&with_junk, &(catalog, step.1), 9);
        plan.apply(&mut with_junk);
        prop_assert_eq!(with_junk, clean);
        prop_assert!(!plan.faults.is_empty());
    }

    #[test]
    fn offered_items_have_names_and_ids_of_their_own(steps in steps()) {
        let known = known_after(&steps);
        let mut values = BTreeSet::new();
        for service in known.services().values().filter(|it| !it.is_removed()) {
            let name = format!("name {}", service.name());
            prop_assert!(values.insert(name));
        }
        for plan in known.plans().values().filter(|it| !it.is_removed()) {
            let id = format!("id {}", plan.id());
            prop_assert!(values.insert(id));
            let name = format!("name {}/{}", plan.service_id(), plan.name());
            prop_assert!(values.insert(name));
            let service = known.services().get(plan.service_id());
            prop_assert!(service.is_some_and(|it| !it.is_removed()));
        }
    }

    #[test]
    fn a_catalog_without_faults_is_offered_as_it_is(
        before in steps(),
        names in btree_set("[a-z]{1,3}", 1..6),
    ) {
        let healthy = |name: &String| service(name, [plan(&format!("{name}1")), plan(&format!("{name}2"))]);
        let catalog: Vec<Value> = names.iter().map(healthy).collect();
        let mut known = known_after(&before);
        let plan = planned(&known, &(catalog, BTreeSet::new()), 9);
        prop_assert!(plan.faults.is_empty());
        plan.apply(&mut known);
        let offered = known.services().values().filter(|it| !it.is_removed());
        prop_assert_eq!(offered.map(|it| it.name().to_owned()).collect::<BTreeSet<_>>(), names);
    }
}
