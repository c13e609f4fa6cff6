//! Authentication, prefixes, unusual ids in URLs (checklist 1.2 and 1.3).

mod key_fetches;
mod provider;
mod tokens;
mod users;

use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::{DB, SMALL};
use crate::fixture::{
    AUTHORIZATION, VERSION, catalog_of, on_each_store, on_each_store_with, test_catalog,
};
use axum::Router;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::sync::Arc;
use sutler_broker::Broker;
use sutler_journal::{KeyRing, MemoryStore};
use sutler_osb::OperationKind;

/// The header of basic authentication.
fn basic(pair: &str) -> String {
    format!("Basic {}", STANDARD.encode(pair))
}

/// Holds: B-010.
#[tokio::test]
async fn all_ten_endpoints_answer_401_without_the_right_credentials() {
    on_each_store(async |kit| {
        let wrong = [
            basic("user:wrong"),
            basic("other:s3cret"),
            basic("user:s3cret "),
            basic("user"),
            basic("User:s3cret"),
            basic(""),
            "Basic".to_owned(),
            "Basic !".to_owned(),
            AUTHORIZATION.replace("Basic", "Bearer"),
            "dXNlcjpzM2NyZXQ=".to_owned(),
        ];
        for request in kit.ten_endpoints("i", "b") {
            let reply = request
                .clone()
                .without_header("Authorization")
                .send()
                .await
                .is(401);
            assert!(reply.header("WWW-Authenticate").starts_with("Basic "));
            assert!(!reply.description().is_empty());
            for header in &wrong {
                request
                    .clone()
                    .header("Authorization", header)
                    .send()
                    .await
                    .is(401);
            }
        }
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-010, D-06.
#[tokio::test]
async fn credentials_are_checked_before_anything_else() {
    on_each_store(async |kit| {
        for request in kit.ten_endpoints("i", "b") {
            let request = request.header("Authorization", "Basic d3Jvbmc6d3Jvbmc=");
            request.clone().without_header(VERSION).send().await.is(401);
            request
                .clone()
                .header(VERSION, "garbage")
                .send()
                .await
                .is(401);
            request
                .clone()
                .query("accepts_incomplete", "?")
                .send()
                .await
                .is(401);
            request
                .header(VERSION, "99.0")
                .bytes("not json")
                .send()
                .await
                .is(401);
        }
        kit.request("POST", "/v2/catalog")
            .without_header("Authorization")
            .send()
            .await
            .is(401);
        let bad = kit.request("PUT", "/v2/service_instances/%FF");
        bad.without_header("Authorization").send().await.is(401);
    })
    .await;
}

/// Holds: B-012.
#[tokio::test]
async fn without_authentication_every_request_of_an_outer_layer_is_accepted() {
    on_each_store_with(Broker::without_auth, async |kit| {
        let catalog = kit.catalog().without_header("Authorization");
        catalog.clone().send().await.is(200);
        catalog
            .header("Authorization", "Bearer agreed-elsewhere")
            .send()
            .await
            .is(200);
    })
    .await;
}

/// Holds: B-010, B-013.
#[tokio::test]
async fn the_router_can_be_nested_under_any_prefix() {
    on_each_store(async |kit| {
        let outer = Router::new().nest("/some/broker", kit.router());
        let here = |request: RequestBuilder| request.through(&outer, "/some/broker");
        here(kit.provision("a/b")).send().await.is(201);
        here(kit.bind("a/b", "ü")).send().await.is(201);
        assert_eq!(
            here(kit.catalog()).send().await.is(200).json,
            test_catalog::catalog()
        );
        here(kit.fetch("a/b")).send().await.is(200);
        here(kit.poll("a/b")).send().await.is(200);
        here(kit.catalog())
            .without_header("Authorization")
            .send()
            .await
            .is(401);
        kit.fetch_binding("a/b", "ü").send().await.is(200);
    })
    .await;
}

/// Holds: B-010, B-013, B-253.
#[tokio::test]
async fn two_platforms_on_one_store_never_see_each_other() {
    on_each_store(async |kit| {
        let store = Arc::new(MemoryStore::new());
        let text = KeyRing::fresh_line("k");
        let mut outer = Router::new();
        for (name, password) in [("one", "p1"), ("two", "p2")] {
            let mut broker = Broker::new(catalog_of(test_catalog::catalog()))
                .shared_store(store.clone(), KeyRing::parse(&text).expect("one key"))
                .realm(name)
                .basic_auth(name, password);
            for service in catalog_of(test_catalog::catalog()).services() {
                broker = broker.untyped_service(service.id.as_str(), kit.script.clone());
            }
            let router = broker.into_router().await.expect("the broker starts");
            outer = outer.nest(&format!("/{name}"), router);
        }
        let as_one = |request: RequestBuilder| {
            request
                .through(&outer, "/one")
                .header("Authorization", "Basic b25lOnAx")
        };
        let as_two = |request: RequestBuilder| {
            request
                .through(&outer, "/two")
                .header("Authorization", "Basic dHdvOnAy")
        };
        as_one(kit.provision("i")).send().await.is(201);
        as_two(kit.fetch("i")).send().await.is(404);
        as_two(kit.deprovision("i")).send().await.is(410);
        as_two(kit.provision("i").with("space_guid", "elsewhere"))
            .send()
            .await
            .is(201);
        as_two(kit.deprovision("i")).send().await.is(200);
        as_one(kit.fetch("i")).send().await.is(200);
        let crossed = kit.fetch("i").through(&outer, "/two");
        crossed
            .header("Authorization", "Basic b25lOnAx")
            .send()
            .await
            .is(401);
    })
    .await;
}

/// Holds: B-020, B-131.
#[tokio::test]
async fn ids_may_contain_any_character_and_stay_distinct() {
    on_each_store(async |kit| {
        let ids = [
            "a",
            "A",
            "a ",
            " a",
            "a/b",
            "a%2Fb",
            "a?b",
            "a#b",
            "a&b=c",
            "ä",
            "a\u{308}",
            "日本",
            "..",
            ".",
            "last_operation",
            "service_bindings",
            "%",
            "+",
            "\u{1F600}",
            "a\nb",
            "'; --",
        ];
        for id in ids {
            let parameters = json!({ "mine": id });
            kit.provision(id)
                .parameters(parameters)
                .send()
                .await
                .is(201);
        }
        for id in ids {
            let fetched = kit.fetch(id).query("service_id", DB).send().await.is(200);
            assert_eq!(fetched.json["parameters"]["mine"], id);
            for binding in ["x/y", id] {
                kit.bind(id, binding).send().await.is(201);
                kit.fetch_binding(id, binding)
                    .query("plan_id", SMALL)
                    .send()
                    .await
                    .is(200);
                kit.poll_binding(id, binding)
                    .operation("ä/ö ü")
                    .send()
                    .await
                    .is(200);
            }
        }
        let received: Vec<String> = kit
            .script
            .calls(OperationKind::Provision)
            .into_iter()
            .map(|it| it.instance)
            .collect();
        assert_eq!(received, ids);
    })
    .await;
}

/// Holds: B-020.
#[tokio::test]
async fn an_invalid_id_is_refused() {
    on_each_store(async |kit| {
        let long = "x".repeat(513);
        for segment in ["%FF", "a%00b", "%zz", long.as_str()] {
            let path = format!("/v2/service_instances/{segment}");
            let body = json!({ "service_id": DB, "plan_id": SMALL, "organization_guid": "o",
                "space_guid": "s" });
            let reply = kit
                .request("PUT", path.as_str())
                .fields(body)
                .send()
                .await
                .is(400);
            assert!(!reply.description().is_empty());
            kit.request("GET", format!("{path}/service_bindings/b"))
                .send()
                .await
                .is(400);
            kit.request(
                "GET",
                format!("/v2/service_instances/i/service_bindings/{segment}"),
            )
            .send()
            .await
            .is(400);
        }
    })
    .await;
}

/// Holds: B-021, B-086.
#[tokio::test]
async fn operations_are_named_with_unreserved_characters_only() {
    on_each_store(async |kit| {
        let unreserved = |text: &str| {
            !text.is_empty()
                && text.len() <= 10_000
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
        };
        let mut operations = vec![
            kit.provision("i")
                .accepts_incomplete()
                .send()
                .await
                .operation(),
        ];
        kit.poll_until_done(kit.poll("i")).await;
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        operations.push(patch.send().await.operation());
        kit.poll_until_done(kit.poll("i")).await;
        operations.push(
            kit.bind("i", "b")
                .accepts_incomplete()
                .send()
                .await
                .operation(),
        );
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        operations.push(
            kit.unbind("i", "b")
                .accepts_incomplete()
                .send()
                .await
                .operation(),
        );
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        operations.push(
            kit.deprovision("i")
                .accepts_incomplete()
                .send()
                .await
                .operation(),
        );
        assert!(operations.iter().all(|it| unreserved(it)), "{operations:?}");
        operations.sort();
        operations.dedup();
        assert_eq!(operations.len(), 5, "each has a name of its own");
    })
    .await;
}
