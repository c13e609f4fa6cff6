//! Bind (checklist 1.14).

use crate::fixture::on_each_store;
use crate::fixture::test_catalog::{
    BARE, BINDABLE, DB, LARGE, LOGS, PLAIN, ROUTES, SMALL, UNBINDABLE, VOLUMES,
};
use serde_json::{Value, json};
use sutler_broker::{Bound, Error, ProposedChange, Refusal};
use sutler_osb::{BindingMetadata, OperationKind, UtcTime};

/// Holds: B-131, B-181, B-182, B-189, B-190.
#[tokio::test]
async fn every_field_of_a_bind_reaches_the_hook_and_the_credentials_are_returned() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let context = json!({ "platform": "cloudfoundry", "space_guid": "s" });
        let bind = kit.bind("i", "b").with("context", context.clone()).with(
            "bind_resource",
            json!({
                "app_guid": "app-1", "space_guid": "s", "app_annotations": { "a": 1 },
                "credential_client_id": "c",
            }),
        );
        let bind = bind
            .parameters(json!({ "role": "reader" }))
            .with("app_guid", "app-0");
        let bound = bind.send().await.is(201);
        let call = kit.script.only_call(OperationKind::Bind);
        assert_eq!(
            (call.instance.as_str(), call.binding.as_deref()),
            ("i", Some("b"))
        );
        assert_eq!(
            (call.parameters, call.context),
            (json!({ "role": "reader" }), context)
        );
        assert_eq!(call.state, Some(json!({ "made": "i", "by": "provision" })));
        assert_eq!(call.app.as_deref(), Some("app-1"));
        let credentials = bound.json["credentials"].as_object().expect("an object");
        assert_eq!(credentials["user"], "b");
        assert_eq!(bound.json.as_object().map(serde_json::Map::len), Some(1));
    })
    .await;
}

/// Holds: B-181, B-185.
#[tokio::test]
async fn mandatory_fields_must_be_present_with_their_type_and_not_empty() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        for field in ["service_id", "plan_id"] {
            let reply = kit.bind("i", "b").without(field).send().await.is(400);
            assert!(reply.description().contains(field), "{}", reply.text);
            for wrong in [json!(""), json!(7), json!([]), json!({})] {
                kit.bind("i", "b").with(field, wrong).send().await.is(400);
            }
        }
        let wrong = [
            ("parameters", json!([])),
            ("context", json!("x")),
            ("bind_resource", json!("app")),
            ("bind_resource", json!({ "app_guid": 7 })),
            ("bind_resource", json!({ "route": {} })),
            ("bind_resource", json!({ "space_guid": "" })),
            ("bind_resource", json!({ "credential_client_id": "" })),
            ("bind_resource", json!({ "app_annotations": [] })),
            ("app_guid", json!("")),
            ("app_guid", json!(7)),
            ("predecessor_binding_id", json!("")),
        ];
        for (field, value) in wrong {
            let reply = kit.bind("i", "b").with(field, value).send().await.is(400);
            assert!(reply.description().contains(field), "{}", reply.text);
        }
        assert!(kit.script.calls(OperationKind::Bind).is_empty());
    })
    .await;
}

/// Holds: B-183, D-03.
#[tokio::test]
async fn a_repeated_bind_is_200_in_both_modes_with_the_same_credentials() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bind = kit.bind("i", "b").parameters(json!({ "role": "reader" }));
        let bind = bind.with("bind_resource", json!({ "app_guid": "app" }));
        let first = bind.clone().send().await.is(201);
        let moved = bind.clone().with("context", json!({ "platform": "y" }));
        for again in [bind.clone(), bind.accepts_incomplete(), moved] {
            assert_eq!(again.send().await.is(200).json, first.json);
        }
        assert_eq!(kit.script.calls(OperationKind::Bind).len(), 1);
    })
    .await;
}

/// Holds: B-186, B-198.
#[tokio::test]
async fn the_same_id_with_other_attributes_is_409() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bind = kit.bind("i", "b").parameters(json!({ "role": "reader" }));
        let bind = bind.with("bind_resource", json!({ "app_guid": "app" }));
        bind.clone().send().await.is(201);
        let others = [
            bind.clone().parameters(json!({ "role": "writer" })),
            bind.clone().without("parameters"),
            bind.clone()
                .with("bind_resource", json!({ "app_guid": "other" })),
            bind.clone().without("bind_resource"),
            bind.clone().only_plan(LARGE),
            bind.plan(BARE),
        ];
        for other in others {
            other.clone().send().await.is(409);
            other.accepts_incomplete().send().await.is(409);
        }
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "c").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        kit.bind("i", "c")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(409);
        gate.open();
    })
    .await;
}

/// Holds: B-186.
#[tokio::test]
async fn the_same_binding_id_of_another_instance_is_another_binding() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_instance("j").await;
        let one = kit.bind("i", "b").send().await.is(201);
        let two = kit
            .bind("j", "b")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(201);
        assert_ne!(
            one.json["credentials"]["password"],
            two.json["credentials"]["password"]
        );
        kit.unbind("i", "b").send().await.is(200);
        kit.fetch_binding("j", "b").send().await.is(200);
    })
    .await;
}

/// Holds: B-032, B-187.
#[tokio::test]
async fn an_application_is_required_and_read_from_either_field() {
    on_each_store(async |kit| {
        kit.script.checks(|change| match change {
            ProposedChange::Bind(spec) if spec.app_guid.is_none() => Err(Refusal::RequiresApp),
            _ => Ok(()),
        });
        kit.has_instance("i").await;
        kit.bind("i", "b").send().await.refused_as("RequiresApp");
        let route = json!({ "route": "r.example" });
        kit.bind("i", "b")
            .with("bind_resource", route)
            .send()
            .await
            .refused_as("RequiresApp");
        kit.bind("i", "a")
            .with("app_guid", "old")
            .send()
            .await
            .is(201);
        let resource = json!({ "app_guid": "new" });
        kit.bind("i", "b")
            .with("bind_resource", resource)
            .send()
            .await
            .is(201);
        let apps: Vec<_> = kit
            .script
            .calls(OperationKind::Bind)
            .into_iter()
            .map(|it| it.app)
            .collect();
        assert_eq!(apps, [Some("old".to_owned()), Some("new".to_owned())]);
        // A hook may also require it.
        kit.script.checks(|_| Ok(()));
        kit.script
            .ends(OperationKind::Bind, || Err(Error::requires_app()));
        kit.bind("i", "c").send().await.refused_as("RequiresApp");
        kit.unbind("i", "c").send().await.is(410);
    })
    .await;
}

/// Holds: B-190, B-191.
#[tokio::test]
async fn every_binding_has_its_own_credentials() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let mut passwords = Vec::new();
        for binding in ["a", "b", "c"] {
            let bound = kit.bind("i", binding).send().await.is(201);
            passwords.push(bound.json["credentials"]["password"].to_string());
        }
        passwords.sort();
        passwords.dedup();
        assert_eq!(passwords.len(), 3);
        kit.unbind("i", "b").send().await.is(200);
        kit.fetch_binding("i", "a").send().await.is(200);
        kit.fetch_binding("i", "c").send().await.is(200);
    })
    .await;
}

/// Holds: B-192, B-231.
#[tokio::test]
async fn a_log_drain_returns_its_url() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LOGS).await;
        kit.script
            .gives(|_| Bound::syslog_drain("syslog-tls://logs:6514"));
        let bound = kit.bind("i", "b").plan(LOGS).send().await.is(201);
        assert_eq!(
            bound.json,
            json!({ "syslog_drain_url": "syslog-tls://logs:6514" })
        );
        assert_eq!(
            kit.fetch_binding("i", "b").send().await.is(200).json,
            bound.json
        );
    })
    .await;
}

/// Holds: B-181, B-193.
#[tokio::test]
async fn a_route_service_gets_the_route_and_may_return_a_proxy_url() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", ROUTES).await;
        let resource = json!({ "route": "app.example/path" });
        let bind = |id: &str| {
            kit.bind("i", id)
                .plan(ROUTES)
                .with("bind_resource", resource.clone())
        };
        kit.script
            .gives(|_| Bound::route(Some("https://proxy.example".to_owned())));
        let bound = bind("b").send().await.is(201);
        assert_eq!(
            bound.json,
            json!({ "route_service_url": "https://proxy.example" })
        );
        let call = kit.script.only_call(OperationKind::Bind);
        assert_eq!(call.route.as_deref(), Some("app.example/path"));
        kit.script.gives(|_| Bound::route(None));
        assert_eq!(bind("c").send().await.is(201).json, json!({}));
        assert_eq!(
            kit.fetch_binding("i", "c").send().await.is(200).json,
            json!({})
        );
    })
    .await;
}

/// Holds: B-194.
#[tokio::test]
async fn a_volume_service_returns_its_mounts() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", VOLUMES).await;
        let mounts = json!([{
            "driver": "nfs", "container_dir": "/data", "mode": "rw", "device_type": "shared",
            "device": { "volume_id": "v1", "mount_config": { "server": "n", "deep": [1] } },
        }, {
            "driver": "nfs", "container_dir": "/etc", "mode": "r", "device_type": "shared",
            "device": { "volume_id": "v2" },
        }]);
        let given = mounts.clone();
        kit.script.gives(move |_| {
            Bound::volumes(serde_json::from_value(given.clone()).expect("volume mounts"))
        });
        let bound = kit.bind("i", "b").plan(VOLUMES).send().await.is(201);
        assert_eq!(bound.json, json!({ "volume_mounts": mounts }));
    })
    .await;
}

/// Holds: B-192, B-193, B-194.
#[tokio::test]
async fn a_bind_result_that_the_catalog_does_not_require_fails() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let kinds: [fn(&str) -> Bound; 3] = [
            |_| Bound::syslog_drain("syslog://x"),
            |_| Bound::route(Some("https://x".to_owned())),
            |_| Bound::volumes(Vec::new()),
        ];
        for kind in kinds {
            kit.script.gives(kind);
            let reply = kit.bind("i", "b").send().await.is(500);
            assert!(!reply.text.contains("_url") && !reply.text.contains("volume"));
            kit.fetch_binding("i", "b").send().await.is(404);
        }
    })
    .await;
}

/// Holds: B-195.
#[tokio::test]
async fn endpoints_name_hosts_ports_and_a_protocol() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let given = json!([
            { "host": "db.example", "ports": ["5432", "9000-9010"] },
            { "host": "10.0.0.1", "ports": ["53"], "protocol": "udp" },
            { "host": "::1", "ports": ["1"], "protocol": "all" },
        ]);
        kit.script.gives(move |_| {
            let endpoints = serde_json::from_value(given.clone()).expect("endpoints");
            Bound::credentials(json!({})).endpoints(endpoints)
        });
        let bound = kit.bind("i", "b").send().await.is(201);
        assert_eq!(
            bound.json["endpoints"],
            json!([
                { "host": "db.example", "ports": ["5432", "9000-9010"], "protocol": "tcp" },
                { "host": "10.0.0.1", "ports": ["53"], "protocol": "udp" },
                { "host": "::1", "ports": ["1"], "protocol": "all" },
            ])
        );
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        assert_eq!(fetched.json["endpoints"], bound.json["endpoints"]);
        for wrong in [
            json!([]),
            json!(["0"]),
            json!(["9-8"]),
            json!([443]),
            json!(["http"]),
        ] {
            let endpoint = json!([{ "host": "h", "ports": wrong }]);
            assert!(serde_json::from_value::<Vec<sutler_osb::Endpoint>>(endpoint).is_err());
        }
    })
    .await;
}

/// Holds: B-189, B-196, B-197.
#[tokio::test]
async fn expiry_and_renewal_are_utc_with_a_fraction_and_the_only_metadata() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.script.gives(|_| {
            let at = |seconds| Some(UtcTime::from_epoch(seconds, 0).expect("a time"));
            let metadata = BindingMetadata::new(at(4_102_444_800), at(4_102_444_000));
            Bound::credentials(json!({ "a": 1 })).metadata(metadata.expect("renewal comes first"))
        });
        let bound = kit.bind("i", "b").send().await.is(201);
        let metadata = json!({ "expires_at": "2100-01-01T00:00:00.000000Z",
            "renew_before": "2099-12-31T23:46:40.000000Z" });
        assert_eq!(bound.json["metadata"], metadata);
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        assert_eq!(fetched.json["metadata"], metadata);
        let at = |seconds| Some(UtcTime::from_epoch(seconds, 0).expect("a time"));
        assert!(BindingMetadata::new(at(10), at(11)).is_err());
    })
    .await;
}

/// Holds: B-180, B-198, D-12, D-13.
#[tokio::test]
async fn a_bind_needs_an_instance_of_a_bindable_plan() {
    on_each_store(async |kit| {
        kit.bind("i", "b").send().await.is(404);
        kit.bind("i", "b").accepts_incomplete().send().await.is(404);
        kit.has_instance_of("alone", UNBINDABLE).await;
        kit.bind("alone", "b").plan(UNBINDABLE).send().await.is(400);
        kit.has_instance_of("bare", BARE).await;
        kit.bind("bare", "b").plan(BARE).send().await.is(400);
        kit.has_instance("i").await;
        // A new binding of another plan or offering than the instance's.
        kit.bind("i", "b").only_plan(LARGE).send().await.is(400);
        kit.bind("i", "b").plan(BINDABLE).send().await.is(400);
        kit.bind("i", "b").service(PLAIN).send().await.is(400);
        kit.bind("i", "b")
            .service(DB)
            .only_plan("unknown")
            .send()
            .await
            .is(400);
        kit.deprovision("i").send().await.is(200);
        kit.bind("i", "b").send().await.is(404);
        assert!(kit.script.calls(OperationKind::Bind).is_empty());
    })
    .await;
}

/// Holds: B-129, B-185.
#[tokio::test]
async fn parameters_that_break_the_schema_of_bindings_are_a_400() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        for wrong in [
            json!({ "size": 0 }),
            json!({ "size": "x" }),
            json!({ "other": 1 }),
        ] {
            kit.bind("i", "b")
                .plan(LARGE)
                .parameters(wrong)
                .send()
                .await
                .is(400);
        }
        kit.bind("i", "b")
            .plan(LARGE)
            .parameters(json!({ "size": 1 }))
            .send()
            .await
            .is(201);
    })
    .await;
}

/// Holds: B-184, B-231.
#[tokio::test]
async fn an_asynchronous_bind_returns_its_credentials_by_fetch_and_then_by_200() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bind = kit.bind("i", "b").plan(SMALL).accepts_incomplete();
        let accepted = bind.clone().send().await.is(202);
        assert_eq!(accepted.json.get("credentials"), None::<&Value>);
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        let again = bind.send().await.is(200);
        assert_eq!(again.json["credentials"], fetched.json["credentials"]);
    })
    .await;
}
