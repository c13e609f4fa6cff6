//! A catalog that is too long for a single piece, on a real port.

use crate::fixture::scripted_service::Script;
use crate::fixture::server_port::Port;
use crate::fixture::{AUTHORIZATION, VERSION, WAIT_LIMIT, catalog_of};
use reqwest::{Client, ClientBuilder, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// A catalog with this number of offerings, each with a text of this length.
fn offerings(count: usize, letters: usize) -> Vec<Value> {
    let one = |nth: usize| {
        json!({
            "id": format!("service-{nth}"), "name": format!("name-{nth}"), "bindable": false,
            "description": "x".repeat(letters),
            "plans": [{"id": format!("plan-{nth}"), "name": "only", "description": "The only one."}],
        })
    };
    (0..count).map(one).collect()
}

async fn open() -> Port {
    let others = Arc::new(Script::default());
    Port::open(|broker| broker.other_services(others)).await
}

async fn offer(port: &Port, services: &[Value]) {
    let catalog = catalog_of(json!({ "services": services }));
    let replaced = port.running.replace_catalog(catalog).await;
    replaced.expect("nothing is wrong with it");
}

async fn get_catalog(client: &Client, port: &Port, known: &str) -> Response {
    let request = client
        .get(format!("http://{}/v2/catalog", port.address))
        .header("Authorization", AUTHORIZATION)
        .header(VERSION, "2.17")
        .header("If-None-Match", known);
    request.send().await.expect("an answer")
}

fn client(protocol: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    let built = protocol(Client::builder().timeout(WAIT_LIMIT)).build();
    built.expect("a client")
}

fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name).expect(name);
    value.to_str().expect("text").to_owned()
}

/// Holds: B-050, B-051, B-052.
#[tokio::test]
async fn a_long_catalog_is_complete_with_its_length_before_and_after_a_change() {
    let port = open().await;
    let mut services = offerings(700, 700);
    let clients = [
        client(ClientBuilder::http1_only),
        client(ClientBuilder::http2_prior_knowledge),
    ];
    let mut known = "\"none\"".to_owned();
    for change in 0..3 {
        match change {
            0 => {}
            1 => services[333]["description"] = json!("Another."),
            _ => drop(services.drain(100..300)),
        }
        offer(&port, &services).await;
        let expected = json!({ "services": services });
        let mut etag = String::new();
        for client in &clients {
            let response = get_catalog(client, &port, &known).await;
            assert_eq!(response.status(), 200);
            assert!(!response.headers().contains_key("transfer-encoding"));
            etag = header(&response, "etag");
            let announced = header(&response, "content-length");
            let bytes = response.bytes().await.expect("all of it");
            assert_eq!(bytes.len().to_string(), announced);
            let json: Value = serde_json::from_slice(&bytes).expect("JSON");
            assert!(json == expected, "another catalog than was offered");
            let again = get_catalog(client, &port, &etag).await;
            assert_eq!(again.status(), 304);
            assert!(again.bytes().await.expect("no body").is_empty());
        }
        known = etag;
    }
    port.close().await;
}

#[tokio::test]
async fn a_slow_reader_gets_the_catalog_as_of_its_request() {
    let port = open().await;
    let services = offerings(100, 100_000);
    offer(&port, &services).await;
    let client = client(ClientBuilder::http1_only);
    let mut response = get_catalog(&client, &port, "\"none\"").await;
    let mut read = Vec::new();
    let mut changed = false;
    while let Some(chunk) = response.chunk().await.expect("more of it") {
        read.extend_from_slice(&chunk);
        if !changed {
            // The response being sent is not yet half done.
            offer(&port, &services[..20]).await;
            changed = true;
        }
    }
    let json: Value = serde_json::from_slice(&read).expect("JSON");
    assert!(json == json!({ "services": services }), "it has changed");
    port.close().await;
}
