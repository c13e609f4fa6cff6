//! Routes of extensions: same authentication and limits as the ten endpoints, and only if they are added.

use crate::fixture::{Fixture, VERSION, in_memory, on_each_store};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use sutler_broker::{
    Broker, Error, ExtensionRequest, ExtensionResponse, ExtensionRoutes, Platform, Result,
};

/// Returns the request it receives.
struct Echo;

#[async_trait]
impl ExtensionRoutes for Echo {
    fn methods(&self, path: &[String]) -> Option<&'static str> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match *path {
            ["echo"] | ["echo", _] => Some("DELETE, POST"),
            // An endpoint of the specification.
            ["catalog"] => Some("GET"),
            _ => None,
        }
    }

    async fn answer(&self, request: ExtensionRequest) -> Result<ExtensionResponse> {
        match request.path.get(1).map(String::as_str) {
            None => Ok(ExtensionResponse::Json(json!({
                "caller": request.caller.name.to_string(),
                "body": String::from_utf8_lossy(&request.body),
                "type": request.content_type,
            }))),
            Some("nothing") => Ok(ExtensionResponse::Empty),
            Some("wrong") => Err(Error::invalid("This is wrong; mend it.")),
            Some("later") => Err(Error::transient("Not now; come again.")),
            Some("broken") => Err(Error::failed("It did not work.").because("a secret cause")),
            Some(other) => Ok(ExtensionResponse::Absent(format!("There is no {other}."))),
        }
    }
}

fn with_echo(kit: &Fixture) {
    kit.running.add_routes(Arc::new(Echo));
}

#[tokio::test]
async fn a_path_that_no_extension_serves_is_404() {
    on_each_store(async |kit| {
        kit.request("POST", "/v2/echo").send().await.is(404);
        with_echo(kit);
        kit.request("POST", "/v2/other").send().await.is(404);
        kit.request("POST", "/v2/echo/a/b").send().await.is(404);
    })
    .await;
}

#[tokio::test]
async fn an_extension_route_needs_no_version_and_gets_its_caller() {
    let kit = in_memory(|broker| broker).await;
    with_echo(&kit);
    let request = kit.request("POST", "/v2/echo").bytes("a=b");
    let request = request.header("Content-Type", "text/form");
    let answer = request.without_header(VERSION).send().await.is(200);
    let expected = json!({ "caller": "user", "body": "a=b", "type": "text/form" });
    assert_eq!(answer.json, expected);
    let empty = kit
        .request("DELETE", "/v2/echo/nothing")
        .send()
        .await
        .is(204);
    assert_eq!(empty.text, "");
    let absent = kit.request("DELETE", "/v2/echo/a%2Fb").send().await.is(404);
    assert_eq!(absent.description(), "There is no a/b.");
}

#[tokio::test]
async fn errors_are_mapped_to_statuses_without_their_cause() {
    let kit = in_memory(|broker| broker).await;
    with_echo(&kit);
    for (path, status, expected) in [
        ("wrong", 400, "This is wrong; mend it."),
        ("later", 503, "Not now; come again."),
        ("broken", 500, "It did not work."),
    ] {
        let path = format!("/v2/echo/{path}");
        let answer = kit.request("POST", path).send().await.is(status);
        assert_eq!(answer.description(), expected);
    }
}

#[tokio::test]
async fn the_same_authentication_and_limits_apply() {
    let kit = in_memory(|broker| broker.settings(|it| it.body_bytes_max = 10)).await;
    with_echo(&kit);
    let stranger = kit
        .request("POST", "/v2/echo")
        .without_header("Authorization");
    stranger.send().await.is(401);
    let long = kit.request("POST", "/v2/echo").bytes("x".repeat(11));
    long.send().await.is(413);
    let other = kit.request("GET", "/v2/echo").send().await.is(405);
    assert_eq!(other.header("Allow"), "DELETE, POST");
}

#[tokio::test]
async fn extensions_cannot_replace_endpoints_of_the_specification() {
    let kit = in_memory(|broker| broker).await;
    with_echo(&kit);
    let catalog = kit.catalog().send().await.is(200);
    assert!(catalog.json["services"].is_array(), "{}", catalog.text);
}

#[tokio::test]
async fn every_platform_has_extension_routes_below_its_prefix() {
    let two =
        |broker: Broker| broker.platform(Platform::at("/cf").realm("cf").basic_auth("cf", "other"));
    let kit = in_memory(two).await;
    with_echo(&kit);
    let request = kit
        .request("POST", "/v2/echo")
        .through(&kit.router(), "/cf");
    request.clone().send().await.is(401);
    let answer = request.header("Authorization", "Basic Y2Y6b3RoZXI=");
    assert_eq!(answer.send().await.is(200).json["caller"], "cf");
}
