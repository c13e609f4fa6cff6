//! Bodies of provisions, and ids of deprovisions and polls. P-031 to P-033, P-053, P-070, P-071, P-120.

use super::fixtures::{annotations, context, instance, namespace, plan_ids, service, to_json};
use crate::broker_request::{Profile, instance_ids, provision_body};
use serde_json::json;

#[test]
fn a_provision_on_kubernetes_names_cluster_and_namespace_twice() {
    let mut instance = instance().with_parameters(json!({"disk": 10}));
    instance.version = Some("1.2.0");
    instance.annotations = annotations(&[("example.org/tier", "gold")]);
    let namespace = namespace();
    let context = context(Profile::Kubernetes, &namespace);
    let body = provision_body(&service(), &instance.values(), &context);
    assert_eq!(
        to_json(&body),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "organization_guid": "cluster-1", "space_guid": "namespace-uid",
            "context": {
                "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1", "instance_name": "db",
                "namespace_annotations": {"example.org/unit": "namespace"},
                "instance_annotations": {"example.org/tier": "gold"},
            },
            "parameters": {"disk": 10},
            "maintenance_info": {"version": "1.2.0"},
        })
    );
}

/// Holds: P-033.
#[test]
fn a_provision_on_cloud_foundry_names_organization_and_space_twice() {
    let instance = instance().with_parameters(json!({"disk": 10}));
    let namespace = namespace();
    let context = context(Profile::CloudFoundry, &namespace);
    let body = provision_body(&service(), &instance.values(), &context);
    assert_eq!(
        to_json(&body),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "organization_guid": "org-guid", "space_guid": "space-guid",
            "context": {
                "platform": "cloudfoundry", "instance_name": "db",
                "organization_guid": "org-guid", "organization_name": "org-name",
                "space_guid": "space-guid", "space_name": "space-name",
                "organization_annotations": {"example.org/unit": "org"},
                "space_annotations": {"example.org/unit": "space"},
            },
            "parameters": {"disk": 10},
        })
    );
}

#[test]
fn a_provision_by_the_own_profile_without_parameters_has_none() {
    let namespace = namespace();
    let context = context(Profile::Sutler, &namespace);
    let body = provision_body(&service(), &instance().values(), &context);
    assert_eq!(
        to_json(&body),
        json!({
            "service_id": "service-1", "plan_id": "small",
            "organization_guid": "cluster-1", "space_guid": "namespace-uid",
            "context": {
                "platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid", "instance_name": "db",
            },
        })
    );
}

/// Holds: P-053, P-120.
#[test]
fn deletes_and_polls_name_the_confirmed_plan_else_that_of_the_create() {
    let (confirmed, attempted) = (plan_ids("small"), plan_ids("large"));
    assert_eq!(instance_ids(Some(&confirmed), &attempted), confirmed);
    assert_eq!(instance_ids(None, &attempted), attempted);
}
