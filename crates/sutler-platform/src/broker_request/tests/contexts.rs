//! Contexts and namespaces. P-030 to P-033, P-070, P-106.

use super::fixtures::{annotations, context, namespace, text, to_json};
use crate::broker_request::{
    ANNOTATIONS_BYTES_MAX, Annotations, AnnotationsTooLargeError, Namespace, NamespaceContext,
    NamespaceProfileError, Profile,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Holds: P-032.
#[test]
fn kubernetes_brokers_get_the_namespace_and_the_cluster() {
    let namespace = namespace();
    let of = context(Profile::Kubernetes, &namespace);
    let instance = of.of_instance(&text("db"), &annotations(&[("example.org/tier", "gold")]));
    assert_eq!(
        to_json(&instance),
        json!({
            "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1", "instance_name": "db",
            "namespace_annotations": {"example.org/unit": "namespace"},
            "instance_annotations": {"example.org/tier": "gold"},
        })
    );
    assert_eq!(
        to_json(&of.of_binding()),
        json!({
            "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1",
            "namespace_annotations": {"example.org/unit": "namespace"},
        })
    );
}

/// Holds: P-031.
#[test]
fn cloud_foundry_brokers_get_the_organization_and_the_space() {
    let namespace = namespace();
    let of = context(Profile::CloudFoundry, &namespace);
    let instance = of.of_instance(&text("db"), &annotations(&[("example.org/tier", "gold")]));
    assert_eq!(
        to_json(&instance),
        json!({
            "platform": "cloudfoundry",
            "organization_guid": "org-guid", "organization_name": "org-name",
            "space_guid": "space-guid", "space_name": "space-name", "instance_name": "db",
            "organization_annotations": {"example.org/unit": "org"},
            "space_annotations": {"example.org/unit": "space"},
            "instance_annotations": {"example.org/tier": "gold"},
        })
    );
    assert_eq!(
        to_json(&of.of_binding()),
        json!({
            "platform": "cloudfoundry",
            "organization_guid": "org-guid", "organization_name": "org-name",
            "space_guid": "space-guid", "space_name": "space-name",
            "organization_annotations": {"example.org/unit": "org"},
            "space_annotations": {"example.org/unit": "space"},
        })
    );
}

#[test]
fn brokers_with_the_own_profile_get_the_namespace_and_its_uid() {
    let namespace = namespace();
    let of = context(Profile::Sutler, &namespace);
    let instance = of.of_instance(&text("db"), &annotations(&[("example.org/tier", "gold")]));
    assert_eq!(
        to_json(&instance),
        json!({
            "platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid", "instance_name": "db",
        })
    );
    assert_eq!(
        to_json(&of.of_binding()),
        json!({"platform": "sutler", "namespace": "shop", "namespace_uid": "namespace-uid"})
    );
}

#[test]
fn annotations_are_left_out_where_there_are_none() {
    let mut namespace = namespace();
    namespace.annotations = Annotations::default();
    let context =
        context(Profile::Kubernetes, &namespace).of_instance(&text("db"), &BTreeMap::new());
    assert_eq!(
        to_json(&context),
        json!({
            "platform": "kubernetes", "namespace": "shop", "clusterid": "cluster-1", "instance_name": "db",
        })
    );
}

/// Holds: P-030, P-031, P-032.
#[test]
fn every_string_of_every_context_is_there_and_not_empty() {
    let namespace = namespace();
    for (profile, demanded) in [
        (
            Profile::Kubernetes,
            vec!["platform", "namespace", "clusterid"],
        ),
        (
            Profile::CloudFoundry,
            vec![
                "platform",
                "organization_guid",
                "organization_name",
                "space_guid",
                "space_name",
            ],
        ),
        (
            Profile::Sutler,
            vec!["platform", "namespace", "namespace_uid"],
        ),
    ] {
        let of = context(profile, &namespace);
        let bind = to_json(&of.of_binding());
        let instance = to_json(&of.of_instance(&text("db"), &BTreeMap::new()));
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        for field in demanded {
            assert!(is_text(&bind[field]), "{field} of a bind by {profile:?}");
            assert!(
                is_text(&instance[field]),
                "{field} of an instance by {profile:?}"
            );
        }
        assert!(is_text(&instance["instance_name"]), "{profile:?}");
        assert_eq!(bind.get("instance_name"), None, "{profile:?}");
        for guid in [of.organization_guid(), of.space_guid(), of.app_guid()] {
            assert!(!guid.as_str().is_empty(), "{profile:?}");
        }
    }
}

#[test]
fn platforms_without_organizations_name_the_cluster_and_the_namespace() {
    let namespace = namespace();
    let guids = |profile| {
        let context = context(profile, &namespace);
        (
            context.organization_guid().as_str(),
            context.space_guid().as_str(),
        )
    };
    assert_eq!(guids(Profile::Kubernetes), ("cluster-1", "namespace-uid"));
    assert_eq!(guids(Profile::Sutler), ("cluster-1", "namespace-uid"));
    assert_eq!(guids(Profile::CloudFoundry), ("org-guid", "space-guid"));
}

#[test]
fn a_namespace_without_an_organization_has_no_cloud_foundry_context() {
    let mut namespace = namespace();
    namespace.cloud_foundry = None;
    let refused = NamespaceContext::new(Profile::CloudFoundry, &namespace);
    let error = NamespaceProfileError::NoCloudFoundryLocation {
        namespace: text("shop"),
    };
    assert_eq!(refused, Err(error.clone()));
    assert_eq!(
        error.to_string(),
        "the namespace shop has no organization and space, which brokers with the profile cloudfoundry need: set both"
    );
    for profile in [Profile::Kubernetes, Profile::Sutler] {
        assert!(NamespaceContext::new(profile, &namespace).is_ok());
    }
}

#[test]
fn a_stored_namespace_is_read_with_its_checks() {
    let stored = to_json(&namespace());
    assert_eq!(
        serde_json::from_value::<Namespace>(stored.clone()).unwrap(),
        namespace()
    );
    for pointer in ["/name", "/uid", "/cluster_id", "/cloud_foundry/space/guid"] {
        let mut broken = stored.clone();
        *broken.pointer_mut(pointer).unwrap() = json!("");
        assert!(
            serde_json::from_value::<Namespace>(broken).is_err(),
            "{pointer}"
        );
    }
    assert_eq!(to_json(&Profile::CloudFoundry), json!("cloudfoundry"));
}

#[test]
fn annotations_are_bounded() {
    let of_size = |bytes: usize| annotations(&[("k", &"v".repeat(bytes - 1))]);
    assert!(Annotations::try_from(of_size(ANNOTATIONS_BYTES_MAX)).is_ok());
    assert_eq!(
        Annotations::try_from(of_size(ANNOTATIONS_BYTES_MAX + 1)),
        Err(AnnotationsTooLargeError)
    );
}
