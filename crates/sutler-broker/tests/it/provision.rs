//! Provision (checklist 1.11).

use crate::fixture::on_each_store;
use crate::fixture::test_catalog::{ASYNC, BARE, DB, LARGE, MAINTENANCE, PLAIN, SMALL};
use serde_json::{Value, json};
use sutler_broker::{Error, Policy, ProposedChange, Refusal};
use sutler_osb::{InstanceMetadata, OperationKind};

/// Holds: B-120, B-131, B-251.
#[tokio::test]
async fn every_field_of_a_provision_reaches_the_hook() {
    on_each_store(async |kit| {
        let context = json!({ "platform": "kubernetes", "namespace": "n", "clusterid": "c" });
        let put = kit
            .provision("i")
            .plan(LARGE)
            .parameters(json!({ "size": 3 }));
        let put = put.with("context", context.clone());
        put.with("maintenance_info", json!({ "version": MAINTENANCE }))
            .send()
            .await
            .is(201);
        let call = kit.script.only_call(OperationKind::Provision);
        assert_eq!((call.instance.as_str(), call.plan.as_str()), ("i", LARGE));
        assert_eq!(
            (call.parameters, call.context),
            (json!({ "size": 3 }), context)
        );
        // All later hooks get its id and its state.
        kit.bind("i", "b").plan(LARGE).send().await.is(201);
        kit.deprovision("i").plan(LARGE).send().await.is(200);
        for verb in [
            OperationKind::Bind,
            OperationKind::Unbind,
            OperationKind::Deprovision,
        ] {
            let call = kit.script.only_call(verb);
            assert_eq!(call.instance, "i");
            assert_eq!(
                call.state,
                Some(json!({ "made": "i", "by": "provision" })),
                "{verb:?}"
            );
        }
    })
    .await;
}

/// Holds: B-120, B-124.
#[tokio::test]
async fn mandatory_fields_must_be_present_with_their_type_and_not_empty() {
    on_each_store(async |kit| {
        for field in ["service_id", "plan_id", "organization_guid", "space_guid"] {
            let reply = kit.provision("i").without(field).send().await.is(400);
            assert!(reply.description().contains(field), "{}", reply.text);
            for wrong in [
                json!(""),
                json!(7),
                json!(null),
                json!([]),
                json!({}),
                json!(true),
            ] {
                let reply = kit.provision("i").with(field, wrong).send().await.is(400);
                assert!(reply.description().contains(field), "{}", reply.text);
            }
        }
        for field in ["parameters", "context", "maintenance_info"] {
            for wrong in [json!(""), json!(7), json!([]), json!(true)] {
                let reply = kit.provision("i").with(field, wrong).send().await.is(400);
                assert!(reply.description().contains(field), "{}", reply.text);
            }
            kit.provision(field)
                .with(field, Value::Null)
                .send()
                .await
                .is(201);
        }
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-120, B-125.
#[tokio::test]
async fn ids_that_are_not_in_the_catalog_or_not_of_one_another_are_a_400() {
    on_each_store(async |kit| {
        let wrong = [
            ("unknown", SMALL),
            (DB, "unknown"),
            (PLAIN, SMALL),
            (DB, BARE),
            (SMALL, DB),
        ];
        for (service, plan) in wrong {
            for incomplete in [false, true] {
                let put = kit.provision("i").service(service).only_plan(plan);
                let put = if incomplete {
                    put.accepts_incomplete()
                } else {
                    put
                };
                let reply = put.send().await.is(400);
                assert!(reply.description().contains(plan), "{}", reply.text);
            }
        }
    })
    .await;
}

/// Holds: B-084, B-123, D-03.
#[tokio::test]
async fn a_repeated_provision_is_200_in_both_modes_with_the_same_body() {
    on_each_store(async |kit| {
        let put = kit
            .provision("i")
            .parameters(json!({ "a": { "b": [1, 2] }, "c": null }));
        let first = put.clone().send().await.is(201);
        let reordered = kit
            .provision("i")
            .parameters(json!({ "c": null, "a": { "b": [1, 2] } }));
        for again in [put.clone(), put.clone().accepts_incomplete(), reordered] {
            assert_eq!(again.send().await.is(200).json, first.json);
        }
        let slow = kit.provision("slow").plan(ASYNC);
        kit.finish("slow", slow.clone().accepts_incomplete()).await;
        slow.clone().accepts_incomplete().send().await.is(200);
        slow.send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 2);
    })
    .await;
}

/// Holds: B-126, D-04.
#[tokio::test]
async fn the_same_id_with_other_attributes_is_409() {
    on_each_store(async |kit| {
        let put = kit.provision("i").parameters(json!({ "a": 1 }));
        put.clone()
            .with("context", json!({ "platform": "x" }))
            .send()
            .await
            .is(201);
        let others = [
            put.clone().only_plan(LARGE).without("parameters"),
            put.clone().plan(BARE),
            put.clone().parameters(json!({ "a": 2 })),
            put.clone().parameters(json!({ "a": 1, "b": 1 })),
            put.clone().parameters(json!({ "a": 1.5 })),
            put.clone().without("parameters"),
            put.clone().with("organization_guid", "other"),
            put.clone().with("space_guid", "other"),
        ];
        for other in others {
            other.clone().send().await.is(409);
            other.accepts_incomplete().send().await.is(409);
        }
        // The context can be updated, so another one is not a conflict.
        put.clone()
            .with("context", json!({ "platform": "y" }))
            .send()
            .await
            .is(200);
        put.send().await.is(200);
    })
    .await;
}

/// Holds: B-126.
#[tokio::test]
async fn the_same_id_with_other_attributes_is_409_while_it_is_being_created_too() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        kit.provision("i").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let other = kit.provision("i").with("space_guid", "other");
        other.clone().send().await.is(409);
        other.accepts_incomplete().send().await.is(409);
        gate.open();
    })
    .await;
}

/// Holds: D-04.
#[tokio::test]
async fn after_an_update_a_put_is_compared_with_the_updated_instance() {
    on_each_store(async |kit| {
        let put = kit.provision("i").parameters(json!({ "size": 1 }));
        put.clone().send().await.is(201);
        let patch = kit.update("i").plan(LARGE).parameters(json!({ "size": 2 }));
        patch.send().await.is(200);
        put.clone().send().await.is(409);
        put.plan(LARGE)
            .parameters(json!({ "size": 2 }))
            .send()
            .await
            .is(200);
    })
    .await;
}

/// Holds: B-128, D-05.
#[tokio::test]
async fn a_maintenance_version_must_be_the_catalogs_and_an_empty_one_is_absent() {
    on_each_store(async |kit| {
        let put = |id: &str, plan: &str, info: Value| {
            kit.provision(id).plan(plan).with("maintenance_info", info)
        };
        for version in ["1.2.4", "9.9.9", "1.2", "latest"] {
            for plan in [LARGE, SMALL] {
                let reply = put("i", plan, json!({ "version": version })).send().await;
                reply.refused_as("MaintenanceInfoConflict");
            }
        }
        put("i", SMALL, json!({ "version": MAINTENANCE }))
            .send()
            .await
            .is(422);
        put("a", LARGE, json!({})).send().await.is(201);
        put("b", SMALL, json!({})).send().await.is(201);
        put("c", LARGE, json!({ "description": "Only words." }))
            .send()
            .await
            .is(201);
        let other_words = json!({ "version": MAINTENANCE, "description": "Other words." });
        put("d", LARGE, other_words).send().await.is(201);
        put("e", SMALL, json!({ "version": "" }))
            .send()
            .await
            .is(201);
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-125, B-129.
#[tokio::test]
async fn parameters_that_break_the_schema_are_a_400_with_the_path_but_not_the_value() {
    on_each_store(async |kit| {
        let wrong = [
            json!({ "size": 0 }),
            json!({ "size": "hunter2" }),
            json!({ "colour": 1 }),
        ];
        for parameters in wrong {
            let put = kit
                .provision("i")
                .plan(LARGE)
                .parameters(parameters.clone());
            let reply = put.send().await.is(400);
            let name = parameters
                .as_object()
                .and_then(|it| it.keys().next())
                .expect("one");
            assert!(
                reply.description().contains(name.as_str()),
                "{}",
                reply.text
            );
            assert!(!reply.text.contains("hunter2"), "{}", reply.text);
        }
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
        kit.provision("i")
            .plan(LARGE)
            .parameters(json!({ "size": 1 }))
            .send()
            .await
            .is(201);
    })
    .await;
}

/// Holds: B-035, B-104, B-125, B-129.
#[tokio::test]
async fn an_author_can_refuse_before_anything_is_written_and_in_the_hook() {
    on_each_store(async |kit| {
        kit.script.checks(|change| match change {
            ProposedChange::Provision(_) => Err(Refusal::Invalid("Not today.".to_owned())),
            _ => Ok(()),
        });
        assert_eq!(
            kit.provision("i").send().await.is(400).description(),
            "Not today."
        );
        kit.poll("i").send().await.is(404);
        kit.script.checks(|_| Ok(()));
        kit.script
            .ends(OperationKind::Provision, || Err(Error::invalid("Not so.")));
        assert_eq!(
            kit.provision("i").send().await.is(400).description(),
            "Not so."
        );
        kit.fetch("i").send().await.is(404);
        kit.deprovision("i").send().await.is(410);
        let polled = kit
            .finish("j", kit.provision("j").accepts_incomplete())
            .await
            .is(200);
        assert_eq!(
            polled.json,
            json!({ "state": "failed", "description": "Not so." })
        );
        kit.deprovision("j").send().await.is(410);
    })
    .await;
}

/// Holds: B-130.
#[tokio::test]
async fn the_dashboard_is_in_the_first_answer_also_of_a_202_and_labels_are_in_the_last() {
    on_each_store(async |kit| {
        let labels = json!({ "tier": "gold" }).as_object().cloned();
        let attributes = json!({ "node": "n1" }).as_object().cloned();
        kit.script.labels(InstanceMetadata { labels, attributes });
        let put = kit.provision("i").accepts_incomplete();
        let accepted = put.clone().send().await.is(202);
        let dashboard = format!("https://dashboard/i/{SMALL}");
        assert_eq!(accepted.json["dashboard_url"], dashboard.as_str());
        kit.poll_until_done(kit.poll("i")).await;
        let again = put.send().await.is(200);
        let metadata = json!({ "labels": { "tier": "gold" }, "attributes": { "node": "n1" } });
        assert_eq!(
            again.json,
            json!({ "dashboard_url": dashboard, "metadata": metadata })
        );
        let done = kit.provision("j").send().await.is(201);
        assert_eq!(done.json["metadata"], metadata);
        assert_eq!(
            done.json["dashboard_url"],
            format!("https://dashboard/j/{SMALL}")
        );
        // Without a dashboard the field is left out.
        kit.script.labels(InstanceMetadata::default());
        assert_eq!(
            kit.provision("k")
                .plan(BARE)
                .send()
                .await
                .is(201)
                .json
                .get("dashboard_url"),
            None
        );
    })
    .await;
}

/// Holds: B-132.
#[tokio::test]
async fn a_deleted_id_can_be_used_again() {
    on_each_store(async |kit| {
        kit.provision("i")
            .parameters(json!({ "old": 1 }))
            .send()
            .await
            .is(201);
        kit.has_binding("i", "b").await;
        kit.deprovision("i").send().await.is(200);
        kit.provision("i")
            .plan(LARGE)
            .parameters(json!({ "size": 1 }))
            .send()
            .await
            .is(201);
        let fetched = kit.fetch("i").send().await.is(200);
        assert_eq!(fetched.json["parameters"], json!({ "size": 1 }));
        kit.fetch_binding("i", "b").send().await.is(404);
        kit.bind("i", "b").plan(LARGE).send().await.is(201);
    })
    .await;
}

/// Holds: B-080.
#[tokio::test]
async fn a_transient_failure_is_retried() {
    on_each_store(async |kit| {
        let policy = Policy {
            backoff: std::time::Duration::from_millis(1),
            ..Policy::default()
        };
        kit.script.policy(OperationKind::Provision, policy);
        let tries = std::sync::atomic::AtomicU32::new(0);
        kit.script.ends(OperationKind::Provision, move || {
            match tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 | 1 => Err(Error::transient("Not yet.")),
                _ => Ok(()),
            }
        });
        kit.provision("i").send().await.is(201);
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 3);
    })
    .await;
}
