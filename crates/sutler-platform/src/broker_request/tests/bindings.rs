//! Bodies of binds and rotations, and ids of unbinds. P-031, P-032, P-101, P-105, P-106, P-110, P-111, P-120.

use super::fixtures::{context, namespace, object, pinned_plan, plan_ids, text, to_json};
use crate::broker_request::{BindRequest, BindTarget, Predecessor, Profile, bind_body, unbind_ids};
use serde_json::{Value, json};
use sutler_osb::BindingId;

fn body(
    profile: Profile,
    target: BindTarget<'_>,
    parameters: Value,
    predecessor: Option<Predecessor<'_>>,
) -> Value {
    let namespace = namespace();
    to_json(&bind_body(&BindRequest {
        plan: &plan_ids("small"),
        target,
        parameters: &object(parameters),
        predecessor,
        namespace: context(profile, &namespace),
    }))
}

#[test]
fn a_bind_on_kubernetes_names_neither_instance_nor_application() {
    let parameters = json!({"role": "reader"});
    assert_eq!(
        body(
            Profile::Kubernetes,
            BindTarget::Credentials,
            parameters,
            None
        ),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "context": {
                "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1",
                "namespace_annotations": {"example.org/unit": "namespace"},
            },
            "parameters": {"role": "reader"},
        })
    );
}

#[test]
fn a_bind_by_the_own_profile_without_parameters_has_none() {
    assert_eq!(
        body(Profile::Sutler, BindTarget::Credentials, json!({}), None),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "context": {"platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid"},
        })
    );
}

#[test]
fn a_broker_that_demands_an_application_gets_the_namespace() {
    let resource = |profile| {
        let body = body(profile, BindTarget::Application, json!({}), None);
        assert_eq!(body.get("app_guid"), None, "the deprecated field");
        body["bind_resource"].clone()
    };
    assert_eq!(
        resource(Profile::Kubernetes),
        json!({"app_guid": "namespace-uid"})
    );
    assert_eq!(
        resource(Profile::Sutler),
        json!({"app_guid": "namespace-uid"})
    );
    assert_eq!(
        resource(Profile::CloudFoundry),
        json!({"app_guid": "namespace-uid", "space_guid": "space-guid"})
    );
}

/// Holds: P-101.
#[test]
fn a_route_binding_on_cloud_foundry_names_the_route() {
    let route = text("shop.example.org/cart");
    assert_eq!(
        body(
            Profile::CloudFoundry,
            BindTarget::Route(&route),
            json!({}),
            None
        ),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "context": {
                "platform": "cloudfoundry",
                "organization_guid": "org-guid", "organization_name": "org-name",
                "space_guid": "space-guid", "space_name": "space-name",
                "organization_annotations": {"example.org/unit": "org"},
                "space_annotations": {"example.org/unit": "space"},
            },
            "bind_resource": {"route": "shop.example.org/cart"},
        })
    );
}

#[test]
fn a_rotation_names_its_predecessor() {
    let replaced: BindingId = "binding-1".try_into().unwrap();
    let predecessor = Predecessor::new(&pinned_plan(true), &replaced);
    assert_eq!(
        body(
            Profile::Sutler,
            BindTarget::Credentials,
            json!({}),
            predecessor
        ),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "context": {"platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid"},
            "predecessor_binding_id": "binding-1",
        })
    );
}

/// Holds: P-110.
#[test]
fn a_plan_that_does_not_rotate_bindings_never_gets_a_predecessor() {
    let replaced = "binding-1".try_into().unwrap();
    assert_eq!(Predecessor::new(&pinned_plan(false), &replaced), None);
}

/// Holds: P-120.
#[test]
fn an_unbind_names_the_plan_that_the_instance_has_now() {
    assert_eq!(unbind_ids(&plan_ids("large")), plan_ids("large"));
}

#[test]
fn the_debug_form_of_a_bind_hides_the_parameters() {
    let namespace = namespace();
    let body = bind_body(&BindRequest {
        plan: &plan_ids("small"),
        target: BindTarget::Credentials,
        parameters: &object(json!({"password": "hunter2"})),
        predecessor: None,
        namespace: context(Profile::Sutler, &namespace),
    });
    let shown = format!("{body:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
