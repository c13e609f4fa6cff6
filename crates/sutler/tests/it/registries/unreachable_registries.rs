//! Registries that are down, and single images that cannot be read: offered bundles stay, and everything else
//! continues.

use super::fixture::Fixture;
use super::token_registry::TokenRegistry;
use crate::http_request::BrokerRequest;
use serde_json::json;
use sutler_servers::{Intercept, until};

const NOTHING: [&str; 0] = [];

/// Regression: R16.
#[test]
fn services_of_an_unreachable_registry_stay_while_others_are_updated() {
    let (Some(lost), Some(well)) = (TokenRegistry::open(), TokenRegistry::open()) else {
        return;
    };
    lost.push("lost-apb", "1.0.0");
    well.push("well-apb", "1.0.0");
    let fixture = Fixture::new(&[lost.block("lost"), well.block("well")]);
    let broker = fixture.broker();
    broker.refreshed();
    assert_eq!(broker.offers(), ["lost-apb 1.0.0", "well-apb 1.0.0"]);

    lost.push("lost-apb", "2.0.0");
    well.push("well-apb", "2.0.0");
    lost.front.when("", Intercept::Cut);
    let after = broker.refreshed();
    assert_eq!(broker.offers(), ["lost-apb 1.0.0", "well-apb 2.0.0"]);
    assert_eq!(after["registries"][0]["failures"], 1, "{after}");
    assert_eq!(after["registries"][1]["failures"], 0, "{after}");
    broker
        .broker
        .until_logged("failed    lost (refresh 1 in a row)");

    // The server itself is down, while its proxy forwards everything.
    lost.server.kill();
    lost.front.reset();
    well.push("more-apb", "1.0.0");
    let after = broker.refreshed();
    let expected = ["lost-apb 1.0.0", "more-apb 1.0.0", "well-apb 2.0.0"];
    assert_eq!(broker.offers(), expected);
    assert_eq!(after["registries"][0]["failures"], 2, "{after}");
    let failed = "sutler_registry_failed_refreshes{registry=\"lost\"}";
    assert_eq!(broker.metric(failed).as_deref(), Some("2"));

    lost.server.start();
    let after = broker.refreshed();
    let expected = ["lost-apb 2.0.0", "more-apb 1.0.0", "well-apb 2.0.0"];
    assert_eq!(broker.offers(), expected);
    assert_eq!(after["registries"][0]["failures"], 0, "{after}");
}

/// Regression: R17.
#[test]
fn services_whose_images_cannot_be_read_stay_unchanged_and_show_the_reason() {
    let Some(registry) = TokenRegistry::open() else {
        return;
    };
    let names = ["broken", "busy", "cut", "held", "short", "well"].map(|it| format!("{it}-apb"));
    names
        .iter()
        .for_each(|name| drop(registry.push(name, "1.0.0")));
    let fixture = Fixture::new(&[registry.block("own")]);
    let broker = fixture.broker();
    broker.refreshed();
    let versions = |well: &str| -> Vec<String> {
        let version = |name: &str| match name {
            "well-apb" => format!("{name} {well}"),
            name => format!("{name} 1.0.0"),
        };
        names.iter().map(|name| version(name)).collect()
    };
    assert_eq!(broker.offers(), versions("1.0.0"));

    names
        .iter()
        .for_each(|name| drop(registry.push(name, "2.0.0")));
    let front = &registry.front;
    front.when("HEAD /v2/org/broken-apb/manifests/", Intercept::status(500));
    let patience = Intercept::status(429).with("Retry-After", "1");
    front.when("GET /v2/org/busy-apb/manifests/", patience);
    front.when("GET /v2/org/cut-apb/blobs/", Intercept::Cut);
    front.when("GET /v2/org/held-apb/manifests/", Intercept::Hold);
    front.when("GET /v2/org/short-apb/manifests/", Intercept::Truncate(40));
    let after = broker.refreshed();
    assert_eq!(broker.offers(), versions("2.0.0"));
    let own = &after["registries"][0];
    assert_eq!((&own["failures"], &own["faulty"]), (&json!(0), &json!(5)));
    for (name, word) in [
        ("broken", "500"),
        ("busy", "429"),
        ("cut", "answer"),
        ("held", "answer"),
        ("short", "digest"),
    ] {
        let fault = broker.fault("own", &format!("org/{name}-apb:latest"));
        let fault = fault.unwrap_or_default();
        assert!(fault.contains(word), "{name}: {fault:?}");
    }
    assert_eq!(broker.fault("own", "org/well-apb:latest"), None);
    // An unreadable bundle is not withdrawn: it can be provisioned.
    let faulty = "sutler_registry_faulty_items{registry=\"own\"}";
    assert_eq!(broker.metric(faulty).as_deref(), Some("5"));

    front.reset();
    broker.refreshed();
    let all = names.iter().map(|name| format!("{name} 2.0.0"));
    assert_eq!(broker.offers(), all.collect::<Vec<_>>());
    assert_eq!(broker.metric(faulty).as_deref(), Some("0"));
}

/// Regression: R18.
#[test]
fn a_broker_without_a_reachable_registry_starts_is_ready_and_offers_bundles_later() {
    let Some(registry) = TokenRegistry::open() else {
        return;
    };
    registry.push("hello-apb", "1.0.0");
    registry.front.when("", Intercept::Cut);
    let fixture = Fixture::new(&[registry.block("own")]);
    let broker = fixture.broker();
    let ready = || {
        BrokerRequest::get("/readyz")
            .send(broker.broker.address())
            .status
    };
    assert_eq!((ready(), broker.offers()), (200, Vec::new()));
    broker.refreshed();
    assert_eq!(ready(), 200);
    assert_eq!(broker.offers(), NOTHING);
    registry.front.reset();
    broker.refreshed();
    assert_eq!(broker.offers(), ["hello-apb 1.0.0"]);
    drop(broker);

    registry.front.when("", Intercept::Cut);
    let broker = fixture.broker();
    assert_eq!(broker.offers(), ["hello-apb 1.0.0"]);
    broker.refreshed();
    assert_eq!(broker.offers(), ["hello-apb 1.0.0"]);
}

#[test]
fn progress_of_a_refresh_is_shown_while_one_image_delays_it() {
    let Some(registry) = TokenRegistry::open() else {
        return;
    };
    registry.push("quick-apb", "1.0.0");
    registry.push("slow-apb", "1.0.0");
    registry
        .front
        .when("HEAD /v2/org/slow-apb/manifests/", Intercept::Hold);
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    let broker = Fixture::new(&[block]).broker();
    let progress = until("it is told", || {
        let listed = broker.run_ok(&["registry", "list"]);
        listed.contains("items looked at: 1").then_some(listed)
    });
    assert!(progress.contains("asking own; "), "{progress}");
    registry.front.reset();
    broker.refreshed();
    assert_eq!(broker.offers(), ["quick-apb 1.0.0", "slow-apb 1.0.0"]);
}
