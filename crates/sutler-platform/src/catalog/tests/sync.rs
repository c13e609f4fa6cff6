//! Syncs of usable catalogs: what is added, changed, removed, dropped, and what returns.

use super::{
    changes, faults, items, known, moment, plan, plan_key, service, service_id, sync, unused, used,
    with,
};
use crate::catalog::{KnownCatalog, plan_sync, read_offerings};
use serde_json::{Value, json};

#[test]
fn a_first_sync_adds_every_offering_and_every_plan() {
    let mut known = KnownCatalog::default();
    let plan = sync(
        &mut known,
        [
            service("s", [plan("p"), plan("q")]),
            service("t", [plan("r")]),
        ],
    );
    assert_eq!(
        changes(&plan),
        ["added s", "added t", "added s/p", "added s/q", "added t/r"]
    );
    assert!(plan.faults.is_empty());
    assert_eq!(items(&known), ["s", "t", "s/p", "s/q", "t/r"]);
}

#[test]
fn the_same_catalog_again_changes_nothing() {
    let catalog = [service("s", [plan("p")])];
    let mut known = known(catalog.clone());
    let plan = sync(&mut known, catalog);
    assert!(plan.is_settled());
    assert_eq!(changes(&plan), Vec::<String>::new());
}

/// Holds: P-041, P-043.
#[test]
fn a_changed_item_is_written_and_its_siblings_are_not() {
    let mut known = known([service("s", [plan("p"), plan("q")])]);
    let metadata = json!({"deep": [{"unknown": null}]});
    let changed = with(plan("p"), "metadata", metadata.clone());
    let plan = sync(&mut known, [service("s", [changed, plan("q")])]);
    assert_eq!(changes(&plan), ["changed s/p"]);
    let kept = &known.plans()[&plan_key("s", "p")];
    assert_eq!(
        Value::from(kept.contents().plan.metadata.clone().unwrap()),
        metadata
    );
}

/// Holds: P-041, P-042.
#[test]
fn a_new_name_is_a_change_and_a_new_id_is_another_item() {
    let mut known = known([service("s", [plan("p")])]);
    let renamed = with(service("s", [plan("p")]), "name", "S");
    assert_eq!(changes(&sync(&mut known, [renamed])), ["changed s"]);
    assert_eq!(known.services()[&service_id("s")].name(), "S");

    let other = with(service("t", [plan("p")]), "name", "S");
    assert_eq!(
        changes(&sync(&mut known, [other])),
        ["removed s", "added t", "removed s/p", "added t/p"]
    );
}

#[test]
fn names_are_exchanged_between_two_items() {
    let mut known = known([
        service("s", [plan("p"), plan("q")]),
        service("t", [plan("r")]),
    ]);
    let plans = [with(plan("p"), "name", "q"), with(plan("q"), "name", "p")];
    let exchanged = [
        with(service("s", plans), "name", "t"),
        with(service("t", [plan("r")]), "name", "s"),
    ];
    let plan = sync(&mut known, exchanged);
    assert_eq!(faults(&plan), Vec::<String>::new());
    assert_eq!(items(&known), ["t", "s", "s/q", "s/p", "t/r"]);
}

#[test]
fn an_item_that_is_missing_is_marked_with_the_time_of_the_first_sync_without_it() {
    let mut known = known([service("s", [plan("p"), plan("q")])]);
    for second in [10, 20] {
        let plan = plan_sync(
            &known,
            vec![service("s", [plan("q")])],
            moment(second),
            &used,
        );
        plan.apply(&mut known);
    }
    assert_eq!(items(&known), ["s", "-s/p", "s/q"]);
    let removed = &known.plans()[&plan_key("s", "p")];
    assert_eq!(removed.removed_since(), Some(moment(10)));
}

#[test]
fn an_offering_that_is_missing_takes_its_plans_with_it() {
    let mut known = known([service("s", [plan("p")]), service("t", [plan("q")])]);
    let plan = sync(&mut known, [service("t", [plan("q")])]);
    assert_eq!(changes(&plan), ["removed s", "removed s/p"]);
}

#[test]
fn an_empty_catalog_marks_everything_and_drops_nothing_at_once() {
    let mut known = known([service("s", [plan("p")])]);
    let plan = sync(&mut known, []);
    assert_eq!(changes(&plan), ["removed s", "removed s/p"]);
    assert!(plan.faults.is_empty());
    assert_eq!(items(&known), ["-s", "-s/p"]);
}

#[test]
fn a_body_without_a_list_of_offerings_is_no_catalog() {
    let sentence = |body: &str| read_offerings(body.as_bytes()).unwrap_err().to_string();
    assert_eq!(sentence("{}"), "field `services` is required");
    assert!(sentence(r#"{"services": null}"#).starts_with("field `services`"));
    assert!(sentence(r#"{"services": {}}"#).starts_with("field `services`"));
    assert!(sentence("<html>").starts_with("the body is not valid JSON"));
    assert!(sentence("").starts_with("the body is empty"));
    assert_eq!(
        read_offerings(br#"{"services": []}"#).unwrap(),
        Vec::<Value>::new()
    );
    assert_eq!(
        read_offerings(br#"{"services": [7], "x": 1}"#).unwrap(),
        [json!(7)]
    );
}

#[test]
fn a_marked_item_is_dropped_when_it_is_unused() {
    let mut known = known([service("s", [plan("p"), plan("q")])]);
    sync(&mut known, []);
    let p_only =
        |_: &_, plan: Option<&sutler_osb::PlanId>| plan.is_some_and(|it| it.as_str() == "p");
    let plan = plan_sync(&known, vec![], moment(2), &p_only);
    assert_eq!(changes(&plan), ["dropped s/q"]);
    plan.apply(&mut known);
    assert_eq!(items(&known), ["-s", "-s/p"]);

    assert_eq!(changes(&sync(&mut known, [])), ["dropped s", "dropped s/p"]);
    assert_eq!(known, KnownCatalog::default());
}

#[test]
fn an_offering_stays_while_something_uses_it_without_its_plans() {
    let mut known = known([service("s", [plan("p")])]);
    sync(&mut known, []);
    let service_only = |_: &_, plan: Option<&sutler_osb::PlanId>| plan.is_none();
    let plan = plan_sync(&known, vec![], moment(2), &service_only);
    assert_eq!(changes(&plan), ["dropped s/p"]);
}

/// A class that returned to the catalog stayed removed (service-catalog 1757).
#[test]
fn an_item_that_returns_loses_its_mark() {
    let catalog = [service("s", [plan("p"), plan("q")])];
    let mut known = known(catalog.clone());
    sync(&mut known, []);
    let plan = plan_sync(&known, catalog.to_vec(), moment(2), &unused);
    assert_eq!(
        changes(&plan),
        ["returned s", "returned s/p", "returned s/q"]
    );
    plan.apply(&mut known);
    assert_eq!(known, super::known(catalog));
}

/// Changes of plans were not taken over (service-catalog 1388).
#[test]
fn an_item_that_returns_has_its_present_contents() {
    let mut known = known([service("s", [plan("p"), plan("q")])]);
    sync(&mut known, [service("s", [plan("q")])]);
    let costly = with(plan("p"), "free", false);
    let plan = sync(&mut known, [service("s", [costly, plan("q")])]);
    assert_eq!(changes(&plan), ["returned s/p"]);
    assert_eq!(
        known.plans()[&plan_key("s", "p")].contents().plan.free,
        Some(false)
    );
}

#[test]
fn a_plan_that_moves_to_another_offering_is_another_item() {
    let mut known = known([
        service("s", [plan("p"), plan("q")]),
        service("t", [plan("r")]),
    ]);
    let moved = [
        service("s", [plan("q")]),
        service("t", [plan("r"), plan("p")]),
    ];
    let plan = sync(&mut known, moved);
    assert_eq!(changes(&plan), ["removed s/p", "added t/p"]);
}

#[test]
fn a_name_that_a_removed_item_had_can_be_used_again() {
    let mut known = known([service("s", [plan("p")])]);
    let successor = with(service("t", [plan("q")]), "name", "s");
    let first = sync(&mut known, [successor.clone()]);
    assert_eq!(
        changes(&first),
        ["removed s", "added t", "removed s/p", "added t/q"]
    );
    // The first one returns, but the name has an owner now.
    let plan = plan_sync(
        &known,
        vec![service("s", [plan("p")]), successor],
        moment(2),
        &used,
    );
    assert_eq!(
        faults(&plan),
        [
            "services[0].name (`s`) must be unique, but another offering has the same name; \
             it is not offered"
        ]
    );
    assert!(plan.is_settled());
}

#[test]
fn an_item_with_defaults_equals_itself_after_it_was_stored() {
    let full = json!({
        "id": "s", "name": "s", "description": "d", "bindable": true, "tags": ["a"],
        "requires": ["syslog_drain"], "instances_retrievable": true, "bindings_retrievable": false,
        "allow_context_updates": true, "plan_updateable": true, "metadata": {"a": 1.5},
        "plans": [{
            "id": "p", "name": "p", "description": "d", "free": false, "bindable": false,
            "binding_rotatable": true, "plan_updateable": false, "metadata": {},
            "maximum_polling_duration": 60,
            "maintenance_info": {"version": "1.2.3", "description": "d"},
            "schemas": {"service_instance": {"create": {"parameters": {
                "$schema": "http://json-schema.org/draft-04/schema#"
            }}}},
        }],
    });
    let known = known([full.clone()]);
    let services = known.services().values().map(stored);
    let plans = known.plans().values().map(stored);
    let read = KnownCatalog::new(services, plans);
    assert!(plan_sync(&read, vec![full], moment(2), &unused).is_settled());
}

/// An item after it was written and read.
fn stored<T: serde::Serialize + serde::de::DeserializeOwned>(item: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(item).unwrap()).unwrap()
}
