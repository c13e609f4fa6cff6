//! The served catalog (checklist 1.6). Its rules are also tested in `sutler-osb`.

mod long_catalog;

use crate::fixture::test_catalog::{self, DB, LARGE, MOVABLE, SMALL};
use crate::fixture::{catalog_of, on_each_store};
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_broker::{Broker, BuildError, Policy};
use sutler_osb::{Catalog, OperationKind};

fn change(path: &str, value: Value) -> Value {
    let mut catalog = test_catalog::catalog();
    *catalog.pointer_mut(path).expect("the path is there") = value;
    catalog
}

fn remove(path: &str, field: &str) -> Value {
    let mut catalog = test_catalog::catalog();
    let object = catalog
        .pointer_mut(path)
        .and_then(Value::as_object_mut)
        .expect("an object");
    object.remove(field).expect("the field is there");
    catalog
}

fn insert(path: &str, field: &str, value: Value) -> Value {
    let mut catalog = test_catalog::catalog();
    let object = catalog
        .pointer_mut(path)
        .and_then(Value::as_object_mut)
        .expect("an object");
    object.insert(field.to_owned(), value);
    catalog
}

#[track_caller]
fn refused(catalog: Value, path: &str) {
    let faults = serde_json::from_value::<Catalog>(catalog)
        .expect_err(path)
        .to_string();
    assert!(faults.contains(path), "{path}: {faults}");
}

/// Holds: B-050, B-051, B-060, B-061, B-062, B-063, B-064, B-065, B-066, B-067, B-071, B-072, B-073,
/// Holds: B-074, B-075, B-076, B-077, B-078, B-180.
#[tokio::test]
async fn the_catalog_is_served_as_it_was_written_every_time() {
    on_each_store(async |kit| {
        for _ in 0..2 {
            let reply = kit.catalog().send().await.is(200);
            assert_eq!(reply.json, test_catalog::catalog());
        }
    })
    .await;
}

/// Holds: B-050, B-051.
#[tokio::test]
async fn a_catalog_may_be_empty_but_services_must_be_there() {
    on_each_store(async |kit| {
        let empty = catalog_of(json!({ "services": [] }));
        kit.running
            .replace_catalog(empty)
            .await
            .expect("nothing is wrong with it");
        assert_eq!(
            kit.catalog().send().await.is(200).json,
            json!({ "services": [] })
        );
        assert!(serde_json::from_value::<Catalog>(json!({})).is_err());
    })
    .await;
}

/// Holds: B-051.
#[tokio::test]
async fn everything_but_the_ids_may_change_while_the_broker_runs() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let renamed = change("/services/0/name", json!("database"));
        kit.running
            .replace_catalog(catalog_of(renamed.clone()))
            .await
            .expect("it is valid");
        assert_eq!(kit.catalog().send().await.is(200).json, renamed);
        kit.provision("i").send().await.is(200);
        kit.provision("j").send().await.is(201);
        kit.deprovision("i").send().await.is(200);
    })
    .await;
}

/// Holds: B-051.
#[tokio::test]
async fn a_catalog_that_cannot_be_served_leaves_the_old_one_in_place() {
    on_each_store(async |kit| {
        let mut foreign = test_catalog::catalog();
        foreign["services"][0]["id"] = json!("nobody-serves-this");
        foreign["services"][0]["name"] = json!("nor-this");
        let refused = kit.running.replace_catalog(catalog_of(foreign)).await;
        assert!(matches!(refused, Err(BuildError::NoService(_))));
        assert_eq!(
            kit.catalog().send().await.is(200).json,
            test_catalog::catalog()
        );
    })
    .await;
}

/// Holds: B-052.
#[tokio::test]
async fn a_caller_with_the_current_etag_gets_304_without_a_body() {
    on_each_store(async |kit| {
        let first = kit.catalog().send().await.is(200);
        let etag = first.header("ETag").to_owned();
        assert!(etag.starts_with('"') && etag.ends_with('"'));
        for known in [
            etag.clone(),
            format!("W/{etag}"),
            format!("\"x\", {etag}"),
            "*".to_owned(),
        ] {
            let reply = kit
                .catalog()
                .header("If-None-Match", &known)
                .send()
                .await
                .is(304);
            assert_eq!(
                (reply.text.as_str(), reply.header("ETag")),
                ("", etag.as_str())
            );
        }
        kit.catalog()
            .header("If-None-Match", "\"other\"")
            .send()
            .await
            .is(200);
        let less = catalog_of(test_catalog::catalog_without(LARGE));
        kit.running
            .replace_catalog(less)
            .await
            .expect("it is valid");
        let reply = kit
            .catalog()
            .header("If-None-Match", &etag)
            .send()
            .await
            .is(200);
        assert_ne!(reply.header("ETag"), etag);
    })
    .await;
}

/// Holds: B-053, B-054.
#[test]
fn a_catalog_that_breaks_recommendations_is_served_with_warnings() {
    for name in ["with space", "-", &"x".repeat(256)] {
        let odd = catalog_of(change("/services/0/name", json!(name)));
        assert!(!odd.warnings().is_empty(), "{name}");
    }
    // Names are case-sensitive.
    let mut catalog = test_catalog::catalog();
    catalog["services"][0]["plans"][1]["name"] = json!("Small");
    catalog_of(catalog);
}

/// Holds: B-055, B-056, B-057, B-058, B-059, B-061, B-066, B-068, B-069, B-070, B-077, B-079.
#[test]
fn missing_fields_of_a_catalog_are_reported_with_their_paths() {
    for field in ["name", "id", "description", "bindable", "plans"] {
        refused(
            remove("/services/0", field),
            &format!("services[0].{field}"),
        );
    }
    for field in ["id", "name", "description"] {
        refused(
            remove("/services/0/plans/0", field),
            &format!("services[0].plans[0].{field}"),
        );
        refused(
            change(&format!("/services/0/{field}"), json!("")),
            &format!("services[0].{field}"),
        );
    }
    refused(change("/services/0/plans", json!([])), "services[0].plans");
    refused(change("/services/1/name", json!("db")), "services[1].name");
    refused(change("/services/1/id", json!(DB)), "services[1].id");
    refused(
        change("/services/0/plans/1/name", json!("small")),
        "services[0].plans[1].name",
    );
    refused(
        change("/services/1/plans/0/id", json!(SMALL)),
        "services[1].plans[0].id",
    );
    refused(
        insert("/services/0", "requires", json!(["everything"])),
        "services[0].requires",
    );
    for field in ["id", "secret"] {
        let path = format!("services[0].dashboard_client.{field}");
        refused(remove("/services/0/dashboard_client", field), &path);
    }
    for version in ["1", "1.2", "v1.2.3", "01.2.3", ""] {
        let odd = change(
            "/services/0/plans/1/maintenance_info/version",
            json!(version),
        );
        refused(odd, "maintenance_info.version");
    }
}

/// Holds: B-079.
#[test]
fn a_parameter_schema_names_its_draft_is_self_contained_and_is_not_too_large() {
    let at = "/services/0/plans/1/schemas/service_instance/create/parameters";
    let schema = |extra: Value| {
        let mut schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
        schema
            .as_object_mut()
            .expect("an object")
            .extend(extra.as_object().cloned().expect("too"));
        change(at, schema)
    };
    let path = "schemas.service_instance.create.parameters";
    refused(change(at, json!({ "type": "object" })), path);
    refused(
        schema(json!({ "$ref": "https://elsewhere/schema.json" })),
        path,
    );
    refused(
        schema(json!({ "description": "x".repeat(64 * 1024) })),
        path,
    );
    catalog_of(schema(
        json!({ "$ref": "#/definitions/a", "definitions": { "a": {} } }),
    ));
}

/// Holds: B-058, B-067, B-072, B-073, B-075, B-165, B-180.
#[tokio::test]
async fn a_plan_overrides_its_offering() {
    on_each_store(async |kit| {
        // `plain` is not bindable and does not set plan changes; two of its plans differ.
        kit.has_instance_of("bound", test_catalog::BINDABLE).await;
        kit.bind("bound", "b")
            .plan(test_catalog::BINDABLE)
            .send()
            .await
            .is(201);
        kit.has_instance_of("bare", test_catalog::BARE).await;
        kit.bind("bare", "b")
            .plan(test_catalog::BARE)
            .send()
            .await
            .is(400);
        kit.update("bare").plan(MOVABLE).send().await.is(422);
        kit.has_instance_of("movable", MOVABLE).await;
        kit.update("movable")
            .plan(test_catalog::BARE)
            .send()
            .await
            .is(200);
        // `db` supports both; two of its plans do not.
        kit.has_instance_of("alone", test_catalog::UNBINDABLE).await;
        kit.bind("alone", "b")
            .plan(test_catalog::UNBINDABLE)
            .send()
            .await
            .is(400);
        kit.has_instance_of("fixed", test_catalog::FIXED).await;
        kit.update("fixed").plan(SMALL).send().await.is(422);
    })
    .await;
}

/// Holds: B-113.
#[tokio::test]
async fn an_offering_whose_bindings_cannot_be_fetched_may_not_bind_only_asynchronously() {
    on_each_store(async |kit| {
        kit.script
            .policy(OperationKind::Bind, Policy::default().required_async());
        let mut broker = Broker::new(catalog_of(test_catalog::catalog()))
            .in_memory()
            .without_auth();
        for service in catalog_of(test_catalog::catalog()).services() {
            broker = broker.untyped_service(service.id.as_str(), Arc::clone(&kit.script) as _);
        }
        let refused = broker.start().await.err().expect("it must not start");
        assert!(matches!(refused, BuildError::AsyncBindNotRetrievable(name) if name == "plain"));
    })
    .await;
}

/// Holds: D-09.
#[tokio::test]
async fn without_newer_fields_in_the_catalog_older_schemas_are_satisfied() {
    on_each_store(async |kit| {
        let catalog = kit.catalog().send().await.json;
        let names = catalog["services"].as_array().into_iter().flatten();
        let simple = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        for service in names {
            assert!(
                service["name"]
                    .as_str()
                    .is_some_and(|name| name.chars().all(simple))
            );
        }
        let plan = catalog["services"][0]["plans"][0]
            .as_object()
            .cloned()
            .expect("a plan");
        assert_eq!(
            plan.keys().collect::<Vec<_>>(),
            ["description", "id", "name"]
        );
        let only = |json: &Value, known: &[&str]| {
            let mut keys = json.as_object().expect("an object").keys();
            keys.all(|key| known.contains(&key.as_str()))
        };
        let put = kit.provision("i").accepts_incomplete().send().await.is(202);
        assert!(
            only(&put.json, &["dashboard_url", "operation"]),
            "{}",
            put.text
        );
        kit.poll_until_done(kit.poll("i")).await;
        let given = [
            "credentials",
            "syslog_drain_url",
            "route_service_url",
            "volume_mounts",
        ];
        let bind = kit.bind("i", "b").send().await.is(201);
        assert!(only(&bind.json, &given), "{}", bind.text);
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        assert!(only(&fetched.json, &given), "{}", fetched.text);
    })
    .await;
}
