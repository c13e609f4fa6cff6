//! Bodies of updates. P-033, P-090 to P-093, D-14.

use super::fixtures::{
    Instance, annotations, context, instance, namespace, pinned_plan, plan, service, to_json,
};
use crate::broker_request::{
    ContextUpdates, Namespace, Profile, ResentField, UpdateKind, UpdateOutcome, UpdateParameters,
    UpdateRequest, update_body,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An update between two instances, with everything at its default.
struct Update {
    before: Instance,
    after: Instance,
    kind: UpdateKind,
    context_updates: ContextUpdates,
    update_parameters: UpdateParameters,
    resent: BTreeSet<ResentField>,
    profile: Profile,
    namespace: Namespace,
}

fn update(before: Instance, after: Instance) -> Update {
    Update {
        before,
        after,
        kind: UpdateKind::Change,
        context_updates: ContextUpdates::NotAllowed,
        update_parameters: UpdateParameters::ChangedOnly,
        resent: BTreeSet::new(),
        profile: Profile::Sutler,
        namespace: namespace(),
    }
}

impl Update {
    fn outcome(&self) -> UpdateOutcome {
        update_body(&UpdateRequest {
            service_id: &service(),
            context_updates: self.context_updates,
            update_parameters: self.update_parameters,
            kind: self.kind,
            before: self.before.values(),
            after: self.after.values(),
            resent: &self.resent,
            namespace: context(self.profile, &self.namespace),
        })
    }

    fn body(&self) -> Value {
        match self.outcome() {
            UpdateOutcome::Send(body) => to_json(&body),
            UpdateOutcome::NothingToDo => panic!("there is nothing to do"),
        }
    }

    fn parameters(&self) -> Option<Value> {
        self.body().get("parameters").cloned()
    }
}

fn own_context(name: &str) -> Value {
    json!({"platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid", "instance_name": name})
}

/// Holds: P-092.
#[test]
fn an_update_sends_changed_keys_whole_and_removed_ones_as_null() {
    let before = instance().with_parameters(json!({
        "disk": 10, "backup": {"hour": 1, "keep": 7}, "region": "eu", "log": true,
    }));
    let after = instance().with_parameters(json!({
        "disk": 50, "backup": {"hour": 2, "keep": 7}, "region": "eu", "tier": "gold",
    }));
    assert_eq!(
        update(before, after).body(),
        json!({
            "service_id": "service-1",
            "context": own_context("db"),
            "parameters": {"disk": 50, "backup": {"hour": 2, "keep": 7}, "log": null, "tier": "gold"},
            "previous_values": {"plan_id": "small"},
        })
    );
}

#[test]
fn an_update_of_a_broker_that_replaces_sends_all_parameters_if_one_changes() {
    let before = instance().with_parameters(json!({"disk": 10, "region": "eu", "log": true}));
    let after = instance().with_parameters(json!({"disk": 50, "region": "eu"}));
    let mut update = update(before, after);
    update.update_parameters = UpdateParameters::Whole;
    assert_eq!(
        update.parameters(),
        Some(json!({"disk": 50, "region": "eu"}))
    );
    update.after.parameters.clear();
    assert_eq!(update.parameters(), Some(json!({})));
    update.after = update.before.clone();
    update.after.plan = plan("large");
    assert_eq!(update.parameters(), None);
}

/// Holds: P-093.
#[test]
fn a_plan_change_on_kubernetes_names_the_plan_and_the_version_before() {
    let mut before = instance().with_parameters(json!({"disk": 10}));
    before.version = Some("1.0.0");
    let mut after = before.clone();
    after.plan = plan("large");
    after.version = Some("2.0.0");
    let mut update = update(before, after);
    update.profile = Profile::Kubernetes;
    assert_eq!(
        update.body(),
        json!({
            "service_id": "service-1", "plan_id": "large",
            "context": {
                "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1", "instance_name": "db",
                "namespace_annotations": {"example.org/unit": "namespace"},
            },
            "previous_values": {"plan_id": "small", "maintenance_info": {"version": "1.0.0"}},
            "maintenance_info": {"version": "2.0.0"},
        })
    );
}

/// Holds: P-033, P-093.
#[test]
fn an_upgrade_on_cloud_foundry_has_no_organization_in_previous_values() {
    let mut before = instance();
    before.version = Some("1.0.0");
    let mut after = before.clone();
    after.version = Some("1.1.0");
    let mut update = update(before, after);
    update.profile = Profile::CloudFoundry;
    assert_eq!(
        update.body(),
        json!({
            "service_id": "service-1",
            "context": {
                "platform": "cloudfoundry", "instance_name": "db",
                "organization_guid": "org-guid", "organization_name": "org-name",
                "space_guid": "space-guid", "space_name": "space-name",
                "organization_annotations": {"example.org/unit": "org"},
                "space_annotations": {"example.org/unit": "space"},
            },
            "previous_values": {"plan_id": "small", "maintenance_info": {"version": "1.0.0"}},
            "maintenance_info": {"version": "1.1.0"},
        })
    );
}

#[test]
fn an_update_that_changes_nothing_is_not_sent() {
    for context_updates in [ContextUpdates::Allowed, ContextUpdates::NotAllowed] {
        for update_parameters in [UpdateParameters::ChangedOnly, UpdateParameters::Whole] {
            let there = instance().with_parameters(json!({"disk": 10}));
            let mut update = update(there.clone(), there);
            update.context_updates = context_updates;
            update.update_parameters = update_parameters;
            assert_eq!(update.outcome(), UpdateOutcome::NothingToDo);
        }
    }
}

#[test]
fn a_maintenance_version_that_is_gone_is_no_change() {
    let mut before = instance();
    before.version = Some("1.0.0");
    assert_eq!(
        update(before, instance()).outcome(),
        UpdateOutcome::NothingToDo
    );
}

#[test]
fn a_new_name_is_sent_alone_only_where_the_offering_allows_it() {
    let mut update = update(instance(), instance().named("new"));
    assert_eq!(update.outcome(), UpdateOutcome::NothingToDo);
    update.context_updates = ContextUpdates::Allowed;
    assert_eq!(
        update.body(),
        json!({
            "service_id": "service-1",
            "context": own_context("new"),
            "previous_values": {"plan_id": "small"},
        })
    );
}

#[test]
fn new_annotations_are_sent_alone_only_to_brokers_that_see_them() {
    let mut after = instance();
    after.annotations = annotations(&[("example.org/tier", "gold")]);
    let mut update = update(instance(), after);
    update.context_updates = ContextUpdates::Allowed;
    assert_eq!(update.outcome(), UpdateOutcome::NothingToDo);
    update.profile = Profile::Kubernetes;
    let context = &update.body()["context"];
    assert_eq!(
        context["instance_annotations"],
        json!({"example.org/tier": "gold"})
    );
}

#[test]
fn another_change_carries_the_new_name_to_every_broker() {
    let after = instance().named("new").with_parameters(json!({"disk": 10}));
    let body = update(instance(), after).body();
    assert_eq!(body["context"], own_context("new"));
    assert_eq!(body["parameters"], json!({"disk": 10}));
}

#[test]
fn a_touch_is_sent_though_it_is_empty() {
    let mut update = update(instance(), instance());
    update.kind = UpdateKind::Touch;
    assert_eq!(
        update.body(),
        json!({"service_id": "service-1", "previous_values": {"plan_id": "small"}})
    );
    update.context_updates = ContextUpdates::Allowed;
    assert_eq!(
        update.body(),
        json!({
            "service_id": "service-1",
            "context": own_context("db"),
            "previous_values": {"plan_id": "small"},
        })
    );
}

/// P-091: the body without a context counts for brokers as an update without changes, not as one of the context.
/// Holds: P-091.
#[test]
fn no_update_is_context_only_where_the_offering_does_not_allow_it() {
    for kind in [UpdateKind::Change, UpdateKind::Touch] {
        for after in [instance(), instance().named("new")] {
            let mut update = update(instance(), after);
            update.kind = kind;
            if let UpdateOutcome::Send(body) = update.outcome() {
                assert!(!body.is_context_only());
            }
        }
    }
}

#[test]
fn an_update_in_doubt_also_sends_what_the_doubtful_intent_touched() {
    let before = instance().with_parameters(json!({"disk": 10, "region": "eu"}));
    let after = instance().with_parameters(json!({"disk": 10, "region": "us"}));
    let mut update = update(before, after);
    update.resent = ["disk", "log"]
        .map(|key| ResentField::Parameter(key.to_owned()))
        .into();
    assert_eq!(
        update.parameters(),
        Some(json!({"disk": 10, "region": "us", "log": null}))
    );
    update.resent.insert(ResentField::Plan);
    update.resent.insert(ResentField::MaintenanceVersion);
    assert_eq!(update.body()["plan_id"], json!("small"));
    assert_eq!(update.body().get("maintenance_info"), None);
    update.before.version = Some("1.0.0");
    update.after.version = Some("1.0.0");
    assert_eq!(
        update.body()["maintenance_info"],
        json!({"version": "1.0.0"})
    );
}

#[test]
fn an_update_in_doubt_is_sent_even_if_the_confirmed_state_is_what_is_wanted() {
    let there = instance().with_parameters(json!({"disk": 10}));
    let mut update = update(there.clone(), there);
    update.resent = BTreeSet::from([ResentField::Parameter("disk".to_owned())]);
    assert_eq!(update.parameters(), Some(json!({"disk": 10})));
}

#[test]
fn the_offering_says_whether_the_context_can_be_sent_alone() {
    assert_eq!(
        ContextUpdates::of(&pinned_plan(true)),
        ContextUpdates::Allowed
    );
    assert_eq!(
        ContextUpdates::of(&pinned_plan(false)),
        ContextUpdates::NotAllowed
    );
}

#[test]
fn the_debug_form_of_a_body_hides_the_parameters() {
    let after = instance().with_parameters(json!({"password": "hunter2"}));
    let shown = format!("{:?}", update(instance(), after).outcome());
    assert!(!shown.contains("hunter2"), "{shown}");
}
