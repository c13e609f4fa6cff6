//! Images for Automation Broker: they have one label and nothing else.

use super::image_registry;
use serde_json::json;
use sutler_servers::until;

#[test]
fn an_image_with_only_the_old_label_is_listed_provisioned_bound_and_deprovisioned() {
    let Some(registry) = image_registry::open() else {
        return;
    };
    registry.push("old", "greeter-apb", "1.0.0");
    let fixture = registry.fixture("old");
    let broker = fixture.broker();
    broker.refreshed();
    assert_eq!(broker.offers(), ["greeter-apb 1.0.0"]);
    let ids = broker.ids("greeter-apb");
    broker.expect_status(201, "PUT", "i", &ids);
    assert_eq!(broker.log_of("provision", "i"), "provision by 1.0.0\n");
    let bound = broker.expect_status(201, "PUT", "i/service_bindings/b", &ids);
    assert_eq!(bound["credentials"], json!({ "version": "1.0.0" }));
    broker.expect_status(200, "DELETE", "i/service_bindings/b", &ids);
    broker.expect_status(200, "DELETE", "i", &ids);
    assert_eq!(broker.log_of("deprovision", "i"), "deprovision by 1.0.0\n");
    until("no container is left", || {
        let left = ["ps", "-aq", "--filter", "label=sutler.bundle=greeter-apb"];
        registry.podman.podman(&left).is_empty().then_some(())
    });
}
