//! Precedence of several reasons to refuse a request (D-06), as known checkers expect it.

use crate::fixture::test_catalog::{ASYNC, DB, LARGE, SMALL};
use crate::fixture::{Fixture, VERSION, on_each_store};
use serde_json::json;
use sutler_broker::Policy;
use sutler_osb::OperationKind;

/// Holds: B-010, B-124, D-06.
#[tokio::test]
async fn credentials_then_version_then_body_then_ids_then_catalog() {
    on_each_store(async |kit| {
        let worst = kit
            .provision("i")
            .bytes("{")
            .without_header("Authorization");
        let worst = worst.header(VERSION, "9.0");
        worst.clone().send().await.is(401);
        let worst = worst.header("Authorization", crate::fixture::AUTHORIZATION);
        worst.clone().send().await.is(412);
        let worst = worst.header(VERSION, "2.17");
        assert!(worst.send().await.is(400).description().contains("JSON"));
        let missing = kit
            .provision("i")
            .without("space_guid")
            .only_plan("unknown");
        assert!(
            missing
                .send()
                .await
                .is(400)
                .description()
                .contains("space_guid")
        );
        let unknown = kit.provision("i").only_plan("unknown");
        let unknown = unknown.with("maintenance_info", json!({ "version": "9.9.9" }));
        assert!(
            unknown
                .send()
                .await
                .is(400)
                .description()
                .contains("unknown")
        );
    })
    .await;
}

/// Creates an instance of a plan with a maintenance version that is always asynchronous.
async fn slow_large(kit: &Fixture) {
    for verb in OperationKind::ALL {
        kit.script.policy(verb, Policy::default().required_async());
    }
    let put = kit.provision("i").plan(LARGE).accepts_incomplete();
    assert_eq!(kit.finish("i", put).await.json["state"], "succeeded");
}

/// Holds: B-083, B-084, B-127, B-128, D-06.
#[tokio::test]
async fn a_provision_checks_identity_then_maintenance_then_mode() {
    on_each_store(async |kit| {
        slow_large(kit).await;
        let stale = json!({ "version": "9.9.9" });
        let put = kit.provision("i").plan(LARGE);
        // It exists: version and mode of the repeated request are not checked.
        put.clone().send().await.is(200);
        put.clone().with("space_guid", "other").send().await.is(409);
        let other = put
            .with("space_guid", "other")
            .with("maintenance_info", stale.clone());
        other.send().await.is(409);
        let new = kit
            .provision("j")
            .plan(LARGE)
            .with("maintenance_info", stale);
        new.send().await.refused_as("MaintenanceInfoConflict");
        kit.provision("j")
            .plan(LARGE)
            .send()
            .await
            .refused_as("AsyncRequired");
    })
    .await;
}

/// Holds: B-083, B-084, B-091, B-167, B-168, D-06.
#[tokio::test]
async fn an_update_checks_the_catalog_then_maintenance_then_mode_then_concurrency() {
    on_each_store(async |kit| {
        slow_large(kit).await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").parameters(json!({ "size": 2 }));
        patch.accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let other = kit.update("i").parameters(json!({ "size": 3 }));
        let stale = other
            .clone()
            .with("maintenance_info", json!({ "version": "9.9.9" }));
        stale.clone().only_plan("unknown").send().await.is(400);
        stale
            .clone()
            .parameters(json!({ "size": 0 }))
            .send()
            .await
            .is(400);
        stale.send().await.refused_as("MaintenanceInfoConflict");
        other.clone().send().await.refused_as("AsyncRequired");
        other
            .accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
    })
    .await;
}

/// Holds: D-06, D-12.
#[tokio::test]
async fn ids_missing_from_the_catalog_are_refused_before_an_unknown_instance() {
    on_each_store(async |kit| {
        kit.bind("none", "b")
            .service("unknown")
            .send()
            .await
            .is(400);
        kit.bind("none", "b")
            .only_plan("unknown")
            .send()
            .await
            .is(400);
        kit.bind("none", "b").send().await.is(404);
        kit.update("none").only_plan("unknown").send().await.is(400);
        kit.update("none").service("unknown").send().await.is(400);
        kit.update("none").service(DB).send().await.is(404);
    })
    .await;
}

/// Holds: B-083, B-250, B-253, B-254, D-06.
#[tokio::test]
async fn a_delete_checks_missing_ids_then_mode_then_existence() {
    on_each_store(async |kit| {
        let delete = kit.deprovision("none").plan(ASYNC);
        delete.clone().without("plan_id").send().await.is(400);
        delete.clone().without("service_id").send().await.is(400);
        delete.clone().send().await.refused_as("AsyncRequired");
        delete.clone().accepts_incomplete().send().await.is(410);
        delete.plan(SMALL).send().await.is(410);
    })
    .await;
}

/// Holds: B-083, B-084, B-091, B-186, B-188, D-06.
#[tokio::test]
async fn a_bind_checks_identity_then_the_plan_then_mode_then_concurrency() {
    on_each_store(async |kit| {
        slow_large(kit).await;
        let bind = kit.bind("i", "b").plan(LARGE);
        kit.finish_binding("i", "b", bind.clone().accepts_incomplete())
            .await;
        bind.clone().send().await.is(200);
        bind.clone()
            .parameters(json!({ "size": 9 }))
            .send()
            .await
            .is(409);
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").parameters(json!({ "size": 2 }));
        patch.accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let new = kit.bind("i", "c").plan(LARGE);
        new.clone()
            .parameters(json!({ "size": 0 }))
            .send()
            .await
            .is(400);
        new.clone().only_plan(SMALL).send().await.is(400);
        new.clone().send().await.refused_as("AsyncRequired");
        new.accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        // An existing binding is found in any state of its instance.
        bind.send().await.is(200);
        gate.open();
    })
    .await;
}

/// Holds: B-030.
#[tokio::test]
async fn an_unknown_path_or_method_is_404_or_405() {
    on_each_store(async |kit| {
        for path in [
            "/",
            "/v2",
            "/v2/",
            "/v2/catalogue",
            "/v2/service_instances",
            "/v3/catalog",
        ] {
            kit.request("GET", path).send().await.is(404);
        }
        let wrong = [
            ("POST", "/v2/catalog", "GET"),
            (
                "PATCH",
                "/v2/service_instances/i/service_bindings/b",
                "DELETE, GET, PUT",
            ),
            ("DELETE", "/v2/service_instances/i/last_operation", "GET"),
            ("POST", "/v2/service_instances/i", "DELETE, GET, PATCH, PUT"),
        ];
        for (method, path, allowed) in wrong {
            let reply = kit.request(method, path).send().await.is(405);
            assert_eq!(reply.header("Allow"), allowed);
        }
    })
    .await;
}

/// Holds: B-010, D-10.
#[tokio::test]
async fn responses_that_the_openapi_file_lacks_are_served() {
    on_each_store(async |kit| {
        kit.fetch("i")
            .without_header("Authorization")
            .send()
            .await
            .is(401);
        kit.poll("i").header(VERSION, "3.0").send().await.is(412);
        let info = json!({ "version": "1.2.3" });
        kit.provision("i")
            .plan(LARGE)
            .with("maintenance_info", info.clone())
            .send()
            .await
            .is(201);
        kit.update("i")
            .with("maintenance_info", info)
            .send()
            .await
            .is(200);
        let catalog = kit.catalog().send().await.is(200).json;
        for flag in [
            "instances_retrievable",
            "bindings_retrievable",
            "allow_context_updates",
        ] {
            assert_eq!(catalog["services"][0][flag], true);
        }
    })
    .await;
}
