//! Update (checklist 1.13).

use crate::fixture::test_catalog::{
    self, ASYNC, BARE, DB, FIXED, LARGE, MAINTENANCE, MOVABLE, PLAIN, SMALL,
};
use crate::fixture::{catalog_of, on_each_store};
use serde_json::{Value, json};
use sutler_broker::{Error, ProposedChange, Refusal};
use sutler_osb::{InstanceMetadata, OperationKind};

/// Holds: B-160, B-161.
#[tokio::test]
async fn everything_that_is_to_change_reaches_the_hook_and_nothing_else_changes() {
    on_each_store(async |kit| {
        let context = json!({ "platform": "x", "instance_name": "one" });
        let put = kit.provision("i").parameters(json!({ "size": 1 }));
        put.with("context", context.clone()).send().await.is(201);
        let patch = kit.update("i").plan(LARGE).with(
            "previous_values",
            json!({
                "plan_id": SMALL, "service_id": DB, "organization_id": "org", "space_id": "space",
                "maintenance_info": { "version": "0.0.1" },
            }),
        );
        patch.send().await.is(200);
        let call = kit.script.only_call(OperationKind::Update);
        assert_eq!((call.plan.as_str(), &call.context), (LARGE, &context));
        assert_eq!(call.parameters, json!({ "size": 1 }));
        let update = call.update.expect("an update");
        assert_eq!(update["previous_plan"], SMALL);
        assert_eq!(update["sent"], json!({}));
        let fetched = kit.fetch("i").send().await.is(200).json;
        assert_eq!(
            (&fetched["plan_id"], &fetched["parameters"]),
            (&json!(LARGE), &json!({ "size": 1 }))
        );
        kit.update("i")
            .parameters(json!({ "size": 2 }))
            .send()
            .await
            .is(200);
        let fetched = kit.fetch("i").send().await.is(200).json;
        assert_eq!(
            (&fetched["plan_id"], &fetched["parameters"]),
            (&json!(LARGE), &json!({ "size": 2 }))
        );
        let state = kit.script.calls(OperationKind::Update)[1].state.clone();
        assert_eq!(
            state,
            Some(json!({ "made": "i", "by": "update" })),
            "the first update's state"
        );
    })
    .await;
}

/// Holds: B-160, B-161.
#[tokio::test]
async fn only_the_named_parameters_are_sent_and_the_rest_is_kept() {
    on_each_store(async |kit| {
        let put = kit
            .provision("i")
            .parameters(json!({ "a": 1, "b": { "c": 1 } }));
        put.send().await.is(201);
        kit.update("i")
            .parameters(json!({ "b": 2, "d": 3 }))
            .send()
            .await
            .is(200);
        let update = kit
            .script
            .only_call(OperationKind::Update)
            .update
            .expect("an update");
        assert_eq!(update["sent"], json!({ "b": 2, "d": 3 }));
        assert_eq!(update["params"], json!({ "a": 1, "b": 2, "d": 3 }));
        let fetched = kit.fetch("i").send().await.is(200).json;
        assert_eq!(fetched["parameters"], json!({ "a": 1, "b": 2, "d": 3 }));
    })
    .await;
}

/// Holds: B-162.
#[tokio::test]
async fn an_update_without_effect_is_200_and_nothing_is_done() {
    on_each_store(async |kit| {
        kit.provision("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(201);
        let idle = [
            kit.update("i"),
            kit.update("i").only_plan(SMALL),
            kit.update("i").parameters(json!({})),
            kit.update("i").parameters(json!({ "a": 1 })),
            kit.update("i")
                .with("plan_id", Value::Null)
                .with("parameters", Value::Null),
            kit.update("i")
                .with("previous_values", json!({}))
                .with("maintenance_info", json!({})),
        ];
        for patch in idle {
            patch.clone().send().await.is(200);
            patch.accepts_incomplete().send().await.is(200);
        }
        assert!(kit.script.calls(OperationKind::Update).is_empty());
    })
    .await;
}

/// Holds: B-083, B-162, B-166.
#[tokio::test]
async fn an_update_without_effect_of_an_asynchronous_plan_requires_accepts_incomplete() {
    on_each_store(async |kit| {
        let put = kit.provision("i").plan(ASYNC).parameters(json!({ "a": 1 }));
        kit.finish("i", put.accepts_incomplete()).await;
        let idle = [
            kit.update("i"),
            kit.update("i").only_plan(ASYNC),
            kit.update("i").parameters(json!({ "a": 1 })),
        ];
        for patch in idle {
            patch.clone().send().await.refused_as("AsyncRequired");
            patch.accepts_incomplete().send().await.is(200);
        }
        assert!(kit.script.calls(OperationKind::Update).is_empty());
    })
    .await;
}

/// Holds: B-087, B-091, B-163, B-168.
#[tokio::test]
async fn a_repeated_update_joins_the_running_one_and_is_200_when_that_has_succeeded() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").plan(LARGE).parameters(json!({ "size": 2 }));
        let patch = patch
            .with("previous_values", json!({ "plan_id": SMALL }))
            .accepts_incomplete();
        let operation = patch.clone().send().await.operation();
        gate.reached().await;
        assert_eq!(patch.clone().send().await.operation(), operation);
        kit.update("i")
            .plan(LARGE)
            .accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
        kit.poll_until_done(kit.poll("i").operation(&operation))
            .await;
        patch.send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Update).len(), 1);
    })
    .await;
}

/// Holds: B-160, B-164.
#[tokio::test]
async fn a_malformed_update_or_one_of_another_service_is_a_400() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let wrong = [
            kit.update("i").without("service_id"),
            kit.update("i").with("service_id", ""),
            kit.update("i").with("service_id", 7),
            kit.update("i").service("unknown"),
            kit.update("i").service(PLAIN),
            kit.update("i").plan(BARE),
            kit.update("i").only_plan(BARE),
            kit.update("i").only_plan("unknown"),
            kit.update("i").with("plan_id", ""),
            kit.update("i").with("plan_id", json!({})),
            kit.update("i").with("parameters", json!([])),
            kit.update("i").with("context", 7),
            kit.update("i").with("previous_values", "x"),
            kit.update("i")
                .with("maintenance_info", json!({ "version": 7 })),
            kit.update("i").plan(LARGE).parameters(json!({ "size": 0 })),
        ];
        for patch in wrong {
            let reply = patch.send().await.is(400);
            assert!(!reply.description().is_empty());
        }
        assert!(kit.script.calls(OperationKind::Update).is_empty());
    })
    .await;
}

/// Holds: B-165, B-169.
#[tokio::test]
async fn an_unsupported_update_is_a_422_with_a_description_and_no_code() {
    on_each_store(async |kit| {
        kit.has_instance_of("fixed", FIXED).await;
        kit.has_instance("i").await;
        kit.script.ends(OperationKind::Update, || {
            Err(Error::unsupported("No quota."))
        });
        let fixed = kit.update("fixed").plan(SMALL).send().await.is(422);
        let quota = kit.update("i").plan(LARGE).send().await.is(422);
        assert_eq!(quota.description(), "No quota.");
        kit.script.checks(|change| match change {
            ProposedChange::Update { .. } => {
                Err(Refusal::Unsupported("Never downwards.".to_owned()))
            }
            _ => Ok(()),
        });
        let checked = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(422);
        assert_eq!(checked.description(), "Never downwards.");
        for reply in [fixed, quota, checked] {
            assert_eq!(reply.json.get("error"), None);
            assert!(!reply.description().is_empty());
        }
        // An instance whose plan cannot change can still be updated otherwise.
        kit.script.checks(|_| Ok(()));
        kit.script.succeeds(OperationKind::Update);
        kit.update("fixed")
            .plan(FIXED)
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(200);
    })
    .await;
}

/// Holds: B-165.
#[tokio::test]
async fn a_service_without_updates_refuses_them() {
    on_each_store(async |kit| {
        kit.script.disable_updates();
        kit.has_instance_of("i", MOVABLE).await;
        kit.update("i").plan(BARE).send().await.is(422);
        kit.update("i")
            .service(PLAIN)
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(422);
        kit.update("i").service(PLAIN).send().await.is(200);
    })
    .await;
}

/// Holds: B-167, D-05.
#[tokio::test]
async fn a_maintenance_version_must_be_that_of_the_plan_the_instance_will_have() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let info = |version: &str| json!({ "version": version });
        let patch = |info: Value| kit.update("i").with("maintenance_info", info);
        patch(info(MAINTENANCE))
            .send()
            .await
            .refused_as("MaintenanceInfoConflict");
        patch(info("0.0.1"))
            .plan(LARGE)
            .send()
            .await
            .refused_as("MaintenanceInfoConflict");
        patch(json!({ "description": "x" })).send().await.is(200);
        patch(info(MAINTENANCE)).plan(LARGE).send().await.is(200);
        patch(info("1.2.4"))
            .send()
            .await
            .refused_as("MaintenanceInfoConflict");
        // The catalog changes, and the instance is upgraded on request.
        let mut newer = test_catalog::catalog();
        newer["services"][0]["plans"][1]["maintenance_info"]["version"] = json!("2.0.0");
        kit.running
            .replace_catalog(catalog_of(newer))
            .await
            .expect("it is valid");
        patch(info(MAINTENANCE))
            .send()
            .await
            .refused_as("MaintenanceInfoConflict");
        patch(info("2.0.0")).send().await.is(200);
        let call = kit
            .script
            .calls(OperationKind::Update)
            .pop()
            .expect("an update");
        assert_eq!(
            call.update.expect("an update")["maintenance_version"],
            "2.0.0"
        );
        let fetched = kit.fetch("i").send().await.is(200).json;
        assert_eq!(fetched["maintenance_info"], json!({ "version": "2.0.0" }));
    })
    .await;
}

/// Holds: B-064, B-170.
#[tokio::test]
async fn the_context_alone_can_change_where_the_offering_allows_it() {
    on_each_store(async |kit| {
        let context = |name: &str| json!({ "platform": "x", "instance_name": name });
        kit.provision("i")
            .with("context", context("one"))
            .send()
            .await
            .is(201);
        let patch = kit.update("i").with("context", context("two"));
        patch.clone().send().await.is(200);
        let call = kit.script.only_call(OperationKind::Update);
        assert_eq!(call.context, context("two"));
        assert_eq!(call.update.expect("an update")["context_only"], true);
        patch.send().await.is(200);
        kit.bind("i", "b").send().await.is(201);
        kit.deprovision("i").send().await.is(200);
        assert_eq!(
            kit.script.only_call(OperationKind::Deprovision).context,
            context("two")
        );
        kit.has_instance_of("bare", BARE).await;
        let bare = kit
            .update("bare")
            .service(PLAIN)
            .with("context", context("three"));
        bare.clone().send().await.is(422);
        // With another change it is not a context-only update.
        bare.parameters(json!({ "a": 1 })).send().await.is(200);
    })
    .await;
}

/// Holds: B-170.
#[tokio::test]
async fn the_context_alone_can_change_even_where_the_author_wrote_no_update() {
    on_each_store(async |kit| {
        kit.script.disable_updates();
        kit.has_instance("i").await;
        let patch = kit.update("i").with("context", json!({ "platform": "x" }));
        patch.accepts_incomplete().send().await.is(202);
        assert_eq!(
            kit.poll_until_done(kit.poll("i")).await.json["state"],
            "succeeded"
        );
        kit.deprovision("i").send().await.is(200);
        let context = kit.script.only_call(OperationKind::Deprovision).context;
        assert_eq!(context, json!({ "platform": "x" }));
    })
    .await;
}

/// Holds: B-171.
#[tokio::test]
async fn the_new_dashboard_is_in_the_first_answer() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").plan(LARGE).accepts_incomplete();
        let accepted = patch.send().await.is(202);
        let dashboard = format!("https://dashboard/i/{LARGE}");
        assert_eq!(accepted.json["dashboard_url"], dashboard.as_str());
        assert!(!accepted.operation().is_empty());
        gate.reached().await;
        kit.script.fails(OperationKind::Update, "No.");
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        // The call at the gate already had its result: it succeeded.
        assert_eq!(
            kit.fetch("i").send().await.json["dashboard_url"],
            dashboard.as_str()
        );
        kit.update("i").plan(SMALL).send().await.is(500);
        assert_eq!(
            kit.fetch("i").send().await.json["dashboard_url"],
            dashboard.as_str()
        );
    })
    .await;
}

/// Holds: B-171.
#[tokio::test]
async fn labels_of_an_update_are_in_its_answer() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let labels = json!({ "tier": "gold" }).as_object().cloned();
        kit.script.labels(InstanceMetadata {
            labels,
            attributes: None,
        });
        let reply = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(200);
        assert_eq!(
            reply.json["metadata"],
            json!({ "labels": { "tier": "gold" } })
        );
    })
    .await;
}

/// Holds: B-172.
#[tokio::test]
async fn a_later_update_may_repair_an_instance_made_unusable_by_a_failed_one() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let broken = || Err(Error::failed("Half way.").instance_usable(false));
        kit.script.ends(OperationKind::Update, broken);
        let patch = kit.update("i").parameters(json!({ "a": 1 }));
        let reply = patch.clone().send().await.is(500);
        assert_eq!(reply.json["instance_usable"], false);
        kit.script.succeeds(OperationKind::Update);
        patch.send().await.is(200);
        assert_eq!(
            kit.fetch("i").send().await.is(200).json["parameters"],
            json!({ "a": 1 })
        );
    })
    .await;
}

/// Holds: B-173, D-12, D-13.
#[tokio::test]
async fn an_unknown_instance_cannot_be_updated() {
    on_each_store(async |kit| {
        let patch = kit.update("i").parameters(json!({ "a": 1 }));
        patch.clone().send().await.is(404);
        patch.clone().accepts_incomplete().send().await.is(404);
        patch.clone().plan(ASYNC).send().await.is(404);
        kit.has_instance("i").await;
        kit.deprovision("i").send().await.is(200);
        patch.send().await.is(404);
    })
    .await;
}
