//! Errors: their bodies, and that they change nothing (checklist 1.4).

use crate::fixture::test_catalog::{ASYNC, LARGE, MAINTENANCE, SMALL, UNBINDABLE};
use crate::fixture::{Fixture, on_each_store};
use serde_json::{Value, json};
use sutler_broker::Error;
use sutler_osb::OperationKind;

async fn refused_requests(kit: &Fixture) -> Vec<(u16, crate::fixture::request::RequestBuilder)> {
    kit.has_instance("i").await;
    kit.has_instance_of("u", UNBINDABLE).await;
    kit.has_binding("i", "b").await;
    let put = kit.provision("i");
    vec![
        (400, put.clone().bytes("")),
        (400, put.clone().bytes("[]")),
        (400, put.clone().bytes("{\"service_id\":")),
        (400, put.clone().without("service_id")),
        (400, put.clone().with("organization_guid", "")),
        (400, put.clone().with("parameters", json!([]))),
        (400, put.clone().with("context", "x")),
        (400, put.clone().only_plan("unknown")),
        (400, put.clone().with("plan_id", 7)),
        (409, put.clone().parameters(json!({ "other": true }))),
        (409, put.clone().with("organization_guid", "other")),
        (422, kit.provision("new").plan(ASYNC)),
        (
            422,
            kit.provision("new")
                .plan(LARGE)
                .with("maintenance_info", json!({"version": "9.9.9"})),
        ),
        (
            400,
            kit.provision("new")
                .plan(LARGE)
                .parameters(json!({ "size": 0 })),
        ),
        (400, kit.update("i").without("service_id")),
        (400, kit.update("i").service("plain-offering-id")),
        (400, kit.update("i").only_plan("unknown")),
        (
            422,
            kit.update("i")
                .with("maintenance_info", json!({ "version": "1.0.0" })),
        ),
        (404, kit.update("unknown")),
        (404, kit.bind("unknown", "b")),
        (400, kit.bind("u", "b").plan(UNBINDABLE)),
        (409, kit.bind("i", "b").parameters(json!({ "other": 1 }))),
        (
            400,
            kit.bind("i", "new").with("predecessor_binding_id", "b"),
        ),
        (400, kit.deprovision("i").without("plan_id")),
        (400, kit.unbind("i", "b").without("service_id")),
        (410, kit.deprovision("unknown")),
        (410, kit.unbind("i", "unknown")),
        (404, kit.fetch("unknown")),
        (404, kit.poll("unknown")),
        (404, kit.fetch_binding("i", "unknown")),
        (404, kit.poll_binding("i", "unknown")),
        (405, kit.request("POST", "/v2/service_instances/i")),
    ]
}

/// Holds: B-030, B-031, B-033, B-034, B-083, B-104, B-111, B-124, B-126, B-127, B-128, B-160,
/// Holds: B-164, B-167, B-180, B-186, B-200, B-240, B-243, B-250, B-253.
#[tokio::test]
async fn every_refusal_is_an_object_with_a_helpful_description() {
    on_each_store(async |kit| {
        for (status, request) in refused_requests(kit).await {
            let reply = request.send().await.is(status);
            let body = reply.json.as_object().expect("an object").clone();
            assert!(reply.description().len() > 10, "{}", reply.text);
            assert!(
                body.keys()
                    .all(|key| ["error", "description"].contains(&key.as_str()))
            );
            if let Some(error) = body.get("error") {
                let word = error.as_str().expect("a string");
                assert!(
                    !word.is_empty() && word.chars().all(char::is_alphanumeric),
                    "{word}"
                );
            }
        }
    })
    .await;
}

/// Holds: B-035.
#[tokio::test]
async fn a_refusal_changes_nothing() {
    on_each_store(async |kit| {
        let requests = refused_requests(kit).await;
        let look = async || {
            let mut texts = Vec::new();
            for request in [
                kit.fetch("i"),
                kit.fetch("u"),
                kit.fetch("new"),
                kit.fetch_binding("i", "b"),
            ] {
                texts.push(request.send().await.text);
            }
            texts
        };
        let before = look().await;
        for (_, request) in requests {
            // The test above checks the status of each refusal.
            let refused = (400..500).contains(&request.send().await.status);
            if !refused {
                return;
            }
            assert_eq!(look().await, before);
        }
        for verb in [
            OperationKind::Update,
            OperationKind::Unbind,
            OperationKind::Deprovision,
        ] {
            assert!(kit.script.calls(verb).is_empty());
        }
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 2);
        assert_eq!(kit.script.calls(OperationKind::Bind).len(), 1);
    })
    .await;
}

/// Holds: B-032, B-083, B-091, B-127, B-128, B-187, B-254.
#[tokio::test]
async fn the_four_error_codes_are_spelt_as_specified_and_have_status_422() {
    on_each_store(async |kit| {
        kit.provision("a")
            .plan(ASYNC)
            .send()
            .await
            .refused_as("AsyncRequired");
        let wrong = json!({ "version": "0.0.1" });
        let put = kit
            .provision("m")
            .plan(LARGE)
            .with("maintenance_info", wrong);
        put.send().await.refused_as("MaintenanceInfoConflict");
        kit.has_instance("i").await;
        kit.script
            .ends(OperationKind::Bind, || Err(Error::requires_app()));
        kit.bind("i", "b").send().await.refused_as("RequiresApp");
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        patch.send().await.is(202);
        kit.deprovision("i")
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
    })
    .await;
}

fn usable_and_repeatable(reply: &Value) -> (Option<bool>, Option<bool>) {
    (
        reply["instance_usable"].as_bool(),
        reply["update_repeatable"].as_bool(),
    )
}

/// A failure with both fields, whether allowed or not.
fn failure_with_both_flags() -> sutler_broker::Result<()> {
    Err(Error::failed("It broke.")
        .instance_usable(false)
        .update_repeatable(false))
}

/// Holds: B-033, B-034, B-169, B-257.
#[tokio::test]
async fn usable_and_repeatable_are_returned_only_for_operations_that_allow_them() {
    on_each_store(async |kit| {
        for verb in OperationKind::ALL {
            kit.script.ends(verb, failure_with_both_flags);
        }
        let provision = kit.provision("p").send().await.is(500);
        assert_eq!(usable_and_repeatable(&provision.json), (None, None));
        kit.script.succeeds(OperationKind::Provision);
        kit.has_instance("i").await;
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(500);
        assert_eq!(
            usable_and_repeatable(&patch.json),
            (Some(false), Some(false))
        );
        let bind = kit.bind("i", "x").send().await.is(500);
        assert_eq!(usable_and_repeatable(&bind.json), (None, None));
        kit.script.succeeds(OperationKind::Bind);
        kit.has_binding("i", "b").await;
        let unbind = kit.unbind("i", "b").send().await.is(500);
        assert_eq!(usable_and_repeatable(&unbind.json), (None, None));
        kit.script.succeeds(OperationKind::Unbind);
        let deprovision = kit.deprovision("i").send().await.is(500);
        assert_eq!(
            usable_and_repeatable(&deprovision.json),
            (Some(false), None)
        );
    })
    .await;
}

/// Holds: B-036, B-037, B-169.
#[tokio::test]
async fn a_failed_update_applies_nothing() {
    on_each_store(async |kit| {
        let put = kit.provision("i").parameters(json!({ "a": 1 }));
        put.with("context", json!({ "platform": "x" }))
            .send()
            .await
            .is(201);
        let before = kit.fetch("i").send().await.is(200).json;
        let patch = kit.update("i").plan(LARGE).parameters(json!({ "size": 2 }));
        let patch = patch.with("maintenance_info", json!({ "version": MAINTENANCE }));
        kit.script.fails(OperationKind::Update, "No room.");
        let reply = patch.clone().send().await.is(500);
        assert_eq!(reply.description(), "No room.");
        assert_eq!(kit.fetch("i").send().await.is(200).json, before);
        let polled = kit.finish("i", patch.clone().accepts_incomplete()).await;
        assert_eq!(polled.json["state"], "failed");
        assert_eq!(kit.fetch("i").send().await.is(200).json, before);
        kit.script.ends(OperationKind::Update, || {
            Err(Error::unsupported("Not upwards."))
        });
        assert_eq!(patch.send().await.is(422).description(), "Not upwards.");
        assert_eq!(kit.fetch("i").send().await.is(200).json, before);
        // All other operations still use the old plan.
        kit.bind("i", "b").plan(SMALL).send().await.is(201);
    })
    .await;
}

/// Holds: B-036.
#[tokio::test]
async fn after_a_failed_create_nothing_is_there_and_the_id_can_be_cleaned_up_or_tried_again() {
    on_each_store(async |kit| {
        kit.script.fails(OperationKind::Provision, "No.");
        kit.provision("i").send().await.is(500);
        kit.fetch("i").send().await.is(404);
        kit.bind("i", "b").send().await.is(404);
        kit.update("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(404);
        kit.deprovision("i").send().await.is(200);
        assert_eq!(kit.script.only_call(OperationKind::Deprovision).state, None);
        kit.deprovision("i").send().await.is(410);
        kit.provision("j").send().await.is(500);
        kit.script.succeeds(OperationKind::Provision);
        kit.provision("j").send().await.is(201);
        kit.script.fails(OperationKind::Bind, "No.");
        kit.bind("j", "b").send().await.is(500);
        kit.fetch_binding("j", "b").send().await.is(404);
        kit.script.succeeds(OperationKind::Bind);
        kit.bind("j", "b").send().await.is(201);
    })
    .await;
}

/// Holds: B-031.
#[tokio::test]
async fn a_failure_without_a_message_has_no_empty_fields() {
    on_each_store(async |kit| {
        kit.script.fails(OperationKind::Provision, "");
        let reply = kit.provision("i").send().await.is(500);
        assert_ne!(reply.json["description"], "");
        let polled = kit.poll("i").send().await.is(200);
        assert_ne!(polled.json["description"], "");
    })
    .await;
}

/// Holds: B-030.
#[tokio::test]
async fn causes_and_panics_are_logged_and_not_sent_to_the_caller() {
    on_each_store(async |kit| {
        let cause = || Err(Error::failed("It broke.").because("password=hunter2"));
        kit.script.ends(OperationKind::Provision, cause);
        let reply = kit.provision("i").send().await.is(500);
        assert!(!reply.text.contains("hunter2") && reply.text.contains("It broke."));
        kit.script
            .ends(OperationKind::Provision, || panic!("hunter2 in a panic"));
        let reply = kit.provision("j").send().await.is(500);
        assert!(!reply.text.contains("hunter2") && !reply.description().is_empty());
        let polled = kit
            .finish("k", kit.provision("k").accepts_incomplete())
            .await;
        assert_eq!(polled.json["state"], "failed");
        assert!(!polled.text.contains("hunter2"));
    })
    .await;
}
