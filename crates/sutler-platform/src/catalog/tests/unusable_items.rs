//! Catalogs that are usable only in part: every fault is reported, and harms no other item.

use super::{
    changes, faults, items, known, outcomes, plan, plan_key, service, sync, with, without,
};
use crate::catalog::{FaultOutcome, KnownCatalog};
use serde_json::{Value, json};

/// Syncs a new broker; returns the items and the faults.
fn first_sync(services: impl Into<Vec<Value>>) -> (Vec<String>, Vec<String>) {
    let mut known = KnownCatalog::default();
    let plan = sync(&mut known, services);
    (items(&known), faults(&plan))
}

/// An offering that could not be synchronised ended the sync of the whole catalog.
#[test]
fn an_unusable_offering_does_not_take_others_with_it() {
    let (items, faults) = first_sync([
        without(service("a", [plan("x")]), "description"),
        service("b", [plan("y")]),
        json!("not an object"),
    ]);
    assert_eq!(items, ["b", "b/y"]);
    assert_eq!(
        faults,
        [
            "services[0].description (`a`) is required; it is not offered",
            "services[2] must be a JSON object; it is not offered",
        ]
    );
}

#[test]
fn an_unusable_plan_does_not_take_its_offering_or_other_plans_with_it() {
    let (items, faults) = first_sync([service(
        "s",
        [
            with(plan("a"), "maintenance_info", json!({"version": "one"})),
            plan("b"),
            with(plan("c"), "free", "yes"),
            json!(null),
        ],
    )]);
    assert_eq!(items, ["s", "s/b"]);
    assert_eq!(faults.len(), 3);
    assert_eq!(
        faults[0],
        "services[0].plans[0].maintenance_info.version (`a`) must be a semantic version such as \
         1.2.3; it is not offered"
    );
    assert!(
        faults[1].starts_with("services[0].plans[2].free (`c`) "),
        "{}",
        faults[1]
    );
    assert_eq!(
        faults[2],
        "services[0].plans[3] must be a JSON object; it is not offered"
    );
}

#[test]
fn an_item_with_several_faults_names_the_first_and_counts_the_others() {
    let (items, faults) = first_sync([json!({"id": "s", "plans": [plan("p")]})]);
    assert_eq!(items, Vec::<String>::new());
    assert_eq!(
        faults,
        ["services[0].name (`s`) is required (and 2 more); it is not offered"]
    );
}

#[test]
fn an_offering_without_a_usable_plan_is_not_offered() {
    for plans in [json!([]), json!(null), json!({})] {
        let (items, faults) = first_sync([with(service("s", []), "plans", plans)]);
        assert_eq!(items, Vec::<String>::new());
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].starts_with("services[0].plans (`s`) must "),
            "{}",
            faults[0]
        );
    }
    let (items, faults) = first_sync([service("s", [without(plan("p"), "name")])]);
    assert_eq!(items, Vec::<String>::new());
    assert_eq!(
        faults,
        ["services[0].plans (`s`) must have at least one usable plan; it is not offered"]
    );
}

#[test]
fn the_second_of_two_offerings_with_one_name_is_not_offered() {
    let (items, faults) = first_sync([
        service("s", [plan("p")]),
        with(service("t", [plan("q")]), "name", "s"),
        with(service("u", [plan("r")]), "name", "S"),
    ]);
    assert_eq!(items, ["s", "S", "s/p", "u/r"]);
    assert_eq!(
        faults,
        [
            "services[1].name (`s`) must be unique, but another offering has the same name; \
             it is not offered"
        ]
    );
}

#[test]
fn the_second_of_two_offerings_with_one_id_is_not_offered() {
    let (items, faults) = first_sync([
        without(service("s", [plan("o")]), "description"),
        service("s", [plan("p")]),
        with(service("s", [plan("q")]), "name", "t"),
    ]);
    assert_eq!(items, ["s", "s/p"]);
    assert_eq!(
        faults,
        [
            "services[0].description (`s`) is required; it is not offered",
            "services[2].id (`t`) must be unique, but is the same as services[1].id; \
             it is not offered",
        ]
    );
}

#[test]
fn of_two_offerings_with_one_id_the_one_with_a_usable_plan_counts_always() {
    let catalog = [
        service("s", [without(plan("p"), "name")]),
        with(service("s", [plan("p")]), "name", "t"),
    ];
    let mut known = KnownCatalog::default();
    sync(&mut known, catalog.clone());
    assert_eq!(items(&known), ["t", "s/p"]);
    assert!(sync(&mut known, catalog).is_settled());
}

#[test]
fn the_second_of_two_plans_with_one_id_or_name_is_not_offered() {
    let (items, faults) = first_sync([
        service(
            "s",
            [
                plan("p"),
                with(plan("p"), "name", "q"),
                with(plan("q"), "name", "p"),
            ],
        ),
        service("t", [with(plan("p"), "name", "r"), plan("x")]),
        service("u", [with(plan("y"), "name", "p")]),
    ]);
    assert_eq!(items, ["s", "t", "u", "s/p", "t/x", "u/p"]);
    assert_eq!(
        faults,
        [
            "services[0].plans[1].id (`q`) must be unique, but is the same as that of plans[0]; \
             it is not offered",
            "services[0].plans[2].name (`p`) must be unique, but another plan of the offering \
             has the same name; it is not offered",
            "services[1].plans[0].id (`r`) must be unique, but a plan of another offering has \
             the same id; it is not offered",
        ]
    );
}

#[test]
fn an_offering_whose_only_plan_belongs_to_another_one_is_not_offered() {
    let (items, faults) = first_sync([service("s", [plan("p")]), service("t", [plan("p")])]);
    assert_eq!(items, ["s", "s/p"]);
    assert_eq!(faults.len(), 2);
    assert!(faults[0].starts_with("services[1].plans (`t`) must have at least one usable plan"));
}

#[test]
fn the_last_usable_version_of_an_item_stays() {
    let mut known = known([
        service("s", [plan("p"), plan("q")]),
        service("t", [plan("r")]),
    ]);
    let before = known.clone();
    let plan = sync(
        &mut known,
        [
            service("s", [with(plan("p"), "description", ""), plan("q")]),
            with(service("t", [plan("new")]), "bindable", json!(null)),
        ],
    );
    assert_eq!(
        changes(&plan),
        ["unusable t", "unusable s/p", "unusable t/r"]
    );
    assert_eq!(known, before);
    assert_eq!(
        faults(&plan),
        [
            "services[0].plans[0].description (`p`) must not be empty; \
             its last usable version stays",
            "services[1].bindable (`t`) is required: true or false; \
             its last usable version stays",
        ]
    );
    assert_eq!(outcomes(&plan), [FaultOutcome::LastVersionStays; 2]);
}

#[test]
fn an_item_whose_id_is_lost_is_found_by_its_name_and_stays() {
    let mut known = known([
        service("s", [plan("p"), plan("q")]),
        service("t", [plan("r")]),
    ]);
    let before = known.clone();
    let plan = sync(
        &mut known,
        [
            service("s", [without(plan("p"), "id"), plan("q")]),
            with(service("t", [plan("r")]), "id", json!(5)),
        ],
    );
    assert_eq!(
        changes(&plan),
        ["unusable t", "unusable s/p", "unusable t/r"]
    );
    assert_eq!(known, before);
}

#[test]
fn a_removed_item_that_returns_unusable_stays_removed() {
    let mut known = known([service("s", [plan("p")])]);
    sync(&mut known, []);
    let plan = sync(&mut known, [with(service("s", [plan("p")]), "name", "")]);
    assert!(plan.is_settled());
    assert_eq!(outcomes(&plan), [FaultOutcome::NotOffered]);
    assert_eq!(items(&known), ["-s", "-s/p"]);
}

#[test]
fn a_new_item_does_not_take_the_name_or_the_id_of_an_offered_one() {
    let catalog = service("s", [plan("p"), plan("q")]);
    let mut known = known([catalog.clone()]);
    let before = known.clone();
    let thief = with(service("a", [plan("p"), plan("x")]), "name", "s");
    let plan = sync(&mut known, [thief.clone(), catalog.clone()]);
    assert_eq!(known, before);
    assert_eq!(outcomes(&plan), [FaultOutcome::NotOffered]);

    let thief = with(thief, "name", "a");
    let plan = sync(&mut known, [thief, catalog]);
    assert_eq!(changes(&plan), ["added a", "added a/x"]);
}

#[test]
fn an_item_that_is_refused_its_new_name_keeps_the_old_one_against_others() {
    let mut known = known([
        service("s", [plan("p")]),
        service("t", [plan("q")]),
        service("u", [plan("r")]),
    ]);
    let before = known.clone();
    // `t` keeps its name, so `s` cannot have it; so `u` cannot have that of `s`, and `v` none at all.
    let plan = sync(
        &mut known,
        [
            with(service("u", [plan("r")]), "name", "s"),
            with(service("v", [plan("x")]), "name", "u"),
            with(service("s", [plan("p")]), "name", "t"),
            service("t", [plan("q")]),
        ],
    );
    assert_eq!(known, before);
    assert_eq!(
        outcomes(&plan),
        [
            FaultOutcome::LastVersionStays,
            FaultOutcome::NotOffered,
            FaultOutcome::LastVersionStays,
        ]
    );
}

#[test]
fn a_schema_that_cannot_be_compiled_does_not_make_a_plan_unusable() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"x": {"pattern": "^(?!a)"}},
    });
    let schemas = json!({"service_instance": {"create": {"parameters": schema}}});
    let known = known([service("s", [with(plan("p"), "schemas", schemas)])]);
    assert!(known.plans().contains_key(&plan_key("s", "p")));
}
