//! Lists and single resources: filters, pages, and data that is never shown.

use super::{command, get, on_each};
use crate::fixture::test_catalog::{self, LARGE, MAINTENANCE};
use crate::fixture::{Fixture, catalog_of};
use serde_json::{Value, json};
use sutler_osb::OperationKind::Provision;

async fn ids(kit: &Fixture, path: &str, query: &[(&str, &str)]) -> Vec<String> {
    let request = query.iter().fold(get(kit, path), |request, (name, value)| {
        request.query(name, value)
    });
    let reply = request.send().await.is(200);
    let items = reply.json["items"].as_array().expect("a list");
    items.iter().map(|it| text(&it["id"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn instances_are_found_by_plan_service_and_lifecycle() {
    on_each(async |kit| {
        for id in ["a", "b", "c/d"] {
            kit.has_instance(id).await;
        }
        kit.script.fails(Provision, "no room");
        kit.finish("x", kit.provision("x").accepts_incomplete())
            .await;
        kit.deprovision("b").send().await.is(200);
        assert_eq!(ids(kit, "instances", &[]).await, ["a", "c/d", "x"]);
        let failed = [("lifecycle", "create_failed")];
        assert_eq!(ids(kit, "instances", &failed).await, ["x"]);
        assert_eq!(ids(kit, "instances", &[("lifecycle", "gone")]).await, ["b"]);
        let line = &get(kit, "instances").send().await.json["items"][0];
        let (plan, service) = (text(&line["plan_id"]), text(&line["service_id"]));
        let both = [("plan", plan.as_str()), ("lifecycle", "live")];
        assert_eq!(ids(kit, "instances", &both).await, ["a", "c/d"]);
        let of_service = [("service", service.as_str())];
        assert_eq!(ids(kit, "instances", &of_service).await.len(), 3);
        assert!(
            ids(kit, "instances", &[("service", "no-such")])
                .await
                .is_empty()
        );
        get(kit, "instances")
            .query("lifecycle", "alive")
            .send()
            .await
            .is(400);
    })
    .await;
}

#[tokio::test]
async fn instances_show_their_version_and_an_available_upgrade() {
    on_each(async |kit| {
        kit.has_instance_of("old", LARGE).await;
        kit.has_instance("none").await;
        let line = async |id: &str| {
            let shown = get(kit, &format!("instances/{id}")).send().await.is(200);
            (
                shown.json["version"].clone(),
                shown.json["upgrade_to"].clone(),
            )
        };
        assert_eq!(line("old").await, (json!(MAINTENANCE), Value::Null));
        let mut newer = test_catalog::catalog();
        newer["services"][0]["plans"][1]["maintenance_info"]["version"] = json!("2.0.0");
        let replaced = kit.running.replace_catalog(catalog_of(newer)).await;
        replaced.expect("it is valid");
        kit.has_instance_of("new", LARGE).await;
        assert_eq!(line("old").await, (json!(MAINTENANCE), json!("2.0.0")));
        assert_eq!(line("new").await, (json!("2.0.0"), Value::Null));
        assert_eq!(line("none").await, (Value::Null, Value::Null));
        let at = [("version", MAINTENANCE)];
        assert_eq!(ids(kit, "instances", &at).await, ["old"]);
        assert_eq!(
            ids(kit, "instances", &[("upgradable", "true")]).await,
            ["old"]
        );
        let others = [("upgradable", "false")];
        assert_eq!(ids(kit, "instances", &others).await, ["new", "none"]);
    })
    .await;
}

#[tokio::test]
async fn instances_and_bindings_are_listed_in_the_requested_order() {
    on_each(async |kit| {
        kit.has_instance("b").await;
        kit.script.fails(Provision, "no room");
        kit.finish("c", kit.provision("c").accepts_incomplete())
            .await;
        kit.script.succeeds(Provision);
        kit.has_instance("a").await;
        assert_eq!(ids(kit, "instances", &[]).await, ["a", "b", "c"]);
        let by_lifecycle = [("order", "lifecycle")];
        assert_eq!(ids(kit, "instances", &by_lifecycle).await, ["c", "a", "b"]);
        let by_plan = [("order", "plan")];
        assert_eq!(ids(kit, "instances", &by_plan).await, ["a", "b", "c"]);
        let live = [("order", "lifecycle"), ("lifecycle", "live")];
        assert_eq!(ids(kit, "instances", &live).await, ["a", "b"]);
        for id in ["two", "one"] {
            kit.bind("a", id).send().await.is(201);
        }
        assert_eq!(ids(kit, "bindings", &by_lifecycle).await, ["one", "two"]);
        let request = get(kit, "instances").query("order", "colour");
        request.send().await.is(400);
    })
    .await;
}

#[tokio::test]
async fn pages_are_consecutive_and_complete() {
    on_each(async |kit| {
        for n in 0..7 {
            kit.has_instance(&format!("i{n}")).await;
        }
        for path in ["instances", "operations", "audit"] {
            if path == "audit" {
                for n in 0..7 {
                    command(kit, &format!("instances/i{n}/retry")).send().await;
                }
            }
            let (mut listed, mut after) = (Vec::new(), None::<String>);
            loop {
                let request = get(kit, path).query("limit", "3");
                let request = match &after {
                    Some(after) => request.query("after", after),
                    None => request,
                };
                let page = request.send().await.is(200);
                let items = page.json["items"].as_array().expect("a list");
                assert!(items.len() <= 3);
                listed.extend(items.iter().map(|it| text(&it["id"])));
                match page.json["next"].as_str() {
                    Some(next) => after = Some(next.to_owned()),
                    None => break,
                }
            }
            let count = listed.len();
            listed.sort();
            listed.dedup();
            assert_eq!(listed.len(), count, "{path}: nothing twice");
            assert!(count >= 7, "{path}: nothing is missing");
        }
        get(kit, "instances")
            .query("after", "nonsense")
            .send()
            .await
            .is(400);
        get(kit, "instances")
            .query("limit", "201")
            .send()
            .await
            .is(400);
    })
    .await;
}

#[tokio::test]
async fn operations_are_newest_first_and_filtered_by_outcome_and_resource() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        kit.script.fails(Provision, "no room");
        kit.finish("x", kit.provision("x").accepts_incomplete())
            .await;
        let failed = get(kit, "operations")
            .query("outcome", "failed")
            .send()
            .await;
        assert_eq!(failed.json["items"].as_array().map(Vec::len), Some(1));
        let line = &failed.json["items"][0];
        assert_eq!(line["instance_id"], "x");
        assert_eq!(line["description"], "no room");
        let of_instance = get(kit, "operations").query("instance", "i").send().await;
        assert_eq!(of_instance.json["items"].as_array().map(Vec::len), Some(1));
        let of_binding = get(kit, "operations")
            .query("instance", "i")
            .query("binding", "b");
        let of_binding = of_binding.send().await;
        assert_eq!(of_binding.json["items"][0]["verb"], "bind");
        get(kit, "operations")
            .query("binding", "b")
            .send()
            .await
            .is(400);
        let id = text(&line["id"]);
        let shown = get(kit, &format!("operations/{id}")).send().await.is(200);
        assert_eq!(shown.json["state"], "failed");
    })
    .await;
}

#[tokio::test]
async fn no_list_and_no_single_resource_shows_a_secret() {
    on_each(async |kit| {
        let secret = "c4n4ry-in-a-parameter";
        let parameters = json!({ "password": secret });
        kit.provision("i")
            .parameters(parameters.clone())
            .send()
            .await
            .is(201);
        kit.bind("i", "b")
            .parameters(parameters)
            .send()
            .await
            .is(201);
        let given = kit.fetch_binding("i", "b").send().await.is(200);
        let credentials = given.json["credentials"].as_object().expect("credentials");
        let values: Vec<String> = credentials.values().map(text).collect();
        for path in [
            "instances",
            "instances/i",
            "bindings",
            "bindings/i/b",
            "operations",
            "audit",
            "stats",
        ] {
            let shown = get(kit, path).send().await.is(200).json.to_string();
            assert!(!shown.contains(secret), "{path} shows a parameter");
            for value in values.iter().filter(|it| it.len() > 3) {
                assert!(!shown.contains(value.as_str()), "{path} shows {value}");
            }
        }
        let shown = get(kit, "instances/i").send().await;
        assert_eq!(shown.json["parameter_names"], json!(["password"]));
        assert_eq!(shown.json["state_keys"], json!(["by", "made"]));
    })
    .await;
}
