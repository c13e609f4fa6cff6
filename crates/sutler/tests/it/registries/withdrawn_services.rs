//! Services whose image was deleted or replaced while instances use it: each goes on with what made it, in
//! containers of exactly that version.

use super::image_registry;
use serde_json::json;
use sutler_servers::until;

const NOTHING: [&str; 0] = [];

/// Regression: R19.
#[test]
fn a_service_whose_image_was_deleted_is_hidden_serves_its_instance_and_is_then_removed() {
    let Some(vault) = image_registry::open() else {
        return;
    };
    let used = vault.push("deleted", "used-apb", "1.0.0");
    let unused = vault.push("deleted", "unused-apb", "1.0.0");
    let site = vault.site("deleted").set("/refresh/grace", json!("1s"));
    let house = site.set("/refresh/delete_every", json!("1s")).broker();
    house.refreshed();
    let ids = house.ids("used-apb");
    house.asked(201, "PUT", "i", &ids);
    house.asked(201, "PUT", "i/service_bindings/b", &ids);

    vault.delete("deleted", "used-apb", &used);
    vault.delete("deleted", "unused-apb", &unused);
    house.refreshed();
    assert_eq!(house.offers(), NOTHING);
    let refused = house.asked(400, "PUT", "j", &ids);
    let told = refused["description"].as_str().unwrap_or_default();
    assert!(
        told.starts_with("The service used-apb was withdrawn at 20"),
        "{told}"
    );
    assert!(
        told.contains("its registry does not have it any more"),
        "{told}"
    );
    // Both have had their grace; the one that is used stays.
    until("the other is deleted", || {
        let items = house.items("vault");
        assert!(
            items.contains(&"deleted/used-apb:latest".to_owned()),
            "{items:?}"
        );
        (items.len() == 1).then_some(())
    });

    let bound = house.asked(201, "PUT", "i/service_bindings/c", &ids);
    assert_eq!(bound["credentials"], json!({ "version": "1.0.0" }));
    house.asked(200, "DELETE", "i/service_bindings/b", &ids);
    house.asked(200, "DELETE", "i/service_bindings/c", &ids);
    house.asked(200, "DELETE", "i", &ids);
    assert_eq!(house.log_of("deprovision", "i"), "deprovision by 1.0.0\n");
    until("it is deleted", || {
        house.items("vault").is_empty().then_some(())
    });
    house.asked(400, "PUT", "k", &ids);
}

/// Regression: R21.
#[test]
fn an_instance_is_deprovisioned_by_the_image_that_created_it_although_its_tag_was_moved() {
    let Some(vault) = image_registry::open() else {
        return;
    };
    vault.push("moved", "moved-apb", "1.0.0");
    let site = vault.site("moved");
    let house = site.broker();
    house.refreshed();
    let ids = house.ids("moved-apb");
    house.asked(201, "PUT", "old", &ids);

    vault.push("moved", "moved-apb", "2.0.0");
    house.refreshed();
    assert_eq!(house.offers(), ["moved-apb 2.0.0"]);
    house.asked(201, "PUT", "new", &ids);
    assert_eq!(house.log_of("provision", "new"), "provision by 2.0.0\n");
    let bound = house.asked(201, "PUT", "old/service_bindings/b", &ids);
    assert_eq!(bound["credentials"], json!({ "version": "1.0.0" }));
    house.asked(200, "DELETE", "old/service_bindings/b", &ids);

    // The engine has neither any more: it must ask for the version, and not for the tag.
    vault.forget_images("moved");
    house.asked(200, "DELETE", "old", &ids);
    assert_eq!(house.log_of("deprovision", "old"), "deprovision by 1.0.0\n");
    house.asked(200, "DELETE", "new", &ids);
    assert_eq!(house.log_of("deprovision", "new"), "deprovision by 2.0.0\n");
}
