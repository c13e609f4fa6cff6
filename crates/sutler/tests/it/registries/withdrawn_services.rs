//! Services whose image was deleted or replaced while instances use it: each instance keeps the version that
//! created it, in containers of exactly that version.

use super::image_registry;
use serde_json::json;
use sutler_servers::until;

const NOTHING: [&str; 0] = [];

/// Regression: R19.
#[test]
fn a_service_whose_image_was_deleted_is_hidden_serves_its_instance_and_is_then_removed() {
    let Some(registry) = image_registry::open() else {
        return;
    };
    let used = registry.push("deleted", "used-apb", "1.0.0");
    let unused = registry.push("deleted", "unused-apb", "1.0.0");
    let fixture = registry
        .fixture("deleted")
        .set("/refresh/grace", json!("1s"));
    let broker = fixture.set("/refresh/delete_every", json!("1s")).broker();
    broker.refreshed();
    let ids = broker.ids("used-apb");
    broker.expect_status(201, "PUT", "i", &ids);
    broker.expect_status(201, "PUT", "i/service_bindings/b", &ids);

    registry.delete("deleted", "used-apb", &used);
    registry.delete("deleted", "unused-apb", &unused);
    broker.refreshed();
    assert_eq!(broker.offers(), NOTHING);
    let refused = broker.expect_status(400, "PUT", "j", &ids);
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.starts_with("The service used-apb was withdrawn at 20"),
        "{description}"
    );
    assert!(
        description.contains("its registry does not have it any more"),
        "{description}"
    );
    // The grace period of both is over; the used one stays.
    until("the other is deleted", || {
        let items = broker.items("vault");
        assert!(
            items.contains(&"deleted/used-apb:latest".to_owned()),
            "{items:?}"
        );
        (items.len() == 1).then_some(())
    });

    let bound = broker.expect_status(201, "PUT", "i/service_bindings/c", &ids);
    assert_eq!(bound["credentials"], json!({ "version": "1.0.0" }));
    broker.expect_status(200, "DELETE", "i/service_bindings/b", &ids);
    broker.expect_status(200, "DELETE", "i/service_bindings/c", &ids);
    broker.expect_status(200, "DELETE", "i", &ids);
    assert_eq!(broker.log_of("deprovision", "i"), "deprovision by 1.0.0\n");
    until("it is deleted", || {
        broker.items("vault").is_empty().then_some(())
    });
    broker.expect_status(400, "PUT", "k", &ids);
}

/// Regression: R21.
#[test]
fn an_instance_is_deprovisioned_by_the_image_that_created_it_although_its_tag_was_moved() {
    let Some(registry) = image_registry::open() else {
        return;
    };
    registry.push("moved", "moved-apb", "1.0.0");
    let fixture = registry.fixture("moved");
    let broker = fixture.broker();
    broker.refreshed();
    let ids = broker.ids("moved-apb");
    broker.expect_status(201, "PUT", "old", &ids);

    registry.push("moved", "moved-apb", "2.0.0");
    broker.refreshed();
    assert_eq!(broker.offers(), ["moved-apb 2.0.0"]);
    broker.expect_status(201, "PUT", "new", &ids);
    assert_eq!(broker.log_of("provision", "new"), "provision by 2.0.0\n");
    let bound = broker.expect_status(201, "PUT", "old/service_bindings/b", &ids);
    assert_eq!(bound["credentials"], json!({ "version": "1.0.0" }));
    broker.expect_status(200, "DELETE", "old/service_bindings/b", &ids);

    // The engine has neither image any more: it must pull by version, not by tag.
    registry.forget_images("moved");
    broker.expect_status(200, "DELETE", "old", &ids);
    assert_eq!(
        broker.log_of("deprovision", "old"),
        "deprovision by 1.0.0\n"
    );
    broker.expect_status(200, "DELETE", "new", &ids);
    assert_eq!(
        broker.log_of("deprovision", "new"),
        "deprovision by 2.0.0\n"
    );
}
