//! The only registry is removed from the configuration.

use super::image_registry;
use serde_json::{Value, json};
use sutler_servers::until;

const NOTHING: [&str; 0] = [];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn bundles_of_the_last_registry_are_served_and_shown_after_its_removal_and_then_deleted() {
    let Some(registry) = image_registry::open() else {
        return;
    };
    registry.push("left", "left-apb", "1.0.0");
    let fixture = registry.fixture("left").set("/refresh/grace", json!("1s"));
    let fixture = fixture.set("/refresh/delete_every", json!("1s"));
    let broker = fixture.broker();
    broker.refreshed();
    let ids = broker.ids("left-apb");
    broker.expect_status(201, "PUT", "i", &ids);
    let shown = broker.run_ok(&["admin", "bundles"]);
    let offered = shown.lines().nth(1).unwrap_or_default();
    for word in [
        "left-apb",
        "1.0.0",
        "offered",
        "vault/left/left-apb:latest",
        "sha256:",
    ] {
        assert!(offered.contains(word), "{shown}");
    }
    broker.broker.signal("TERM");
    broker.broker.ended();

    let broker = fixture.set("/registry", json!([])).broker();
    assert_eq!(broker.offers(), NOTHING);
    let refused = broker.expect_status(400, "PUT", "j", &ids);
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.contains("its registry is not configured any more"),
        "{description}"
    );
    let shown = parsed(&broker.run_ok(&["admin", "bundles", "-o", "json"]));
    let item = &shown["items"][0];
    assert_eq!(
        (&item["state"], &item["version"]),
        (&json!("withdrawn"), &json!("1.0.0"))
    );
    assert_eq!(
        (&item["registry"], &item["item"]),
        (&json!("vault"), &json!("left/left-apb:latest"))
    );
    assert_eq!(item["mark"]["reason"], "not_configured");
    broker.expect_status(200, "DELETE", "i", &ids);
    assert_eq!(broker.log_of("deprovision", "i"), "deprovision by 1.0.0\n");
    until("nothing of it is left", || {
        let listed = parsed(&broker.run_ok(&["registry", "list", "-o", "json"]));
        let registries = listed["registries"].as_array().cloned().unwrap_or_default();
        registries.is_empty().then_some(())
    });
    broker.expect_status(400, "PUT", "k", &ids);
}
