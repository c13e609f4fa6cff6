//! Catalogs that are too large: what is beyond a bound is left out and reported, and everything else is offered.

use super::{changes, faults, items, known, moment, plan, service, sync, unused, with};
use crate::catalog::{ITEM_BYTES_MAX, KnownCatalog, PLANS_MAX, SERVICES_MAX, plan_sync};
use serde_json::{Value, json};

fn services(ids: impl Iterator<Item = usize>) -> Vec<Value> {
    ids.map(|nth| service(&format!("s{nth:05}"), [plan(&format!("p{nth}"))]))
        .collect()
}

#[test]
fn an_offering_beyond_the_limit_is_reported_and_not_offered() {
    let mut known = KnownCatalog::default();
    let plan = sync(&mut known, services(0..SERVICES_MAX + 2));
    assert_eq!(known.services().len(), SERVICES_MAX);
    assert_eq!(
        faults(&plan),
        [
            "services[1000] is beyond the 1000 offerings that are read; 2 are left out; \
             it is not offered"
        ]
    );
}

#[test]
fn offerings_do_not_become_more_when_a_broker_sends_them_in_another_order() {
    let mut known = KnownCatalog::default();
    sync(&mut known, services(0..SERVICES_MAX + 10));
    let before = known.clone();
    let plan = sync(&mut known, services((0..SERVICES_MAX + 10).rev()));
    assert!(plan.is_settled());
    assert_eq!(known, before);
    let refused = &plan.faults.listed[0];
    assert_eq!(refused.path, "services[0]");
    assert!(
        refused.reason.starts_with("is one too many"),
        "{}",
        refused.reason
    );
}

#[test]
fn a_plan_beyond_the_limit_is_reported_and_not_offered() {
    let plans = |service: usize| -> Vec<Value> {
        (0..PLANS_MAX / 2 + 1)
            .map(|nth| plan(&format!("{service}-{nth}")))
            .collect()
    };
    let catalog = vec![service("s", plans(1)), service("t", plans(2))];
    let mut known = KnownCatalog::default();
    let plan = sync(&mut known, catalog.clone());
    assert_eq!(known.plans().len(), PLANS_MAX);
    assert_eq!(
        faults(&plan),
        [
            "services[1].plans[4999] is beyond the 10000 plans of a catalog that are read; 2 of \
             this offering are left out; it is not offered"
        ]
    );
    let mut reversed = catalog;
    reversed.reverse();
    let before = known.clone();
    let plan = plan_sync(&known, reversed, moment(2), &unused);
    assert_eq!(changes(&plan), ["unusable s/1-4999", "unusable s/1-5000"]);
    plan.apply(&mut known);
    assert_eq!(known, before);
}

#[test]
fn an_item_that_is_too_large_or_too_deep_is_not_offered() {
    let large = |bytes: usize| json!({"x": "x".repeat(bytes)});
    let deep = (0..110).fold(json!({}), |inner, _| json!({ "x": inner }));
    let mut known = KnownCatalog::default();
    let plan = sync(
        &mut known,
        [
            with(service("a", [plan("o")]), "metadata", large(ITEM_BYTES_MAX)),
            with(service("b", [plan("p")]), "metadata", deep),
            service(
                "c",
                [
                    with(plan("q"), "metadata", large(ITEM_BYTES_MAX)),
                    plan("r"),
                ],
            ),
            with(
                service("d", [plan("s")]),
                "metadata",
                large(ITEM_BYTES_MAX - 500),
            ),
        ],
    );
    assert_eq!(items(&known), ["c", "d", "c/r", "d/s"]);
    let faults = faults(&plan);
    assert_eq!(faults.len(), 3);
    assert!(
        faults[0].contains("must not be larger than 524288 bytes"),
        "{}",
        faults[0]
    );
    assert!(
        faults[1].contains("must not be nested deeper than 100 levels"),
        "{}",
        faults[1]
    );
    assert!(faults[2].starts_with("services[2].plans[0] (`q`) must not be larger"));
}

#[test]
fn a_key_that_the_parser_reserves_is_reported() {
    let mut known = KnownCatalog::default();
    let reserved = json!({"$serde_json::private::RawValue": "1"});
    let plan = sync(
        &mut known,
        [
            with(service("a", [plan("o")]), "metadata", reserved),
            service("b", [plan("p")]),
        ],
    );
    assert_eq!(items(&known), ["b", "b/p"]);
    assert!(faults(&plan)[0].contains("which is reserved"));
}

#[test]
fn reports_are_short_however_long_the_texts_of_the_broker_are() {
    let mut known = KnownCatalog::default();
    let name = "\u{1b}[31m\u{202e}x\n".repeat(1_000);
    let catalog: Vec<Value> = (0..500)
        .map(|_| json!({"name": name, "id": 5, "metadata": name, "plans": [plan("p")]}))
        .collect();
    let plan = sync(&mut known, catalog);
    assert_eq!(known, KnownCatalog::default());
    assert_eq!(plan.faults.listed.len(), 100);
    assert_eq!(plan.faults.omitted, 400);
    for fault in &plan.faults.listed {
        let text = fault.to_string();
        assert!(text.len() < 1_000, "{text}");
        assert!(
            !text.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{text:?}"
        );
    }
}

#[test]
fn a_catalog_that_is_known_at_its_limit_can_be_replaced_at_once() {
    let mut known = known(services(0..SERVICES_MAX));
    let plan = sync(&mut known, services(SERVICES_MAX..2 * SERVICES_MAX));
    assert!(plan.faults.is_empty());
    let offered = known.services().values().filter(|it| !it.is_removed());
    assert_eq!(offered.count(), SERVICES_MAX);
}
