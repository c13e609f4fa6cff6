//! Plans, permissions, maintenance versions and contexts that do not fit.

use super::{TestPlan, check, check_provision, check_update, parameters, rules};
use crate::preflight::{
    BindCheck, ContextChange, PreflightFacts, PreflightRequest, ProvisionCheck,
    RequestedParameters, RequestedPlan, UpdateCheck, preflight,
};
use serde_json::{Map, json};
use sutler_osb::Requires;

/// Holds: P-070.
#[test]
fn a_plan_that_is_unknown_or_hidden_is_not_provisioned() {
    let plan = RequestedPlan::NotFound {
        service: "db",
        plan: "tiny\n",
    };
    let violations = check_provision(plan, json!({}));
    assert_eq!(rules(&violations), [("P-070", "/plan")]);
    assert_eq!(
        violations[0].sentence,
        "there is no plan `tiny ` of `db` in this namespace; choose one of its marketplace"
    );
}

/// Holds: P-070.
#[test]
fn a_removed_plan_is_not_provisioned() {
    let plan = TestPlan::plain();
    let violations = check_provision(RequestedPlan::Removed(&plan.pinned), json!({}));
    assert_eq!(rules(&violations), [("P-070", "/plan")]);
    assert_eq!(
        violations[0].sentence,
        "the plan `small` of `db` is not offered any more, so no instance can be made of it; \
         choose another plan"
    );
}

/// Holds: P-070.
#[test]
fn an_instance_is_not_moved_to_a_removed_or_unknown_plan() {
    let (plan, other) = (
        TestPlan::plain(),
        TestPlan::new(json!({}), json!({"id": "q"})),
    );
    let removed = RequestedPlan::Removed(&other.pinned);
    let not_found = RequestedPlan::NotFound {
        service: "db",
        plan: "q",
    };
    for named in [removed, not_found] {
        let update = UpdateCheck {
            plan: Some(named),
            ..plan.update()
        };
        assert_eq!(rules(&check_update(update)), [("P-070", "/plan")]);
    }
}

#[test]
fn an_instance_of_a_removed_plan_is_updated_and_bound() {
    let plan = TestPlan::plain();
    let changed = parameters(json!({"update": 1}));
    let update = UpdateCheck {
        plan: Some(RequestedPlan::Removed(&plan.pinned)),
        parameters: Some(RequestedParameters::Inline(&changed)),
        ..plan.update()
    };
    assert_eq!(check_update(update), []);
}

/// Holds: P-070.
#[test]
fn a_plan_of_another_offering_is_refused() {
    let plan = TestPlan::plain();
    let other = TestPlan::new(json!({"id": "t", "name": "queue"}), json!({}));
    let update = UpdateCheck {
        plan: Some(other.offered()),
        ..plan.update()
    };
    let violations = check_update(update);
    assert_eq!(rules(&violations), [("P-070", "/plan")]);
    assert_eq!(
        violations[0].sentence,
        "the plan `small` of `queue` belongs to another offering; \
         the instance can only have a plan of `db`"
    );
}

/// Holds: P-090.
#[test]
fn a_plan_that_is_not_updateable_is_not_left() {
    let other = TestPlan::new(json!({}), json!({"id": "q"}));
    let of_offering = TestPlan::new(json!({"plan_updateable": false}), json!({}));
    let of_plan = TestPlan::new(json!({}), json!({"plan_updateable": false}));
    for plan in [&of_offering, &of_plan] {
        let update = UpdateCheck {
            plan: Some(other.offered()),
            ..plan.update()
        };
        assert_eq!(rules(&check_update(update)), [("P-090", "/plan")]);
        // Naming the same plan is no change.
        let update = UpdateCheck {
            plan: Some(plan.offered()),
            ..plan.update()
        };
        assert_eq!(check_update(update), []);
    }
    let overridden = TestPlan::new(
        json!({"plan_updateable": false}),
        json!({"plan_updateable": true}),
    );
    let update = UpdateCheck {
        plan: Some(other.offered()),
        ..overridden.update()
    };
    assert_eq!(check_update(update), []);
}

/// Holds: P-090.
#[test]
fn parameters_and_maintenance_of_a_plan_that_is_not_updateable_are_updated() {
    let fields = json!({"plan_updateable": false, "maintenance_info": {"version": "2.0.0"}});
    let plan = TestPlan::new(json!({}), fields);
    let changed = parameters(json!({"update": 1}));
    let update = UpdateCheck {
        maintenance_version: Some("2.0.0"),
        parameters: Some(RequestedParameters::Inline(&changed)),
        ..plan.update()
    };
    assert_eq!(check_update(update), []);
}

/// Holds: P-091.
#[test]
fn the_context_alone_is_updated_only_where_that_is_allowed() {
    let fields = json!({"maintenance_info": {"version": "1.0.0"}});
    let plan = TestPlan::new(json!({"allow_context_updates": false}), fields);
    let renamed = UpdateCheck {
        context: ContextChange::Changed,
        ..plan.update()
    };
    let violations = check_update(renamed);
    assert_eq!(rules(&violations), [("P-091", "/name")]);
    assert!(
        violations[0]
            .sentence
            .starts_with("the offering `db` takes no update that changes")
    );

    let changed = parameters(json!({}));
    let parameters = Some(RequestedParameters::Inline(&changed));
    assert_eq!(
        check_update(UpdateCheck {
            parameters,
            ..renamed
        }),
        []
    );
    let maintenance_version = Some("1.0.0");
    assert_eq!(
        check_update(UpdateCheck {
            maintenance_version,
            ..renamed
        }),
        []
    );
    let other = TestPlan::new(json!({}), json!({"id": "q"}));
    assert_eq!(
        check_update(UpdateCheck {
            plan: Some(other.offered()),
            ..renamed
        }),
        []
    );
    assert_eq!(
        check_update(UpdateCheck {
            context: ContextChange::Unchanged,
            ..renamed
        }),
        []
    );
}

/// Holds: P-071.
#[test]
fn the_maintenance_version_is_the_one_of_the_plan_that_the_instance_will_have() {
    let plan = TestPlan::plain();
    let newer = TestPlan::new(
        json!({}),
        json!({"id": "q", "name": "large", "maintenance_info": {"version": "2.0.0"}}),
    );
    let update = |version| UpdateCheck {
        plan: Some(newer.offered()),
        maintenance_version: Some(version),
        ..plan.update()
    };
    assert_eq!(check_update(update("2.0.0")), []);
    let violations = check_update(update("1.0.0"));
    assert_eq!(rules(&violations), [("P-071", "/maintenanceVersion")]);
    assert_eq!(
        violations[0].sentence,
        "the maintenance version of the plan `large` of `db` is `2.0.0`, not `1.0.0`; \
         name that one, or none"
    );
    let violations = check(PreflightRequest::Provision(ProvisionCheck {
        plan: plan.offered(),
        maintenance_version: Some("1.0.0"),
        parameters: RequestedParameters::WithSecrets,
    }));
    assert_eq!(rules(&violations), [("P-071", "/maintenanceVersion")]);
    assert_eq!(
        violations[0].sentence,
        "the plan `small` of `db` has no maintenance version; name none"
    );
}

/// Holds: P-103.
#[test]
fn an_offering_gets_only_the_permissions_that_are_allowed() {
    let fields = json!({"requires": ["volume_mount", "syslog_drain"]});
    let plan = TestPlan::new(fields, json!({}));
    let none = Map::new();
    let parameters = RequestedParameters::Inline(&none);
    let provision = PreflightRequest::Provision(ProvisionCheck {
        plan: plan.offered(),
        maintenance_version: None,
        parameters,
    });
    let bind = PreflightRequest::Bind(BindCheck {
        plan: plan.facts(),
        parameters,
    });
    let allowed = [Requires::SyslogDrain];
    let facts = PreflightFacts {
        allowed_permissions: &allowed,
    };
    let violations = preflight(&provision, &facts);
    assert_eq!(rules(&violations), [("P-103", "/plan")]);
    assert_eq!(
        violations[0].sentence,
        "the offering `db` requires `volume_mount`, which its broker is not allowed to use here; \
         ask an operator to allow it"
    );
    assert_eq!(rules(&preflight(&bind, &facts)), [("P-103", "/instance")]);
    let allowed = [Requires::SyslogDrain, Requires::VolumeMount];
    assert_eq!(
        preflight(
            &provision,
            &PreflightFacts {
                allowed_permissions: &allowed
            }
        ),
        []
    );
}
