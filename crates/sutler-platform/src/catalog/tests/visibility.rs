//! Who sees what: scope, restrictions, access rules, removed items and private plans.

use super::{known, plan, plan_key, service, sync};
use crate::catalog::{
    AccessRules, Audience, BrokerScope, CatalogRestrictions, CatalogView, KnownCatalog,
    NamespaceFacts, NamespaceSelector, OfferedPlan, OfferedService, PlanKey, PlanLookup,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What decides about a broker, with its catalog.
struct Broker {
    scope: BrokerScope,
    restrictions: CatalogRestrictions,
    access: AccessRules,
    catalog: KnownCatalog,
}

impl Broker {
    /// A broker that everyone sees, with the plans `s/p`, `s/q` and `t/r`.
    fn new() -> Self {
        Self {
            scope: BrokerScope::AllNamespaces,
            restrictions: CatalogRestrictions::default(),
            access: AccessRules::default(),
            catalog: known(catalog()),
        }
    }

    fn with_access(rules: Value) -> Self {
        let access = serde_json::from_value(rules).unwrap();
        Self {
            access,
            ..Self::new()
        }
    }

    fn view(&self) -> CatalogView<'_> {
        CatalogView {
            scope: &self.scope,
            restrictions: &self.restrictions,
            access: &self.access,
            catalog: &self.catalog,
        }
    }

    /// The plans that a namespace may provision.
    fn offered(&self, namespace: &str, labels: &[(&str, &str)]) -> Vec<String> {
        let labels = map(labels);
        let namespace = NamespaceFacts {
            name: namespace,
            labels: &labels,
        };
        self.view().offered_plans(namespace).map(name).collect()
    }

    /// The plans that are shown to a namespace that uses one of them.
    fn shown(&self, namespace: &str, used: &str) -> Vec<String> {
        let labels = BTreeMap::new();
        let namespace = NamespaceFacts {
            name: namespace,
            labels: &labels,
        };
        let uses = |key: &PlanKey| key.plan_id.as_str() == used;
        self.view()
            .shown_plans(namespace, &uses)
            .map(name)
            .collect()
    }

    /// What a namespace finds under the ids of a plan.
    fn find(&self, namespace: &str, key: &PlanKey) -> &'static str {
        let labels = BTreeMap::new();
        let namespace = NamespaceFacts {
            name: namespace,
            labels: &labels,
        };
        match self.view().find(namespace, key) {
            PlanLookup::NotFound => "not found",
            PlanLookup::Removed { .. } => "removed",
            PlanLookup::Offered { .. } => "offered",
        }
    }
}

fn catalog() -> [Value; 2] {
    [
        service("s", [plan("p"), plan("q")]),
        service("t", [plan("r")]),
    ]
}

fn name((_, plan): (&OfferedService, &OfferedPlan)) -> String {
    plan.name().to_owned()
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn a_broker_without_rules_is_seen_by_all() {
    let broker = Broker::new();
    assert_eq!(broker.offered("any", &[]), ["p", "q", "r"]);
    assert_eq!(broker.find("any", &plan_key("s", "p")), "offered");
    assert_eq!(broker.find("any", &plan_key("s", "r")), "not found");
    assert_eq!(broker.find("any", &plan_key("x", "p")), "not found");
}

#[test]
fn a_broker_of_a_namespace_is_seen_there_only() {
    let scope = BrokerScope::Namespace("mine".to_owned());
    let broker = Broker {
        scope,
        ..Broker::new()
    };
    assert_eq!(broker.offered("mine", &[]), ["p", "q", "r"]);
    assert_eq!(broker.offered("other", &[]), Vec::<String>::new());
    assert_eq!(broker.find("other", &plan_key("s", "p")), "not found");
}

#[test]
fn restricted_plans_and_plans_of_restricted_offerings_are_not_seen() {
    let restricted = |texts: Value| Broker {
        restrictions: serde_json::from_value(texts).unwrap(),
        ..Broker::new()
    };
    let broker = restricted(json!({"serviceClass": ["spec.externalName!=t"]}));
    assert_eq!(broker.offered("any", &[]), ["p", "q"]);
    assert_eq!(broker.find("any", &plan_key("t", "r")), "not found");
    let broker = restricted(json!({"servicePlan": ["spec.externalName in (p,r)"]}));
    assert_eq!(broker.offered("any", &[]), ["p", "r"]);
}

#[test]
fn a_rule_for_a_plan_replaces_that_of_its_offering_and_that_of_the_broker() {
    let broker = Broker::with_access(json!({
        "default": "none",
        "services": {"s": {
            "allPlans": {"namespaces": ["a", "b"]},
            "plans": {"q": {"namespaces": ["c"]}},
        }},
    }));
    assert_eq!(broker.offered("a", &[]), ["p"]);
    assert_eq!(broker.offered("b", &[]), ["p"]);
    assert_eq!(broker.offered("c", &[]), ["q"]);
    assert_eq!(broker.offered("d", &[]), Vec::<String>::new());
    let broker = Broker::with_access(json!({"services": {"s": {"plans": {"q": "none"}}}}));
    assert_eq!(broker.offered("a", &[]), ["p", "r"]);
}

#[test]
fn a_rule_with_labels_needs_all_of_them() {
    let rule = json!({"namespacesWithLabels": {"team": "x", "env": "prod"}});
    let broker = Broker::with_access(json!({"services": {"s": {"allPlans": rule}}}));
    assert_eq!(
        broker.offered("n", &[("team", "x"), ("env", "prod"), ("more", "")]),
        ["p", "q", "r"]
    );
    assert_eq!(broker.offered("n", &[("team", "x")]), ["r"]);
    assert_eq!(
        broker.offered("n", &[("team", "x"), ("env", "test")]),
        ["r"]
    );
}

#[test]
fn a_rule_without_labels_is_not_read() {
    assert!(NamespaceSelector::try_from(BTreeMap::new()).is_err());
    let rule = json!({"namespacesWithLabels": {}});
    let error = serde_json::from_value::<Audience>(rule).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("must name at least one label"),
        "{error}"
    );
}

#[test]
fn access_rules_survive_a_round_trip() {
    let rules = json!({
        "default": "everyone",
        "services": {"s": {
            "allPlans": {"namespacesWithLabels": {"team": "x"}},
            "plans": {"p": "none", "q": {"namespaces": ["a"]}},
        }},
    });
    let read: AccessRules = serde_json::from_value(rules.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), rules);
}

/// A private plan looks like one that does not exist.
#[test]
fn a_private_plan_is_not_found_where_it_is_hidden() {
    let broker = Broker::with_access(json!({"services": {"s": {"plans": {
        "p": {"namespaces": ["a"]}
    }}}}));
    assert_eq!(broker.find("a", &plan_key("s", "p")), "offered");
    assert_eq!(broker.find("b", &plan_key("s", "p")), "not found");
}

#[test]
fn a_removed_plan_is_shown_only_to_those_who_use_it() {
    let mut broker = Broker::new();
    sync(&mut broker.catalog, [service("s", [plan("q")])]);
    assert_eq!(broker.offered("any", &[]), ["q"]);
    assert_eq!(broker.find("any", &plan_key("s", "p")), "removed");
    assert_eq!(broker.find("any", &plan_key("t", "r")), "removed");
    assert_eq!(broker.shown("any", "none"), ["q"]);
    assert_eq!(broker.shown("any", "p"), ["p", "q"]);
    assert_eq!(broker.shown("any", "r"), ["q", "r"]);
}

/// A sync that ended between its writes: the offering is marked, and its plans are not yet.
#[test]
fn a_plan_of_a_removed_offering_is_removed_even_without_a_mark() {
    let mut broker = Broker::new();
    let plans: Vec<OfferedPlan> = broker.catalog.plans().values().cloned().collect();
    sync(&mut broker.catalog, [service("t", [plan("r")])]);
    let services: Vec<OfferedService> = broker.catalog.services().values().cloned().collect();
    broker.catalog = KnownCatalog::new(services, plans);
    assert_eq!(broker.offered("any", &[]), ["r"]);
    assert_eq!(broker.shown("any", "q"), ["q", "r"]);
    assert_eq!(broker.find("any", &plan_key("s", "p")), "removed");
}

#[test]
fn a_removed_plan_is_not_found_where_it_was_never_seen() {
    let mut broker = Broker::with_access(json!({"default": {"namespaces": ["a"]}}));
    sync(&mut broker.catalog, []);
    assert_eq!(broker.find("a", &plan_key("s", "p")), "removed");
    assert_eq!(broker.find("b", &plan_key("s", "p")), "not found");
}

#[test]
fn a_plan_that_is_hidden_later_is_still_shown_to_those_who_use_it() {
    let broker = Broker::with_access(json!({"default": "none"}));
    assert_eq!(broker.shown("any", "p"), ["p"]);
    assert_eq!(broker.find("any", &plan_key("s", "p")), "not found");
}

#[test]
fn a_plan_that_returns_is_offered_again() {
    let mut broker = Broker::new();
    sync(&mut broker.catalog, []);
    sync(&mut broker.catalog, catalog());
    assert_eq!(broker.offered("any", &[]), ["p", "q", "r"]);
}
